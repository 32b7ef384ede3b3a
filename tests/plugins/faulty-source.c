/* faulty-source: the same, as a source. */
#define FAULTY_NAME "faulty-source"
#define FAULTY_KIND WEIR_SOURCE
#include "faulty.c"
