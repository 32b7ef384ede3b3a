/*
 * units.h: numbers with units, as options have them.  weir_parse_size(), _time() and _rate() of
 * plugin.h are here too.  What is not of that kind is false, and *ret as it was.
 */
#ifndef WEIR_UNITS_H
#define WEIR_UNITS_H

#include <weir/plugin.h>

bool weir_parse_number(const char *text, int64_t *ret);
bool weir_parse_amount(const char *text, struct weir_amount *ret);

/* "1G": a number and the first letter of two units. */
bool weir_is_ambiguous_size(const char *text);

#endif
