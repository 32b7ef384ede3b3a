/*
 * privileges.h: becoming an ordinary user once everything privileged is open.
 */
#ifndef WEIR_PRIVILEGES_H
#define WEIR_PRIVILEGES_H

#include <glib.h>
#include <stdbool.h>

/*
 * To be called before any other thread is there: nothing that this one starts from now on, thread
 * or program, can gain privileges (no_new_privs).  Those that it has stay.
 */
bool weir_privileges_seal(const char *user, GError **error);

/*
 * Becomes that user with its groups and without any capability, for good.  Threads that run already
 * do so, too; it is an error if one could still do more.  After an error the process may be half
 * way: end it.
 */
bool weir_privileges_drop(const char *user, GError **error);

#endif
