/*
 * plan_text.h: what `weir plan` says.
 */
#ifndef WEIR_PLAN_TEXT_H
#define WEIR_PLAN_TEXT_H

#include "plan.h"

/* g_free(). */
char *weir_plan_text(const struct weir_plan *plan);

#endif
