/*
 * The loader beside plugins with one fault each, which are compiled here: what is refused, with
 * which words, and that nothing of a refused file has run.
 */
#include "describe.h"
#include "loader.h"
#include "samples.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <glib/gstdio.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder;

/* A stage that is right; FAULT comes behind its fields and may replace them, BEFORE before it. */
static const char source[] =
	"#include <weir/plugin.h>\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <unistd.h>\n"
	"#include <fcntl.h>\n"
	"struct config { int64_t n; uint32_t which; };\n"
	"void judge(struct weir_self *, struct weir_packet *, unsigned);\n"
	"#ifndef OPTIONS\n"
	"#define OPTIONS {\"n\", WEIR_NUMBER, 0, \"1\", \"1..9\", \"h\"}\n"
	"#endif\n"
	"#ifndef OUTPUTS\n"
	"#define OUTPUTS {\"out\", WEIR_PASS, WEIR_PACKETS, \"h\"}\n"
	"#endif\n"
	"#ifndef BEFORE\n"
	"#define BEFORE\n"
	"#endif\n"
	"#ifndef FAULT\n"
	"#define FAULT\n"
	"#endif\n"
	"#ifndef CONSTANT\n"
	"#define CONSTANT weir_plugin\n"
	"#endif\n"
	"BEFORE\n"
	"void judge(struct weir_self *s, struct weir_packet *p, unsigned n)\n"
	"{ (void)s, (void)p, (void)n; JUDGE; }\n"
	"static const struct weir_option options[] = {OPTIONS, {0}};\n"
	"static const struct weir_output outputs[] = {OUTPUTS, {0}};\n"
	"WEIR_EXPORT const struct weir_plugin CONSTANT = {WEIR_HEAD,\n"
	".kind = WEIR_STAGE, .name = NAME, .version = \"3\",\n"
	".summary = \"a summary\", .example = \"an example\", .options = options,\n"
	".outputs = outputs, .config_size = sizeof(struct config),\n"
	".judge = judge, FAULT};\n";

static void make_folder(void)
{
	folder = g_dir_make_tmp("weir-loader-XXXXXX", NULL);
	cr_assert_not_null(folder);
}

static void remove_folder(void)
{
	GDir *dir = g_dir_open(folder, 0, NULL);
	const char *name;

	while ((name = g_dir_read_name(dir)) != NULL) {
		g_autofree char *path = g_build_filename(folder, name, NULL);

		g_remove(path);
	}
	g_dir_close(dir);
	g_rmdir(folder);
	g_free(folder);
}

TestSuite(loader, .init = make_folder, .fini = remove_folder);

static char *path_of(const char *file)
{
	return g_build_filename(folder, file, NULL);
}

static void compile(const char *name, const char *defines)
{
	g_autofree char *c_file = path_of("plugin.c");
	g_autofree char *so_file = g_strdup_printf("%s/%s.so", folder, name);
	g_autofree char *command = g_strdup_printf(
		"cc -w -std=gnu17 -shared -fPIC -Iinclude -DNAME='\"%s\"' %s %s -o %s %s", name,
		strstr(defines, "-DJUDGE") ? "" : "-DJUDGE=", defines, so_file, c_file);

	cr_assert(g_file_set_contents(c_file, source, -1, NULL));
	cr_assert_eq(system(command), 0, "%s", command);
}

static struct weir_loader *loader_here(void)
{
	const char *const path[] = {folder, NULL};

	return weir_loader_new(path);
}

/* Loading `name` fails with that code and message, in which FOLDER stands for the folder. */
static void check_refused(const char *name, int code, const char *expected)
{
	struct weir_loader *loader = loader_here();
	g_autoptr(GError) error = NULL;
	GString *message = g_string_new(expected);

	g_string_replace(message, "FOLDER", folder, 0);
	cr_expect_null(weir_loader_find(loader, name, &error));
	cr_assert_not_null(error);
	cr_expect_eq(error->domain, WEIR_LOADER_ERROR);
	cr_expect_eq(error->code, code);
	cr_expect_str_eq(error->message, message->str, "it says: %s\nexpected: %s", error->message,
			 message->str);
	g_string_free(message, TRUE);
	weir_loader_free(loader);
}

/* ---- Plugins that are right ---- */

