/* numbers-live: the same, as a source that cannot wait. */
#define NUMBERS_NAME  "numbers-live"
#define NUMBERS_FLAGS WEIR_LIVE
#include "numbers.c"
