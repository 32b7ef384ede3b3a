/*
 * access.h: whom files and folders belong to, and who may read them.
 */
#ifndef PCAP_ACCESS_H
#define PCAP_ACCESS_H

#include "options.h"

#include <sys/types.h>

struct access {
	uid_t owner; /* -1: as the process */
	gid_t group;
	mode_t file_mode, folder_mode;
	bool has_mode; /* else the umask holds */
};

/* From owner, group and mode; false after weir_error(). */
bool access_resolve(struct access *access, struct weir_self *self);

/* Gives an open file or folder what it shall have; false with errno. */
bool access_apply(const struct access *access, int fd, bool is_folder);

#endif