Test(loader, loads_what_is_right)
{
	struct weir_loader *loader = loader_here();
	g_autofree char *file = path_of("good.so");
	const struct weir_plugin *plugin;
	GError *error = NULL;

	compile("good", "");
	plugin = weir_loader_find(loader, "good", &error);
	cr_assert_not_null(plugin, "%s", error ? error->message : "");
	cr_expect_str_eq(plugin->name, "good");
	cr_expect_str_eq(plugin->version, "3");
	cr_expect_eq(weir_loader_find(loader, "good", NULL), plugin);
	cr_expect_str_eq(weir_loader_file(loader, "good"), file);
	cr_expect_null(weir_loader_file(loader, "queue"));
	weir_loader_free(loader);
}

/* One built with a later 1.x: its struct and its table entries are larger than ours. */
Test(loader, loads_a_larger_struct)
{
	struct weir_loader *loader = loader_here();
	GError *error = NULL;

	compile("later", "-DFAULT='.size = sizeof(struct weir_plugin) + 64'");
	cr_expect_not_null(weir_loader_find(loader, "later", &error), "%s",
			   error ? error->message : "");
	weir_loader_free(loader);
}

Test(loader, local_symbols_stay_local)
{
	struct weir_loader *loader = loader_here();
	const struct weir_plugin *one, *two;

	compile("one", "");
	compile("two", "");
	one = weir_loader_find(loader, "one", NULL);
	two = weir_loader_find(loader, "two", NULL);
	cr_assert(one && two);
	cr_expect_neq((void *)one->judge, (void *)two->judge, "both export judge()");
	weir_loader_free(loader);
}

Test(loader, the_first_folder_decides)
{
	g_autofree char *second = g_dir_make_tmp("weir-loader-XXXXXX", NULL);
	g_autofree char *broken = g_build_filename(second, "good.so", NULL);
	g_autoptr(GError) error = NULL;
	const char *good_first[] = {"/nonexistent", folder, second, NULL};
	const char *bad_first[] = {second, folder, NULL};
	struct weir_loader *loader = weir_loader_new(good_first);

	compile("good", "");
	cr_assert(g_file_set_contents(broken, "text", -1, NULL));
	cr_expect_not_null(weir_loader_find(loader, "good", NULL));
	weir_loader_free(loader);
	loader = weir_loader_new(bad_first);
	cr_expect_null(weir_loader_find(loader, "good", &error));
	cr_expect_eq(error->code, WEIR_LOADER_REFUSED);
	weir_loader_free(loader);
	g_remove(broken);
	g_rmdir(second);
}

Test(loader, names)
{
	struct weir_loader *loader = loader_here();
	g_autofree char *text = path_of("b.so");
	g_autofree char *other = path_of("a.txt");
	g_autofree char *hidden = path_of(".c.so");
	g_autofree char *joined = NULL;
	char **names;

	weir_loader_add(loader, &samples[0]);
	g_file_set_contents(text, "text", -1, NULL);
	g_file_set_contents(other, "text", -1, NULL);
	g_file_set_contents(hidden, "text", -1, NULL);
	names = weir_loader_names(loader);
	joined = g_strjoinv(" ", names);
	cr_expect_str_eq(joined, "b gen queue");
	g_strfreev(names);
	weir_loader_free(loader);
}

Test(loader, default_path)
{
	const char *const extra[] = {"/extra", NULL};
	g_autofree char *joined = NULL;
	char **path;

	g_setenv("WEIR_PLUGIN_PATH", "/one::/two", TRUE);
	path = weir_loader_default_path(extra);
	joined = g_strjoinv(" ", path);
	cr_expect(g_str_has_prefix(joined, "/extra /one /two /"), "%s", joined);
	cr_expect(g_str_has_suffix(joined, "/plugins"), "%s", joined);
	cr_expect_eq(g_strv_length(path), 4);
	g_strfreev(path);
}

/* ---- Faults that show before a file is loaded ---- */

/* The file that the constructor of a plugin makes, if it runs. */
#define TELLTALE                                                                                   \
	"-DBEFORE='__attribute__((constructor)) static void c(void) "                              \
	"{ close(open(TELLTALE, O_CREAT | O_WRONLY, 0600)); }' -DTELLTALE='\"%s/ran\"'"

