/*
 * privileges.h: becoming an ordinary user once everything privileged is open.
 */
#ifndef WEIR_PRIVILEGES_H
#define WEIR_PRIVILEGES_H

#include <glib.h>
#include <stdbool.h>

/*
 * Becomes that user with its groups and without any capability, for good: programs that it starts
 * cannot gain privileges either (no_new_privs).  Threads that are started later are the same; all
 * that run already change their user, too.  After an error the process may be half way: end it.
 */
bool weir_privileges_drop(const char *user, GError **error);

#endif
