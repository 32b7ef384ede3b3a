/*
 * text.h: the filter as text.
 */
#ifndef BPF_TEXT_H
#define BPF_TEXT_H

#include <stddef.h>

/* The contents of a file without its comments (from # to the end of a line), for free(); NULL with
 * the reason in why. */
char *text_read(const char *path, char *why, size_t why_size);

#endif