static void compile_telltale(const char *name)
{
	g_autofree char *defines = g_strdup_printf(TELLTALE, folder);

	compile(name, defines);
}

static bool has_run(void)
{
	g_autofree char *path = path_of("ran");

	return g_file_test(path, G_FILE_TEST_EXISTS);
}

Test(loader, nothing_by_that_name)
{
	check_refused("nix", WEIR_LOADER_NOT_FOUND, "there is no plugin 'nix'");
	check_refused("../good", WEIR_LOADER_NOT_FOUND, "there is no plugin '../good'");
	check_refused("", WEIR_LOADER_NOT_FOUND, "there is no plugin ''");
}

Test(loader, others_may_write)
{
	g_autofree char *file = path_of("open.so");
	struct weir_loader *loader = loader_here();

	compile_telltale("open");
	g_chmod(file, 0757);
	check_refused("open", WEIR_LOADER_REFUSED,
		      "plugin 'open' is refused: FOLDER/open.so: can be written by others (mode "
		      "0757): chmod go-w");
	g_chmod(file, 0775);
	check_refused("open", WEIR_LOADER_REFUSED,
		      "plugin 'open' is refused: FOLDER/open.so: can be written by others (mode "
		      "0775): chmod go-w");
	cr_expect_not(has_run(), "a refused plugin's constructor has run");
	g_chmod(file, 0755);
	cr_expect_not_null(weir_loader_find(loader, "open", NULL));
	cr_expect(has_run(), "the telltale does not work");
	weir_loader_free(loader);
}

Test(loader, another_owner)
{
	g_autofree char *file = path_of("foreign.so");

	if (geteuid() != 0)
		cr_skip_test("needs root, to give a file away");
	compile_telltale("foreign");
	cr_assert_eq(chown(file, 12345, 12345), 0);
	check_refused("foreign", WEIR_LOADER_REFUSED,
		      "plugin 'foreign' is refused: FOLDER/foreign.so: belongs to user 12345; "
		      "expected root or user 0");
	cr_expect_not(has_run());
}

Test(loader, no_shared_object)
{
	g_autofree char *text = path_of("text.so");
	g_autofree char *empty = path_of("empty.so");
	g_autofree char *dir = path_of("dir.so");

	g_file_set_contents(text, "#!/bin/sh\n", -1, NULL);
	g_file_set_contents(empty, "", -1, NULL);
	g_mkdir(dir, 0755);
	check_refused("text", WEIR_LOADER_REFUSED,
		      "plugin 'text' is refused: FOLDER/text.so: is no ELF file");
	check_refused("empty", WEIR_LOADER_REFUSED,
		      "plugin 'empty' is refused: FOLDER/empty.so: is no ELF file");
	check_refused("dir", WEIR_LOADER_REFUSED,
		      "plugin 'dir' is refused: FOLDER/dir.so: is no regular file");
}

/* Changes one byte of a plugin's ELF header, or its length. */
static void damage(const char *name, gsize offset, char byte, gsize keep)
{
	g_autofree char *base = g_strconcat(name, ".so", NULL);
	g_autofree char *file = path_of(base);
	g_autofree char *bytes = NULL;
	gsize len;

	compile_telltale(name);
	cr_assert(g_file_get_contents(file, &bytes, &len, NULL));
	bytes[offset] = byte;
	cr_assert(g_file_set_contents(file, bytes, (gssize)MIN(len, keep), NULL));
}

Test(loader, damaged_objects)
{
	damage("class32", 4, 1, SIZE_MAX);
	check_refused(
		"class32", WEIR_LOADER_REFUSED,
		"plugin 'class32' is refused: FOLDER/class32.so: is built for another kind of "
		"machine");
	damage("machine", 18, 8, SIZE_MAX);
	check_refused(
		"machine", WEIR_LOADER_REFUSED,
		"plugin 'machine' is refused: FOLDER/machine.so: is built for another kind of "
		"machine");
	damage("kind", 16, 1, SIZE_MAX);
	check_refused("kind", WEIR_LOADER_REFUSED,
		      "plugin 'kind' is refused: FOLDER/kind.so: is no shared object");
	damage("short", 0, 0x7f, 9000);
	check_refused("short", WEIR_LOADER_REFUSED,
		      "plugin 'short' is refused: FOLDER/short.so: is cut short");
	damage("header", 0, 0x7f, 60);
	check_refused("header", WEIR_LOADER_REFUSED,
		      "plugin 'header' is refused: FOLDER/header.so: is cut short");
	cr_expect_not(has_run());
}

