/*
 * keygen.c: X25519 key pairs in Z85, the form in which ZeroMQ's CURVE and its bindings take keys.
 *
 * Made here and not by libzmq, so that core knows of no plugin's library.
 */
#include "keygen.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#define Z85_LEN 40 /* of 32 bytes */

_Static_assert(crypto_box_PUBLICKEYBYTES == 32 && crypto_box_SECRETKEYBYTES == 32, "Z85_LEN");

/* https://rfc.zeromq.org/spec/32: four bytes, most significant first, are five digits. */
static void encode_z85(const uint8_t *bytes, char *ret)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		".-:+=^!/*?&<>()[]{}@%$#";

	for (unsigned word = 0; word < Z85_LEN / 5; word++) {
		uint32_t value = (uint32_t)bytes[4 * word] << 24 |
				 (uint32_t)bytes[4 * word + 1] << 16 |
				 (uint32_t)bytes[4 * word + 2] << 8 | bytes[4 * word + 3];

		for (unsigned digit = 5; digit-- > 0; value /= 85)
			ret[5 * word + digit] = digits[value % 85];
	}
	ret[Z85_LEN] = '\0';
}

static bool write_key(const char *path, const char *key, mode_t mode, GError **error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	bool ok = fd >= 0 && write(fd, key, Z85_LEN) == Z85_LEN && write(fd, "\n", 1) == 1 &&
		  fsync(fd) == 0;

	if (!ok)
		g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(errno), "%s: %s%s",
			    path, g_strerror(errno),
			    errno == EEXIST ? ", and a key is never overwritten" : "");
	if (fd >= 0)
		close(fd);
	if (!ok && fd >= 0)
		unlink(path);
	return ok;
}

bool weir_keygen(const char *path, GError **error)
{
	g_autofree char *public_path = g_strconcat(path, ".pub", NULL);
	uint8_t public_key[crypto_box_PUBLICKEYBYTES], secret_key[crypto_box_SECRETKEYBYTES];
	char public_text[Z85_LEN + 1], secret_text[Z85_LEN + 1];
	bool ok;

	if (sodium_init() < 0 || crypto_box_keypair(public_key, secret_key) != 0) {
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "there is no randomness");
		return false;
	}
	encode_z85(public_key, public_text);
	encode_z85(secret_key, secret_text);
	ok = write_key(path, secret_text, 0600, error);
	if (ok && !write_key(public_path, public_text, 0644, error)) {
		unlink(path);
		ok = false;
	}
	sodium_memzero(secret_key, sizeof(secret_key));
	sodium_memzero(secret_text, sizeof(secret_text));
	return ok;
}
