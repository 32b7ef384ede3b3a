/* faulty-sink: the same, as a sink. */
#define FAULTY_NAME "faulty-sink"
#define FAULTY_KIND WEIR_SINK
#include "faulty.c"
