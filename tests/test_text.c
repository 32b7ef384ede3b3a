/*
 * The form of the pipeline language: words, quotes, comments, newlines, variables, and where errors
 * are.
 */
#include "text.h"
#include "variables.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

/* Arrays, since criterion hands rows to another process. */
struct row {
	char text[64];
	char expected[256];
};

static void dump_term(GString *to, const struct weir_term *term)
{
	g_string_append_printf(to, "%s%s%s", term->name, term->output ? "." : "",
			       term->output ? term->output : "");
	for (guint i = 0; i < term->words->len; i++) {
		const struct weir_word *word = term->words->pdata[i];

		g_string_append_printf(to, "%c%s%s%s", i ? ',' : '(', word->key ? word->key : "",
				       word->key ? "=" : "", word->text->str);
	}
	g_string_append(to, term->words->len ? ")" : "");
}

/* The statements, each on a line: "name := term" or "term > term". */
static char *dump(const struct weir_text *text)
{
	GString *to = g_string_new(NULL);

	for (guint i = 0; i < text->statements->len; i++) {
		const struct weir_statement *statement = text->statements->pdata[i];

		g_string_append_printf(to, "%s%s%s", i ? "\n" : "",
				       statement->name ? statement->name : "",
				       statement->name ? " := " : "");
		for (guint t = 0; t < statement->terms->len; t++) {
			g_string_append(to, t ? " > " : "");
			dump_term(to, statement->terms->pdata[t]);
		}
	}
	return g_string_free(to, FALSE);
}

static char *join(const struct weir_errors *errors)
{
	GString *to = g_string_new(NULL);

	for (guint i = 0; i < errors->messages->len; i++)
		g_string_append_printf(to, "%s%s", i ? "\n" : "",
				       (char *)errors->messages->pdata[i]);
	return g_string_free(to, FALSE);
}

static void check(const char *source, const char *expected, const char *messages, ...)
{
	struct weir_errors *errors = weir_errors_new("t");
	GHashTable *variables = weir_variables_new();
	struct weir_text *text;
	va_list sets;
	const char *set;
	char *found;

	va_start(sets, messages);
	while ((set = va_arg(sets, const char *)) != NULL)
		cr_assert(weir_variables_add(variables, set, NULL));
	va_end(sets);
	text = weir_text_parse(source, variables, errors);
	found = join(errors);
	cr_expect_str_eq(found, messages, "errors of «%s»:\n%s\nexpected:\n%s", source, found,
			 messages);
	g_free(found);
	found = dump(text);
	if (expected)
		cr_expect_str_eq(found, expected, "«%s» is\n%s\nexpected:\n%s", source, found,
				 expected);
	g_free(found);
	weir_text_free(text);
	g_hash_table_unref(variables);
	weir_errors_free(errors);
}

