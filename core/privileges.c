/*
 * privileges.c: drops them, then tries to get them back, which must fail.
 *
 * glibc has all threads change their user.  Capabilities go away with root, but those of a process
 * that was none (from its file) each thread could only give up itself: so all threads are looked
 * at.
 */
#include "privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool refuse(GError **error, const char *user, const char *what, int number)
{
	g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(number), "--user %s: %s: %s",
		    user, what, g_strerror(number));
	return false;
}

static bool find_user(const char *user, struct passwd *ret, char **ret_memory, GError **error)
{
	struct passwd *found = NULL;
	size_t size = 65536; /* more than any entry; getpwnam_r() says ERANGE otherwise */
	int number;

	*ret_memory = g_malloc(size);
	number = getpwnam_r(user, ret, *ret_memory, size, &found);
	if (!found && number)
		return refuse(error, user, "cannot be looked up", number);
	if (!found)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
			    "--user %s: there is no such user", user);
	else if (ret->pw_uid == 0)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
			    "--user %s: that user is root, who has all privileges", user);
	return found && ret->pw_uid != 0;
}

static bool change_user(const char *user, const struct passwd *to, GError **error)
{
	if (getuid() == to->pw_uid && geteuid() == to->pw_uid)
		return true;
	/* The bounding set needs a capability that is gone after setresuid(). */
	capng_clear(CAPNG_SELECT_BOTH);
	capng_apply(CAPNG_SELECT_BOUNDS);
	if (initgroups(to->pw_name, to->pw_gid) != 0)
		return refuse(error, user, "cannot take its groups", errno);
	if (setresgid(to->pw_gid, to->pw_gid, to->pw_gid) != 0)
		return refuse(error, user, "cannot take its group", errno);
	if (setresuid(to->pw_uid, to->pw_uid, to->pw_uid) != 0)
		return refuse(error, user, "cannot become that user", errno);
	return true;
}

static bool clear_capabilities(const char *user, GError **error)
{
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return refuse(error, user, "cannot give up capabilities", errno ? errno : EPERM);
	return true;
}

/* ---- Proof ---- */

static bool has_none(const char *line, const char *set)
{
	return !g_str_has_prefix(line, set) || !g_ascii_strtoull(line + strlen(set), NULL, 16);
}

/* status: of a thread, as /proc says it. */
static bool is_sealed_and_bare(const char *status)
{
	g_auto(GStrv) lines = g_strsplit(status, "\n", -1);
	bool sealed = false, bare = true;

	for (char **line = lines; *line; line++) {
		sealed |= strcmp(*line, "NoNewPrivs:\t1") == 0;
		bare &= has_none(*line, "CapPrm:\t") && has_none(*line, "CapEff:\t") &&
			has_none(*line, "CapAmb:\t");
	}
	return sealed && bare;
}

static bool are_all_bare(const char *user, GError **error)
{
	g_autoptr(GDir) threads = g_dir_open("/proc/self/task", 0, error);
	const char *thread;

	while (threads && (thread = g_dir_read_name(threads)) != NULL) {
		g_autofree char *path = g_strdup_printf("/proc/self/task/%s/status", thread);
		g_autofree char *status = NULL;

		/* One that has ended meanwhile cannot be read. */
		if (g_file_get_contents(path, &status, NULL, NULL) && !is_sealed_and_bare(status))
			return refuse(error, user, "a thread keeps privileges", EPERM);
	}
	return threads != NULL;
}

static bool is_gone(const char *user, GError **error)
{
	bool regained = setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0;

	if (!regained && capng_get_caps_process() == 0 &&
	    capng_have_capabilities(CAPNG_SELECT_CAPS) == CAPNG_NONE)
		return true;
	return refuse(error, user, "privileges are still there", EPERM);
}

bool weir_privileges_seal(const char *user, GError **error)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ||
	       refuse(error, user, "cannot renounce new privileges", errno);
}

bool weir_privileges_drop(const char *user, GError **error)
{
	g_autofree char *memory = NULL;
	struct passwd to;

	return find_user(user, &to, &memory, error) && weir_privileges_seal(user, error) &&
	       change_user(user, &to, error) && clear_capabilities(user, error) &&
	       is_gone(user, error) && are_all_bare(user, error);
}
