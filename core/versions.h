/*
 * versions.h: what `weir --version` says.
 */
#ifndef WEIR_VERSIONS_H
#define WEIR_VERSIONS_H

#include <stdio.h>

/* Weir's version, the plugin interface's, and those of the libraries that core is linked with. */
void weir_versions_print(FILE *to);

#endif
