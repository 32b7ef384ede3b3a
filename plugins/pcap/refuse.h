/*
 * refuse.h: what is refused before capture starts, because files could not be written later.
 */
#ifndef PCAP_REFUSE_H
#define PCAP_REFUSE_H

#include "file.h"

bool refuse_is_pcapng(const struct config *config);

/* Each is true, or false after weir_error() has said all that is wrong.  options: what can be known
 * without opening anything. */
bool refuse_options(struct weir_self *self);
/* Names that are taken, and packets that one file cannot hold; once sources are open. */
bool refuse_inputs(struct weir_self *self);
/* What is not enough for that many lanes. */
bool refuse_lanes(struct weir_self *self);
/* Whether files can be made in the folder, by whoever the process is by now. */
bool refuse_folder(struct weir_self *self, const char *folder, const struct access *access);

/* The folder of the path as far as it is literal, and how long it is in the path; free(). */
char *literal_folder(const char *path, unsigned *ret_len);

#endif
