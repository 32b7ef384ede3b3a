/*
 * From text to graph: names, nodes, edges, options, order; and every refusal of the language with
 * its place.
 */
#include "graph.h"
#include "samples.h"
#include "variables.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdlib.h>
#include <string.h>

struct row {
	char text[128];
	char expected[384];
};

static char *join(const struct weir_errors *errors)
{
	GString *to = g_string_new(NULL);

	for (guint i = 0; i < errors->messages->len; i++)
		g_string_append_printf(to, "%s%s", i ? "\n" : "",
				       (char *)errors->messages->pdata[i]);
	return g_string_free(to, FALSE);
}

static void check_errors(const char *text, const char *expected)
{
	struct weir_loader *loader = sample_loader();
	struct weir_errors *errors = weir_errors_new("t");
	struct weir_graph *graph = weir_graph_new(text, NULL, loader, errors);
	char *found = join(errors);

	cr_expect_str_eq(found, expected, "«%s» says\n%s\nexpected:\n%s", text, found, expected);
	cr_expect_eq(graph == NULL, *expected != '\0');
	g_free(found);
	weir_graph_free(graph);
	weir_errors_free(errors);
	weir_loader_free(loader);
}

/* A graph that must be right, with what it needs to live. */
struct built {
	struct weir_loader *loader;
	struct weir_errors *errors;
	struct weir_graph *graph;
};

static struct built build(const char *text)
{
	struct built built = {sample_loader(), weir_errors_new("t"), NULL};
	char *found;

	built.graph = weir_graph_new(text, NULL, built.loader, built.errors);
	found = join(built.errors);
	cr_assert_not_null(built.graph, "«%s» says\n%s", text, found);
	g_free(found);
	return built;
}

static void built_free(struct built *built)
{
	weir_graph_free(built->graph);
	weir_errors_free(built->errors);
	weir_loader_free(built->loader);
}

static struct weir_node *node(const struct built *built, const char *name)
{
	for (guint i = 0; i < built->graph->nodes->len; i++) {
		struct weir_node *each = built->graph->nodes->pdata[i];

		if (!strcmp(each->name, name))
			return each;
	}
	cr_log_error("there is no node '%s'", name);
	abort();
}

/* The nodes in their order, and behind each what its outputs feed: "tap(out>keys) keys(rest>disk)
 * disk". */
static char *shape(const struct weir_graph *graph)
{
	GString *to = g_string_new(NULL);

	for (guint n = 0; n < graph->nodes->len; n++) {
		const struct weir_node *each = graph->nodes->pdata[n];
		const char *separator = "(";

		cr_expect_eq(each->index, n);
		g_string_append_printf(to, "%s%s", n ? " " : "", each->name);
		for (unsigned o = 0; o < each->n_outputs; o++) {
			for (guint e = 0; e < each->out[o]->len; e++) {
				const struct weir_edge *edge = each->out[o]->pdata[e];

				g_string_append_printf(to, "%s%s>%s", separator,
						       weir_plugin_output(each->plugin, o)->name,
						       edge->to->name);
				separator = " ";
			}
		}
		g_string_append(to, *separator == ' ' ? ")" : "");
	}
	return g_string_free(to, FALSE);
}

