/* privileges.c: drops them, then tries to get them back, which must fail. */
#include "privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
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
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return refuse(error, user, "cannot renounce new privileges", errno);
	return true;
}

static bool is_gone(const char *user, GError **error)
{
	bool regained = setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0;

	if (!regained && capng_get_caps_process() == 0 &&
	    capng_have_capabilities(CAPNG_SELECT_CAPS) == CAPNG_NONE)
		return true;
	return refuse(error, user, "privileges are still there", EPERM);
}

bool weir_privileges_drop(const char *user, GError **error)
{
	g_autofree char *memory = NULL;
	struct passwd to;

	return find_user(user, &to, &memory, error) && change_user(user, &to, error) &&
	       clear_capabilities(user, error) && is_gone(user, error);
}
