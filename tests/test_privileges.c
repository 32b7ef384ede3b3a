/* Root that becomes nobody and cannot go back; each test is a process of its own. */
#include "privileges.h"

#include <cap-ng.h>
#include <criterion/criterion.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void need_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
}

Test(privileges, are_gone_for_good)
{
	const struct passwd *nobody = getpwnam("nobody");
	GError *error = NULL;
	uid_t uid, real, effective, saved;
	gid_t groups[64];

	need_root();
	uid = nobody->pw_uid;
	cr_assert(weir_privileges_drop("nobody", &error), "%s", error ? error->message : "");
	getresuid(&real, &effective, &saved);
	cr_expect(real == uid && effective == uid && saved == uid);
	cr_expect_eq(setuid(0), -1);
	cr_expect_eq(setgid(0), -1);
	capng_get_caps_process();
	cr_expect_eq(capng_have_capabilities(CAPNG_SELECT_BOTH), CAPNG_NONE);
	for (int i = getgroups(64, groups); i-- > 0;)
		cr_expect_neq(groups[i], 0, "root's group is still there");
	cr_expect_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	cr_expect_eq(access("/etc/shadow", R_OK), -1);
}

Test(privileges, a_second_time_changes_nothing)
{
	need_root();
	cr_assert(weir_privileges_drop("nobody", NULL));
	cr_expect(weir_privileges_drop("nobody", NULL));
}

Test(privileges, an_ordinary_user_cannot_become_another)
{
	GError *error = NULL;

	need_root();
	cr_assert(weir_privileges_drop("nobody", NULL));
	cr_expect_not(weir_privileges_drop("daemon", &error));
	cr_assert_not_null(error);
	cr_expect(strstr(error->message, "--user daemon: cannot take its groups"), "%s",
		  error->message);
	g_error_free(error);
}

static void check_refused(const char *user, const char *words)
{
	GError *error = NULL;

	cr_expect_not(weir_privileges_drop(user, &error));
	cr_assert_not_null(error);
	cr_expect(strstr(error->message, words), "%s", error->message);
	g_error_free(error);
}

Test(privileges, a_user_who_is_none_or_root_is_refused)
{
	check_refused("no-such-user", "--user no-such-user: there is no such user");
	check_refused("root", "--user root: that user is root");
}
