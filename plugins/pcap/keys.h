/*
 * keys.h: the TLS key log that tls-keys names, followed while it grows.
 *
 * The writer's thread reads it, lanes take from what it has read.
 */
#ifndef PCAP_KEYS_H
#define PCAP_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_self;
struct keys;

/* The newest keys, of which every file has what it can hold. */
#define KEYS_BYTES_MAX (1u << 20)

/* A file that is not there yet is waited for.  NULL: out of memory. */
struct keys *keys_new(const char *path);
void keys_free(struct keys *keys); /* takes NULL */

/* Writer's thread: reads what is new, not more often than is needed. */
void keys_read(struct keys *keys, int64_t mono_ns);

/* ---- Lanes ---- */

/* How much there has been by now.  It only grows. */
uint64_t keys_end(const struct keys *keys);
/*
 * Copies whole lines from that place on, at most `room` bytes, the newest if that is not enough.
 * *from becomes where they end; *ret_lines how many they are.
 */
size_t keys_take(struct keys *keys, uint64_t *from, uint8_t *to, size_t room, unsigned *ret_lines);

/* Whether it is a line of a key log, without its end: "LABEL HEX HEX".  Nothing else is passed on:
 * a file that is given by mistake must not become part of a capture. */
bool keys_is_line(const char *line, size_t len);

#endif