/* ---- Faults of the constant ---- */

Test(loader, unresolved_symbols)
{
	compile("lacking", "-DJUDGE='extern void weir_no_such(void); weir_no_such()'");
	check_refused("lacking", WEIR_LOADER_REFUSED,
		      "plugin 'lacking' is refused: FOLDER/lacking.so: undefined symbol: "
		      "weir_no_such");
}

Test(loader, missing_constant)
{
	compile("nameless", "-DCONSTANT=another");
	check_refused("nameless", WEIR_LOADER_REFUSED,
		      "plugin 'nameless' is refused: FOLDER/nameless.so: has no symbol "
		      "'weir_plugin'; is it a plugin?");
}

struct row {
	char defines[128];
	char expected[160];
};

ParameterizedTestParameters(loader, constants)
{
	static struct row rows[] = {
		{".abi = 7", "is built for plugin interface 7; this Weir wants 1"},
		{".abi = 7, .size = 8", "is built for plugin interface 7; this Weir wants 1"},
		{".size = 8", "its struct weir_plugin has 8 bytes; this Weir wants 256"},
		{".packet_size = 48", "its packets have 48 bytes; this Weir wants 64"},
		{".option_size = 8", "the entries of its tables have 8, 24 and 24 bytes; this Weir "
				     "wants 40, 24 and 24"},
		{".name = \"other\"", "it calls itself 'other'; expected 'faulty'"},
		{".name = 0", "it calls itself ''; expected 'faulty'"},
		{".summary = 0", "it lacks version, summary or example"},
		{".kind = 9", "it is neither source, stage nor sink (kind 9)"},
		{".kind = WEIR_SOURCE", "a source needs poll()"},
		{".judge = 0", "a stage needs either judge() or transform()"},
		{".transform = judge", "a stage needs either judge() or transform()"},
		{".kind = WEIR_SINK, .judge = 0", "a sink needs judge(), and has no transform()"},
		{".outputs = 0", "it has no outputs or outcomes"},
		{".memory = \"n\"", "'n', which it says is memory, is no size in its table"},
		{".lanes_kind = 3", "it needs lanes of a kind that this Weir does not know (3)"},
		{".counters = (struct weir_counter[]){{\"c\", 9, \"h\"}, {0}}",
		 "counter 'c' has a role that this Weir does not know"},
		{".counters = (struct weir_counter[]){{\"C\", 0, \"h\"}, {0}}",
		 "'C' is no name for a counter"},
		{".config_size = 4", "option 'n' lies beyond its config of 4 bytes"},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

static void check_fault(const char *macro, const struct row *row)
{
	g_autofree char *defines = g_strdup_printf("-D%s='%s'", macro, row->defines);
	g_autofree char *message = g_strdup_printf(
		"plugin 'faulty' is refused: FOLDER/faulty.so: %s", row->expected);

	compile("faulty", defines);
	check_refused("faulty", WEIR_LOADER_REFUSED, message);
}

ParameterizedTest(struct row *row, loader, constants)
{
	check_fault("FAULT", row);
}

ParameterizedTestParameters(loader, options)
{
	static struct row rows[] = {
		{"{\"N\", WEIR_NUMBER, 0, \"1\", 0, \"h\"}", "'N' is no name for an option"},
		{"{\"a\", WEIR_NUMBER, 0, \"1\", 0, \"h\"}, {\"a\", WEIR_NUMBER, 0, \"1\", 0, "
		 "\"h\"}",
		 "option 'a' is in its table twice"},
		{"{\"a\", 99, 0, \"1\", 0, \"h\"}", "option 'a' is of no known type (99)"},
		{"{\"a\", WEIR_NUMBER, 12, \"1\", 0, \"h\"}",
		 "option 'a' lies beyond its config of 16 bytes"},
		{"{\"a\", WEIR_NUMBER, 4, \"1\", 0, \"h\"}",
		 "option 'a' lies at 4, where its type cannot"},
		{"{\"a\", WEIR_CHOICE, 8, \"x\", 0, \"h\"}",
		 "option 'a' needs a range of 1 to 32 words"},
		{"{\"a\", WEIR_NUMBER, 0, \"1\", \"1..x\", \"h\"}",
		 "the range '1..x' of option 'a' is none"},
		{"{\"a\", WEIR_NUMBER, 0, \"1\", \"9\", \"h\"}",
		 "the range '9' of option 'a' is none"},
		{"{\"a\", WEIR_CHOICE, 8, \"x\", \"y|z\", \"h\"}",
		 "the fallback 'x' of option 'a' is wrong: expected one of y, z"},
		{"{\"a\", WEIR_NUMBER, 0, \"0\", \"1..9\", \"h\"}",
		 "the fallback '0' of option 'a' is wrong: expected a number, in 1..9"},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct row *row, loader, options)
{
	check_fault("OPTIONS", row);
}

ParameterizedTestParameters(loader, outputs)
{
	static struct row rows[] = {
		{"{\"Out\", 0, 0, \"h\"}", "'Out' is no name for an output"},
		{"{\"a\", 0, 0, \"h\"}, {\"a\", 0, 0, \"h\"}", "output 'a' is in its table twice"},
		{"{\"a\", 3, 0, \"h\"}",
		 "output 'a' means or carries what this Weir does not know"},
		{"{\"a\", 0, 1, \"h\"}",
		 "output 'a' means or carries what this Weir does not know"},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct row *row, loader, outputs)
{
	check_fault("OUTPUTS", row);
}

/* ---- Descriptions, made in child processes ---- */

#define CONSTRUCTOR(does) "-DBEFORE='__attribute__((constructor)) static void c(void) { " does " }'"

Test(loader, describes_all)
{
	struct weir_loader *loader = loader_here();
	g_autofree char *text = NULL;

	compile("good", CONSTRUCTOR("puts(\"noise\");"));
	compile("crash", CONSTRUCTOR("abort();"));
	compile("leave", CONSTRUCTOR("exit(0);"));
	compile("old", "-DFAULT='.abi = 0'");
	text = weir_describe_all(loader);
	cr_expect_not_null(strstr(text, "\n  good                      a summary\n"), "%s", text);
	cr_expect_not_null(strstr(text, "\n  queue "), "%s", text);
	cr_expect_not_null(strstr(text, "  plugin 'crash' crashed when it was loaded: Aborted\n"),
			   "%s", text);
	cr_expect_not_null(strstr(text, "  plugin 'leave' ended the process when it was loaded"),
			   "%s", text);
	cr_expect_not_null(
		strstr(text, "old.so: is built for plugin interface 0; this Weir wants 1\n"), "%s",
		text);
	cr_expect_null(strstr(text, "noise"));
	weir_loader_free(loader);
}

Test(loader, describes_one)
{
	struct weir_loader *loader = loader_here();
	g_autoptr(GError) error = NULL;
	g_autofree char *text = NULL;
	g_autofree char *expected = g_strdup_printf(
		"good, a stage: a summary\n"
		"version 3, %s/good.so\n"
		"\n"
		"Example\n"
		"  an example\n"
		"\n"
		"Options\n"
		"  [n=]NUMBER                h [1..9; default 1]\n"
		"  which=a|b                 w [must be given]\n"
		"\n"
		"Outputs\n"
		"  out                       o [the default; unconnected: passed]\n"
		"  rest                      r [unconnected: discarded]\n"
		"  full                      f [unconnected: lost]\n",
		folder);

	compile("good", "-DOPTIONS='{\"n\", WEIR_NUMBER, 0, \"1\", \"1..9\", \"h\"},"
			"{\"which\", WEIR_CHOICE, 8, 0, \"a|b\", \"w\"}' "
			"-DOUTPUTS='{\"out\", 0, 0, \"o\"}, {\"rest\", 1, 0, \"r\"}, "
			"{\"full\", 2, 0, \"f\"}'");
	text = weir_describe_plugin(loader, "good", NULL);
	cr_expect_str_eq(text, expected, "%s", text);
	cr_expect_null(weir_describe_plugin(loader, "god", &error));
	cr_expect_eq(error->code, WEIR_LOADER_NOT_FOUND);
	cr_expect_str_eq(error->message, "there is no plugin 'god'; did you mean 'good'?");
	weir_loader_free(loader);
}
