/*
 * keep.h: retention: removes the oldest files of this node, and no others.
 *
 * All but keeper_new() and keeper_free() are called by the writer's thread.
 */
#ifndef PCAP_KEEP_H
#define PCAP_KEEP_H

#include "options.h"

struct keeper;

/* Whether the options ask for retention. */
bool keeper_is_wanted(const struct config *config);
/* self: of the node. folder: without a slash at its end. NULL after weir_error(). */
struct keeper *keeper_new(struct weir_self *self, const char *folder);
void keeper_free(struct keeper *keeper); /* takes NULL */

/* So many bytes are about to be written: gives at least as many back first if there is no room. */
void keeper_make_room(struct keeper *keeper, uint64_t bytes);
/* Files that are being written have grown by that. */
void keeper_grow(struct keeper *keeper, int64_t bytes);
/* One more file is about to get its name. */
void keeper_make_way(struct keeper *keeper);
/* A file has got its name; the name starts with the folder. */
void keeper_closed(struct keeper *keeper, const char *name);

/* Does a little of what there is to do; true: call again soon. */
bool keeper_work(struct keeper *keeper);

#endif
