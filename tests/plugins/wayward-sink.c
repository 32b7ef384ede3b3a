/* wayward-sink: the same of a sink. */
#define WAYWARD_NAME "wayward-sink"
#define WAYWARD_KIND WEIR_SINK
#include "wayward.c"
