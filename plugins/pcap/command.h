/*
 * command.h: on-close: a command for each complete file.
 *
 * It is started by the writer's thread, which also looks after it: so there are no zombies, and no
 * lane ever waits for one.
 */
#ifndef PCAP_COMMAND_H
#define PCAP_COMMAND_H

#include "options.h"

struct commands;

/* Main thread.  check: whether on-close has a command at all; false after weir_error(). */
bool command_check(struct weir_self *self);
/* NULL after weir_error(): there is no such program. */
struct commands *commands_new(struct weir_self *self);
void commands_free(struct commands *commands); /* takes NULL */

/* Writer's thread, and the main thread before it has started and after it has ended.  run: now, or
 * when it is its turn. */
void commands_run(struct commands *commands, const char *path);
/* Looks which have ended, and starts those whose turn has come. */
void commands_work(struct commands *commands);
/* Whether any has not ended. */
bool commands_pending(const struct commands *commands);
/* Waits for all of them, as long as on-close-wait says. */
void commands_finish(struct commands *commands);

#endif
