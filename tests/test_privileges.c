/* Root that becomes nobody and cannot go back; in processes of their own, which have one thread. */
#include "privileges.h"

#include <cap-ng.h>
#include <criterion/criterion.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_in_child(bool (*holds)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("needs root");
	pid = fork();
	if (pid == 0)
		_exit(!holds());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool drops(const char *user, const char *expected_error)
{
	g_autoptr(GError) error = NULL;
	bool dropped = weir_privileges_drop(user, &error);

	if (error)
		fprintf(stderr, "%s\n", error->message);
	return expected_error ? error && strstr(error->message, expected_error) : dropped;
}

static bool has_root_group(void)
{
	gid_t groups[64];

	for (int i = getgroups(64, groups); i-- > 0;)
		if (groups[i] == 0)
			return true;
	return false;
}

static bool all_is_gone(void)
{
	uid_t uid = getpwnam("nobody")->pw_uid, real, effective, saved;

	if (!drops("nobody", NULL))
		return false;
	getresuid(&real, &effective, &saved);
	capng_get_caps_process();
	return real == uid && effective == uid && saved == uid && setuid(0) == -1 &&
	       setgid(0) == -1 && capng_have_capabilities(CAPNG_SELECT_BOTH) == CAPNG_NONE &&
	       !has_root_group() && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
	       access("/etc/shadow", R_OK) == -1;
}

Test(privileges, are_gone_for_good)
{
	check_in_child(all_is_gone);
}

static bool twice(void)
{
	return drops("nobody", NULL) && drops("nobody", NULL);
}

Test(privileges, a_second_time_changes_nothing)
{
	check_in_child(twice);
}

static bool nobody_becomes_daemon(void)
{
	return drops("nobody", NULL) && drops("daemon", "--user daemon: cannot take its groups");
}

Test(privileges, an_ordinary_user_cannot_become_another)
{
	check_in_child(nobody_becomes_daemon);
}

/* ---- Other threads ---- */

static void *stay(void *user)
{
	for (;;)
		pause();
	return user;
}

static void start_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, stay, NULL);
}

static bool sealed_thread(void)
{
	if (!weir_privileges_seal("nobody", NULL))
		return false;
	start_thread();
	return drops("nobody", NULL);
}

Test(privileges, a_thread_that_is_there_already_loses_them_too)
{
	check_in_child(sealed_thread);
}

static bool thread_before_seal(void)
{
	start_thread();
	return drops("nobody", "a thread keeps privileges");
}

Test(privileges, a_thread_that_could_gain_new_ones_is_an_error)
{
	check_in_child(thread_before_seal);
}

/* As of a program with capabilities on its file, which an ordinary user has started. */
static bool thread_with_capability(void)
{
	const struct passwd *nobody = getpwnam("nobody");

	capng_clear(CAPNG_SELECT_BOTH);
	capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_NET_RAW);
	if (capng_change_id((int)nobody->pw_uid, (int)nobody->pw_gid, CAPNG_DROP_SUPP_GRP) != 0 ||
	    !weir_privileges_seal("nobody", NULL))
		return false;
	start_thread();
	return drops("nobody", "a thread keeps privileges");
}

Test(privileges, a_thread_that_keeps_a_capability_is_an_error)
{
	check_in_child(thread_with_capability);
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
