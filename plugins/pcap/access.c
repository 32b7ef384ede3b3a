/* access.c: owner, group and permissions. */
#include "access.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MODE   0644
#define FOLDER_MODE 0755
#define NUMBER_MAX  4294967294ul /* the last one means none */

static bool parse_number(const char *text, int base, unsigned long max, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, base);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *ret <= max;
}

static bool resolve_owner(struct access *access, struct weir_self *self, const char *name)
{
	const struct passwd *user = name ? getpwnam(name) : NULL;
	unsigned long number;

	if (user)
		access->owner = user->pw_uid;
	else if (name && parse_number(name, 10, NUMBER_MAX, &number))
		access->owner = (uid_t)number;
	else if (name)
		weir_error(self, "owner", "there is no user '%s'", name);
	return !name || access->owner != (uid_t)-1;
}

static bool resolve_group(struct access *access, struct weir_self *self, const char *name)
{
	const struct group *group = name ? getgrnam(name) : NULL;
	unsigned long number;

	if (group)
		access->group = group->gr_gid;
	else if (name && parse_number(name, 10, NUMBER_MAX, &number))
		access->group = (gid_t)number;
	else if (name)
		weir_error(self, "group", "there is no group '%s'", name);
	return !name || access->group != (gid_t)-1;
}

/* A folder can be entered by those who may read files in it. */
static bool resolve_mode(struct access *access, struct weir_self *self, const char *text)
{
	unsigned long mode;

	if (!text)
		return true;
	if (!parse_number(text, 8, 0777, &mode)) {
		weir_error(self, "mode", "'%s' is no octal mode such as 0640", text);
		return false;
	}
	access->has_mode = true;
	access->file_mode = (mode_t)mode;
	access->folder_mode = (mode_t)(mode | (mode & 0444) >> 2 | S_IWUSR | S_IXUSR);
	return true;
}

bool access_resolve(struct access *access, struct weir_self *self)
{
	const struct config *config = self->config;
	bool ok;

	*access = (struct access){(uid_t)-1, (gid_t)-1, FILE_MODE, FOLDER_MODE, false};
	ok = resolve_owner(access, self, config->owner);
	ok = resolve_group(access, self, config->group) && ok;
	return resolve_mode(access, self, config->mode) && ok;
}

bool access_apply(const struct access *access, int fd, bool is_folder)
{
	if ((access->owner != (uid_t)-1 || access->group != (gid_t)-1) &&
	    fchown(fd, access->owner, access->group) != 0)
		return false;
	return !access->has_mode ||
	       fchmod(fd, is_folder ? access->folder_mode : access->file_mode) == 0;
}