ParameterizedTestParameters(text, form)
{
	static struct row rows[] = {
		{"a -> b", "a > b"},
		{"a->b->c", "a > b > c"},
		{"a x->b", "a(x) > b"},
		{"  a ->\tb  ", "a > b"},
		{"a -> b; c -> d", "a > b\nc > d"},
		{";;\n\na -> b;\n;", "a > b"},
		{"a -> b\r\nc -> d\r\n", "a > b\nc > d"},
		{"\xef\xbb\xbf"
		 "a -> b",
		 "a > b"},
		/* definitions */
		{"t = gen eth0\nt -> b", "t := gen(eth0)\nt > b"},
		{"t=gen eth0;t->b", "t := gen(eth0)\nt > b"},
		{"t =gen eth0;t->b", "t := gen(eth0)\nt > b"},
		{"t = # taken later\n\n  gen eth0\nt -> b", "t := gen(eth0)\nt > b"},
		{"t \\\n = gen\nt -> b", "t := gen\nt > b"},
		/* newlines */
		{"a ->\n\n b", "a > b"},
		{"a -> # comment\n # another\n b", "a > b"},
		{"a\n\n# comment\n  -> b", "a > b"},
		{"a \\\n -> \\\n b x \\\n k=1", "a > b(x,k=1)"},
		{"a x\\\ny=1 -> b", "a(x,y=1) > b"},
		{"a \\\r\n -> b", "a > b"},
		{"a -> b \\", "a > b"},
		/* comments */
		{"# only\na -> b # rest; of -> line\n", "a > b"},
		{"a x#y -> b", "a(x#y) > b"},
		{"a ->#c\nb", "a > b"},
		{"a 'x'#y -> b", "a(x#y) > b"},
		{"a \\#x -> b", "a(#x) > b"},
		/* quotes and escapes */
		{"a 'x -> y; z # \\ \"' -> b", "a(x -> y; z # \\ \") > b"},
		{"a \"x -> y; 'z' # \\\" \\\\ \\d\" -> b", "a(x -> y; 'z' # \" \\ \\d) > b"},
		{"a \"x\ny\" -> b", "a(x\ny) > b"},
		{"a \"x\r\ny\" -> b", "a(x\ny) > b"},
		{"a \"x\\\ny\" -> b", "a(x y) > b"},
		{"a x'y'\"z\"\\ w -> b", "a(xyz w) > b"},
		{"a '' -> b", "a() > b"},
		{"a \\-> -> b", "a(->) > b"},
		{"a x-y-->b", "a(x-y-) > b"},
		{"a x>y -> b", "a(x>y) > b"},
		{"a tcp://127.0.0.1:5555 -> b", "a(tcp://127.0.0.1:5555) > b"},
		{"a $x$ -> b", "a($x$) > b"},
		/* options: only where key and "=" are literal */
		{"a vlan=5 -> b", "a(vlan=5) > b"},
		{"a \"vlan=5\" -> b", "a(vlan=5) > b"},
		{"a x k='p q' l=\"\" m=a=b -> b", "a(x,k=p q,l=,m=a=b) > b"},
		{"a ether[12:2]=0x8100 -> b", "a(ether[12:2]=0x8100) > b"},
		{"a rotate-size=1GiB -> b", "a(rotate-size=1GiB) > b"},
		/* outputs */
		{"a.rest -> b.out -> c", "a.rest > b.out > c"},
		/* variables */
		{"a ${x:-eth1} -> b", "a(eth1) > b"},
		{"a k=${x:-} -> b", "a(k=) > b"},
		{"a ${x:-p q; -> 'r' #} -> b", "a(p q; -> 'r' #) > b"},
		{"a ${x:-\\}} -> b", "a(}) > b"},
		{"a p${x:-1}q\"r${y:-2}\" -> b", "a(p1qr2) > b"},
		{"a '${x}' -> b", "a(${x}) > b"},
		{"a \"\\${x}\" -> b", "a(${x}) > b"},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct row *row, text, form)
{
	check(row->text, row->expected, "", NULL);
}

/* "vlan=5" quoted is no option, though it prints like one. */
Test(text, quoted_words_are_no_options)
{
	static const char *const bare[] = {
		"a \"vlan=5\" -> b",   "a vlan\\=5 -> b", "a 'v'lan=5 -> b", "a ${x:-vlan}=5 -> b",
		"a ${x:-vlan=5} -> b", "a Vlan=5 -> b",   "a 5=5 -> b"};

	for (size_t i = 0; i < G_N_ELEMENTS(bare); i++) {
		struct weir_errors *errors = weir_errors_new("t");
		struct weir_text *text = weir_text_parse(bare[i], NULL, errors);
		struct weir_statement *flow = text->statements->pdata[0];
		struct weir_term *term = flow->terms->pdata[0];
		struct weir_word *word = term->words->pdata[0];

		cr_expect_null(word->key, "%s", bare[i]);
		cr_expect_eq(errors->messages->len, 0, "%s", bare[i]);
		weir_text_free(text);
		weir_errors_free(errors);
	}
}

Test(text, variables_are_filled_in_after_splitting)
{
	check("a ${x} k=${y}z -> b", "a(p q -> r;#,k='\"${x}z) > b", "", "x=p q -> r;#",
	      "y='\"${x}", NULL);
	check("a ${x:-d} ${y:-d} -> b", "a(1,d) > b", "", "x=1", "y=", NULL);
	check("a \"${x}\" -> b", "a(1) > b", "", "x=1", NULL);
}

Test(text, escaped_commas_are_kept_for_lists)
{
	struct weir_errors *errors = weir_errors_new("t");
	struct weir_text *text = weir_text_parse("a k=x\\,y,\"z\\,\" -> b", NULL, errors);
	struct weir_statement *flow = text->statements->pdata[0];
	struct weir_term *term = flow->terms->pdata[0];
	struct weir_word *word = term->words->pdata[0];

	cr_expect_str_eq(word->text->str, "x,y,z,");
	cr_expect_str_eq(word->list->str, "x\\,y,z\\,");
	weir_text_free(text);
	weir_errors_free(errors);
}

ParameterizedTestParameters(text, errors)
{
	static struct row rows[] = {
		{"", "t:1:1: the text is empty: expected SOURCE -> SINK"},
		{" # nothing\n;", "t:1:1: the text is empty: expected SOURCE -> SINK"},
		{"t = gen x", "t:1:1: there is no flow: expected NAME -> NAME"},
		{"a", "t:1:2: expected '->' instead of the end of the text"},
		{"a x\nb -> c", "t:1:4: expected '->' instead of the end of the line"},
		{"a x; b -> c", "t:1:4: expected '->' instead of ';'"},
		{"a ->",
		 "t:1:5: expected a name or a plugin after '->' instead of the end of the text"},
		{"a -> ; b -> c", "t:1:6: expected a name or a plugin after '->' instead of ';'"},
		{"-> b", "t:1:1: expected a name or a plugin instead of '->'"},
		{"a -> -> b", "t:1:6: expected a name or a plugin after '->' instead of '->'"},
		{"a; -> b", "t:1:2: expected '->' instead of ';'\n"
			    "t:1:4: expected a name or a plugin instead of '->'"},
		{"a -> 9b", "t:1:6: expected a name or a plugin after '->' instead of '9b'"},
		{"a -> b.", "t:1:6: expected a name or a plugin after '->' instead of 'b.'"},
		{"a -> b.Rest -> c",
		 "t:1:6: expected a name or a plugin after '->' instead of 'b.Rest'"},
		{"t: gen x",
		 "t:1:1: expected a name or a plugin instead of 't:'; a definition is written NAME "
		 "= PLUGIN"},
		{"a -> k=v", "t:1:6: expected a name or a plugin after '->' instead of 'k=v'"},
		{"a -> 'b'", "t:1:6: expected a name or a plugin after '->' instead of 'b'; quotes "
			     "and variables belong into arguments"},
		{"a -> ${x:-b}",
		 "t:1:6: expected a name or a plugin after '->' instead of 'b'; quotes "
		 "and variables belong into arguments"},
		{"t = ;a -> b", "t:1:5: expected a plugin instead of ';'"},
		{"t = a.rest;a -> b", "t:1:5: expected a plugin instead of the output 'a.rest'"},
		{"t = a x -> b",
		 "t:1:9: a definition ends before '->': continue with 't ->' on the "
		 "next line"},
		{"a 'x\ny -> b", "t:1:3: this quote is not closed"},
		{"a \"x -> b", "t:1:3: this quote is not closed"},
		{"a k= v -> b", "t:1:3: no blanks around '=': write k=v"},
		{"a k =v -> b", "t:1:3: no blanks around '=': write k=v"},
		{"a x k = v l=1 -> b", "t:1:5: no blanks around '=': write k=v"},
		{"a k = 'p q' -> b", "t:1:3: no blanks around '=': write k=p q"},
		{"a k= -> b", "t:1:3: 'k=' has no value; an empty one is written k=\"\""},
		{"a k= l=1 -> b", "t:1:3: 'k=' has no value; an empty one is written k=\"\""},
		{"a ${x} -> b", "t:1:3: variable 'x' is not set: use --set x=VALUE, or write "
				"${x:-VALUE}"},
		{"a \"p ${x}\" -> b", "t:1:6: variable 'x' is not set: use --set x=VALUE, or write "
				      "${x:-VALUE}"},
		{"a ${x -> b", "t:1:3: expected ${NAME} or ${NAME:-VALUE}"},
		{"a ${x:-${y}} -> b", "t:1:3: expected ${NAME} or ${NAME:-VALUE}\n"
				      "t:1:8: variable 'y' is not set: use --set y=VALUE, or write "
				      "${y:-VALUE}"},
		{"a ${} -> b", "t:1:3: expected ${NAME} or ${NAME:-VALUE}"},
		{"a ${x:-1\n} -> b", "t:1:3: expected ${NAME} or ${NAME:-VALUE}\n"
				     "t:1:9: expected '->' instead of the end of the line\n"
				     "t:2:1: expected a name or a plugin instead of '}'"},
		{"a \"\xc3\xa9\" ${x} -> b",
		 "t:1:7: variable 'x' is not set: use --set x=VALUE, or "
		 "write ${x:-VALUE}"},
		{"a \xff -> b", "t:1:3: the text is not UTF-8 here"},
		{"a \xc3\xa9\n\xc3\xa9 \xff -> b", "t:2:3: the text is not UTF-8 here"},
		{"a -> b\r\nb -> \r\n",
		 "t:3:1: expected a name or a plugin after '->' instead of the "
		 "end of the text"},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct row *row, text, errors)
{
	check(row->text, NULL, row->expected, NULL);
}

Test(text, all_errors_at_once_in_order)
{
	check("a -> 9\nt = ;c\nb ${x} k= -> c", NULL,
	      "t:1:6: expected a name or a plugin after '->' instead of '9'\n"
	      "t:2:5: expected a plugin instead of ';'\n"
	      "t:2:7: expected '->' instead of the end of the line\n"
	      "t:3:3: variable 'x' is not set: use --set x=VALUE, or write ${x:-VALUE}\n"
	      "t:3:8: 'k=' has no value; an empty one is written k=\"\"",
	      NULL);
}

Test(text, sets_that_nothing_uses)
{
	check("a ${x} -> b", NULL,
	      "t: --set one: the text has no ${one}\nt: --set two: the text has no ${two}", "x=1",
	      "two=2", "one=1", NULL);
	check("a '${x}' -> b", NULL, "t: --set x: the text has no ${x}", "x=1", NULL);
	check("a ${ifac} -> b", NULL,
	      "t:1:3: variable 'ifac' is not set: use --set ifac=VALUE, or write ${ifac:-VALUE}; "
	      "did "
	      "you mean 'iface'?\nt: --set iface: the text has no ${iface}",
	      "iface=1", NULL);
}

ParameterizedTestParameters(text, refused_sets)
{
	static struct row rows[] = {
		{"", "--set : expected NAME=VALUE, or NAME to take it from the environment"},
		{"=x", "--set =x: expected NAME=VALUE, or NAME to take it from the environment"},
		{"9=x", "--set 9=x: expected NAME=VALUE, or NAME to take it from the environment"},
		{"a b=x",
		 "--set a b=x: expected NAME=VALUE, or NAME to take it from the environment"},
		{"WEIR_NO_SUCH",
		 "--set WEIR_NO_SUCH: no such variable in the environment; expected "
		 "NAME=VALUE"},
		{"x=\xff", "--set x: the value is not UTF-8"},
		{"given=2", "--set given is given twice"},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct row *row, text, refused_sets)
{
	GHashTable *variables = weir_variables_new();
	GError *error = NULL;

	g_unsetenv("WEIR_NO_SUCH");
	cr_assert(weir_variables_add(variables, "given=1", NULL));
	cr_assert_not(weir_variables_add(variables, row->text, &error));
	cr_expect_str_eq(error->message, row->expected);
	g_clear_error(&error);
	g_hash_table_unref(variables);
}

Test(text, set_from_the_environment)
{
	GHashTable *variables = weir_variables_new();

	g_setenv("WEIR_TEST", "a=b", TRUE);
	cr_assert(weir_variables_add(variables, "WEIR_TEST", NULL));
	cr_expect_str_eq(g_hash_table_lookup(variables, "WEIR_TEST"), "a=b");
	cr_assert(weir_variables_add(variables, "x=a=b", NULL));
	cr_expect_str_eq(g_hash_table_lookup(variables, "x"), "a=b");
	g_hash_table_unref(variables);
}

ParameterizedTestParameters(text, nearest)
{
	static struct row rows[] = {
		{"lane", "lanes"}, {"fnaout", "fanout"}, {"rotat-size", "rotate-size"},
		{"x", ""},         {"lanes", "lanes"},   {"nothing-like-it", ""},
		{"fan", ""},       {"foutan", ""},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct row *row, text, nearest)
{
	static const char *const known[] = {"lanes", "fanout", "rotate-size", "y", NULL};
	const char *found = weir_nearest(row->text, known);

	cr_expect_str_eq(found ? found : "", row->expected, "%s: %s, expected %s", row->text, found,
			 row->expected);
}