ParameterizedTestParameters(graph, shapes)
{
	static struct row rows[] = {
		{"gen x -> void", "gen:1(out>void:1) void:1"},
		{"t = gen x\nk = sift f\nd = file /f\nt -> k -> d\nk.rest -> cut 128 -> d",
		 "t(out>k) k(match>d rest>cut:1) cut:1(out>d) d"},
		/* names hold for the whole text, in any order */
		{"t -> k -> d\nd = void\nk = cut 5\nt = gen x", "t(out>k) k(out>d) d"},
		/* a -> keys.rest -> b enters keys and goes on from rest */
		{"gen x -> k.rest -> void\nk = sift f", "gen:1(out>k) k(rest>void:1) void:1"},
		{"gen x -> cut 5 -> cut 6 -> void; gen y -> void",
		 "gen:1(out>cut:1) cut:1(out>cut:2) cut:2(out>void:1) void:1 gen:2(out>void:2) "
		 "void:2"},
		/* a defined name wins over a plugin of that name */
		{"cut = sift f; gen x -> cut.rest -> void",
		 "gen:1(out>cut) cut(rest>void:1) void:1"},
		/* topological, ties in the order of the text */
		{"d = void; c = cut 3; b = cut 2; a = cut 1; gen x -> a -> c -> d; gen y -> b -> d",
		 "gen:1(out>a) a(out>c) c(out>d) gen:2(out>b) b(out>d) d"},
		/* both outputs to one node are two edges */
		{"s = sift f; d = void; gen x -> s -> d; s.rest -> d",
		 "gen:1(out>s) s(match>d rest>d) d"},
		{"gen x -> queue 1MiB lanes=4 -> void",
		 "gen:1(out>queue:1) queue:1(out>void:1) void:1"},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct row *row, graph, shapes)
{
	struct built built = build(row->text);
	char *found = shape(built.graph);

	cr_expect_str_eq(found, row->expected, "«%s» is\n%s\nexpected:\n%s", row->text, found,
			 row->expected);
	g_free(found);
	built_free(&built);
}

Test(graph, options)
{
	struct built built = build("t = gen eth1 timeout=5s lanes=2\n"
				   "d = file path=/f keep-free=20% extras=ttl,mac rate=1kpps\n"
				   "t -> d");
	const struct weir_node *tap = node(&built, "t");
	const struct weir_node *disk = node(&built, "d");
	const struct gen_config *gen = tap->config;
	const struct file_config *file = disk->config;

	cr_expect_str_eq(gen->iface, "eth1");
	cr_expect_eq(gen->lanes, 2);
	cr_expect_eq(gen->fanout, 0);
	cr_expect_eq(gen->timeout_ns, 5000000000);
	cr_expect(gen->promisc);
	cr_expect_str_eq(file->path, "/f");
	cr_expect(file->keep_free.percent == 20);
	cr_expect_eq(file->extras, 5);
	cr_expect(file->rate.per_second == 1000 && file->rate.packets == 1);
	built_free(&built);
}

/* The report prints each option as it holds; errors of check() point at where it was given. */
Test(graph, effective_options)
{
	struct built built = build("t =\n gen eth1 lanes=${n:-3}\nt -> file '/f'");
	const struct weir_value *values = node(&built, "t")->values;

	cr_expect_str_eq(values[0].text, "eth1");
	cr_expect(values[0].given && values[0].where.line == 2 && values[0].where.column == 6);
	cr_expect_str_eq(values[1].text, "3");
	cr_expect(values[1].given && values[1].where.line == 2 && values[1].where.column == 11);
	cr_expect_str_eq(values[2].text, "hash");
	cr_expect(!values[2].given && values[2].where.line == 2 && values[2].where.column == 2);
	cr_expect_null(node(&built, "file:1")->values[1].text);
	cr_expect_eq(node(&built, "t")->where.line, 1);
	built_free(&built);
}

Test(graph, lists)
{
	struct built built = build("gen x -> pub e topics=a\\,b,\"c d\"");
	const struct pub_config *pub = node(&built, "pub:1")->config;

	cr_expect_str_eq(pub->topics[0], "a,b");
	cr_expect_str_eq(pub->topics[1], "c d");
	cr_expect_null(pub->topics[2]);
	cr_expect_str_eq(node(&built, "pub:1")->values[1].text, "a\\,b,c d");
	built_free(&built);
}

Test(graph, edges_know_their_place)
{
	struct built built = build("gen x -> cut 5\n  -> void");
	const struct weir_edge *edge = built.graph->edges->pdata[1];

	cr_expect_eq(edge->where.line, 2);
	cr_expect_eq(edge->where.column, 6);
	cr_expect_eq(node(&built, "void:1")->in->pdata[0], edge);
	built_free(&built);
}

ParameterizedTestParameters(graph, refused)
{
	static struct row rows[] = {
		/* unknown words */
		{"gne x -> void", "t:1:1: there is no plugin 'gne'; did you mean 'gen'?"},
		{"gen x -> viod",
		 "t:1:10: there is no plugin or name 'viod'; did you mean 'void'?"},
		{"disk = void; gen x -> dsik",
		 "t:1:1: no flow uses 'disk'\n"
		 "t:1:23: there is no plugin or name 'dsik'; did you mean 'disk'?"},
		{"t = gne x; t -> void", "t:1:5: there is no plugin 'gne'; did you mean 'gen'?"},
		{"gen x lane=2 -> void", "t:1:7: gen has no option 'lane'; did you mean 'lanes'?"},
		{"gen x huh=2 -> void",
		 "t:1:7: gen has no option 'huh'; it has iface, lanes, fanout, "
		 "timeout, promisc"},
		{"gen x -> void huh=2", "t:1:15: void has no option 'huh'; it has none"},
		{"s = sift f; gen x -> s.rst -> void",
		 "t:1:24: sift has no output 'rst'; did you mean 'rest'?"},
		{"s = sift f; gen x -> s.other -> void",
		 "t:1:24: sift has no output 'other'; it has match, rest"},
		{"gen x -> nix.out -> void", "t:1:10: there is no name 'nix'"},
		{"gen x -> sift.rest f -> void", "t:1:10: 'sift' is a plugin, and outputs belong "
						 "to names: define NAME = sift …, then "
						 "write NAME.rest"},
		/* names */
		{"t = gen x\nt = gen y\nt -> void",
		 "t:2:1: the name 't' is given twice; it is defined in line 1"},
		{"t = gen x; t lanes=2 -> void",
		 "t:1:14: 't' is a name: its options stand where it is defined, in line 1"},
		/* ends */
		{"cut 5 -> void", "t:1:1: nothing feeds 'cut:1': expected '->' before it"},
		{"c = cut 5; c -> void", "t:1:1: nothing feeds 'c': expected '->' before it"},
		{"gen x -> cut 5", "t:1:10: 'cut:1' leads nowhere: expected '->' behind it"},
		{"t = gen x; c = cut 5; t -> c",
		 "t:1:12: 'c' leads nowhere: expected '->' behind it"},
		{"t = gen x; gen y -> void", "t:1:1: no flow uses 't'"},
		{"s = sift f; gen x -> s.rest",
		 "t:1:22: an output cannot end a flow: expected '->' after 's.rest'"},
		{"gen x -> gen y -> void", "t:1:10: 'gen:2' is a source, and cannot be fed"},
		{"gen x -> void -> file /f", "t:1:10: 'void:1' is a sink, and cannot be read"},
		{"v = void; gen x -> v.full -> file /f",
		 "t:1:22: the outcomes of sink 'v' are counted, and cannot be connected"},
		/* edges */
		{"t = gen x; v = void; t -> v; t -> v", "t:1:35: 't.out -> v' is there twice"},
		{"a = cut 1; b = cut 2; gen x -> a -> b -> a; b -> void",
		 "t:1:42: a cycle: a -> b -> a"},
		{"a = cut 1; gen x -> a -> a -> void", "t:1:26: a cycle: a -> a"},
		{"a = cut 1; b = cut 1; gen x -> a -> a -> void; gen y -> b -> b -> void",
		 "t:1:37: a cycle: a -> a\nt:1:62: a cycle: b -> b"},
		/* options */
		{"gen -> void", "t:1:1: gen needs its iface: the interface"},
		{"gen x iface=y -> void", "t:1:7: gen: option 'iface' is given twice"},
		{"gen x lanes=1 lanes=1 -> void", "t:1:15: gen: option 'lanes' is given twice"},
		{"gen x lanes=0 -> void", "t:1:7: gen lanes=0: expected a number, in 1..64"},
		{"gen x fanout=hsh -> void",
		 "t:1:7: gen fanout=hsh: expected one of hash, rnd, lb; "
		 "did you mean 'hash'?"},
		{"gen x -> cut 1G -> void",
		 "t:1:14: cut 1G: expected a size such as 64KiB, 10MB or 1500, in 1..262144; '1G' "
		 "could be 1GB (decimal) or 1GiB (binary)"},
		{"gen x -> cut ${n:-0} -> void",
		 "t:1:14: cut 0: expected a size such as 64KiB, 10MB or "
		 "1500, in 1..262144"},
		{"gen x -> file ''", "t:1:15: file \"\": expected the name of a file"},
		/* usual slips */
		{"gen x -> sift host 10.0.0.1 vlan=skip and tcp -> void",
		 "t:1:20: sift takes one bare word, its filter: put several words in quotes: sift "
		 "\"host 10.0.0.1 and tcp\""},
		{"gen x -> sift vlan=skip tcp -> void",
		 "t:1:25: 'tcp' must stand before the options: sift tcp …"},
		{"gen x lanes -> void",
		 "t:1:7: gen takes one bare word, its iface; 'lanes' is an option: write lanes=…"},
		{"gen x -> void y", "t:1:15: void takes no argument"},
		{"gen x tcp -> void",
		 "t:1:7: gen takes one bare word, its iface: put several words in quotes: gen \"x "
		 "tcp\"; a filter stands behind it: -> bpf \"tcp\""},
		{"gen x | void", "t:1:7: expected '->' instead of '|'\n"
				 "t:1:13: expected '->' instead of the end of the text"},
		{"gen x => void", "t:1:7: expected '->' instead of '=>'\n"
				  "t:1:14: expected '->' instead of the end of the text"},
		{"gen x - > void", "t:1:7: expected '->' instead of '-'\n"
				   "t:1:15: expected '->' instead of the end of the text"},
		{"gen x -> void |", "t:1:15: expected '->' instead of '|'"},
		{"gen x lanes = 2 -> void", "t:1:7: no blanks around '=': write lanes=2"},
		{"gen x lanes= 0 -> void", "t:1:7: no blanks around '=': write lanes=0\n"
					   "t:1:7: gen lanes=0: expected a number, in 1..64"},
		{"gen x filter='tcp port 5' -> void",
		 "t:1:7: gen has no option 'filter'; write -> bpf \"tcp port 5\": it goes into the "
		 "kernel, see weir plan"},
		{"gen x -> file -",
		 "t:1:15: file writes files, and '-' is none: for standard output use pipe -"},
		/* one file, one endpoint */
		{"gen x -> file /tmp/a; gen x -> file /tmp/../tmp/a",
		 "t:1:37: 'file:1' and 'file:2' have the same file /tmp/../tmp/a"},
		{"gen x -> pub tcp://*:5; gen x -> pub tcp://*:5",
		 "t:1:38: 'pub:1' and 'pub:2' have the same endpoint tcp://*:5"},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct row *row, graph, refused)
{
	check_errors(row->text, row->expected);
}

Test(graph, all_errors_at_once)
{
	check_errors(
		"tap = gen eth0 lane=2 lanes=99\n"
		"keys = sift host 10.0.0.5\n"
		"tap -> keys -> dsk\n"
		"keys.rst -> cut 1G -> file -\n"
		"tap -> -> void\n"
		"a = cut 5 b=6\n",
		"t:1:16: gen has no option 'lane'; did you mean 'lanes'?\n"
		"t:1:23: gen lanes=99: expected a number, in 1..64\n"
		"t:2:18: sift takes one bare word, its filter: put several words in quotes: sift "
		"\"host 10.0.0.5\"\n"
		"t:3:16: there is no plugin or name 'dsk'; plugins are looked for in no folder: "
		"see weir plugins\n"
		"t:4:6: sift has no output 'rst'; did you mean 'rest'?\n"
		"t:4:17: cut 1G: expected a size such as 64KiB, 10MB or 1500, in 1..262144; '1G' "
		"could be 1GB (decimal) or 1GiB (binary)\n"
		"t:4:28: file writes files, and '-' is none: for standard output use pipe -\n"
		"t:5:8: expected a name or a plugin after '->' instead of '->'\n"
		"t:6:1: no flow uses 'a'\n"
		"t:6:11: cut has no option 'b'; it has bytes");
}

Test(graph, what_cannot_be_read_excuses_what_it_mentions)
{
	check_errors("d = file /f; c = cut 5; gen x -> c; -> d",
		     "t:1:14: 'c' leads nowhere: expected '->' behind it\n"
		     "t:1:37: expected a name or a plugin instead of '->'");
}

Test(graph, names_that_differ_in_each_node_may_be_alike)
{
	check_errors("gen x -> file /tmp/%{node}; gen x -> file /tmp/%{node}", "");
}

Test(graph, dot)
{
	struct built built = build("t = gen 'a\"b'; k = sift f; t -> k -> void; k.rest -> file /f");
	char *dot = weir_graph_dot(built.graph);

	cr_expect_str_eq(dot, "digraph weir {\n"
			      "\trankdir=LR;\n"
			      "\t\"t\" [shape=ellipse, label=\"t\\ngen a\\\"b\"];\n"
			      "\t\"k\" [shape=box, label=\"k\\nsift f\"];\n"
			      "\t\"void:1\" [shape=cylinder, label=\"void:1\\nvoid\"];\n"
			      "\t\"file:1\" [shape=cylinder, label=\"file:1\\nfile /f\"];\n"
			      "\t\"t\" -> \"k\";\n"
			      "\t\"k\" -> \"void:1\";\n"
			      "\t\"k\" -> \"file:1\" [label=\"rest\"];\n"
			      "}\n");
	g_free(dot);
	built_free(&built);
}

/* Two graphs side by side share nothing: that is what a change of a running pipeline will need. */
Test(graph, two_at_once)
{
	struct built one = build("gen x -> void");
	struct built two = build("gen y -> void");

	cr_expect_str_eq(((const struct gen_config *)node(&one, "gen:1")->config)->iface, "x");
	cr_expect_str_eq(((const struct gen_config *)node(&two, "gen:1")->config)->iface, "y");
	built_free(&one);
	cr_expect_str_eq(((const struct gen_config *)node(&two, "gen:1")->config)->iface, "y");
	built_free(&two);
}
