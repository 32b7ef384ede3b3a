/*
 * A key log: what the parser takes must be lines that end where they seem to, and hold nothing but
 * what a key log has.
 */
#include "../plugins/pcap/keys.h"

#include <ctype.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned blanks = 0;

	if (!keys_is_line((const char *)data, size))
		return 0;
	for (size_t i = 0; i < size; i++) {
		if (data[i] != ' ' && data[i] != '_' && !isalnum(data[i]))
			abort();
		blanks += data[i] == ' ';
	}
	if (blanks != 2)
		abort();
	return 0;
}
