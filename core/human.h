/*
 * human.h: numbers as people read them; all of these for g_free().
 */
#ifndef WEIR_HUMAN_H
#define WEIR_HUMAN_H

#include <glib.h>
#include <stdint.h>

/* 1234567 as "1,234,567". */
char *weir_human_count(uint64_t count);
/* "812 B", "1.46 MiB". */
char *weir_human_bytes(uint64_t bytes);
/* Three digits and a decimal prefix: "0 pps", "812 pps", "1.46 Mbps" with unit "pps", "bps". */
char *weir_human_rate(double per_second, const char *unit);
/* "0.25 s", "5 m 0 s", "3 h 12 m". */
char *weir_human_time(double seconds);

#endif
