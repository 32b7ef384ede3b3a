/*
 * elf.h: whether a file is one that may be loaded, found out before its constructors could run.
 */
#ifndef WEIR_ELF_H
#define WEIR_ELF_H

#include <glib.h>
#include <stdbool.h>

/* False with an error unless path is a whole ELF shared object for this machine, a regular file of
 * root or of the effective user that nobody else can write. */
bool weir_elf_check(const char *path, GError **error);

/* The absolute path of the file that this library was loaded from; g_free(). */
char *weir_elf_own_path(void);

#endif
