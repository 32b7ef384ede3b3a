/*
 * keygen.h: key pairs for streams that are encrypted.
 */
#ifndef WEIR_KEYGEN_H
#define WEIR_KEYGEN_H

#include <glib.h>
#include <stdbool.h>

/* Writes the secret key to the file of that name, for its owner alone, and the public one to that
 * name with ".pub".  Neither may exist. */
bool weir_keygen(const char *path, GError **error);

#endif
