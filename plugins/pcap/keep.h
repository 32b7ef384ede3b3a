/*
 * keep.h: retention: removes the oldest files of this node, and no others.
 *
 * What a node has made is written down in `.weir-<node>` beside its files, which survives restarts.
 * All but keeper_new() and keeper_free() are called by the writer's thread.
 */
#ifndef PCAP_KEEP_H
#define PCAP_KEEP_H

#include "options.h"

struct keeper;

/* self: of the node. folder: without a slash at its end. NULL after weir_error(). */
struct keeper *keeper_new(struct weir_self *self, const char *folder);
void keeper_free(struct keeper *keeper); /* takes NULL */

/* A file has got its name; the name starts with the folder. */
void keeper_closed(struct keeper *keeper, const char *name);

/* Does a little of what there is to do; true: call again soon. */
bool keeper_work(struct keeper *keeper);

#endif
