/* report.c: the report of a run as JSON, and how files of numbers are written. */
#include "report.h"

#include "json.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

const char *weir_node_kind(const struct weir_node *node)
{
	static const char *const names[] = {
		[WEIR_SOURCE] = "source", [WEIR_STAGE] = "stage", [WEIR_SINK] = "sink"};

	return names[node->plugin->kind];
}

static const char *meaning_name(const struct weir_node *node, unsigned output)
{
	static const char *const names[] = {
		[WEIR_PASS] = "pass", [WEIR_DISCARD] = "discard", [WEIR_LOSS] = "loss"};

	return names[weir_node_meaning(node, output)];
}

/* ---- What is done in the kernel ---- */

const struct weir_push *weir_report_push(const struct weir_report *report,
					 const struct weir_node *node)
{
	for (unsigned i = 0; report->pushes && i < report->pushes->len; i++) {
		const struct weir_push *push = report->pushes->pdata[i];

		if (push->source == node && push->what)
			return push;
	}
	return NULL;
}

bool weir_report_kept_out(const struct weir_ledger_node *entry, uint64_t *ret_packets)
{
	bool known = false;

	*ret_packets = 0;
	for (unsigned i = 0; i < entry->node->n_counters; i++) {
		if (!(weir_plugin_counter(entry->node->plugin, i)->role & WEIR_IS_KEPT_OUT) ||
		    !entry->total.counter_set[i])
			continue;
		*ret_packets += entry->total.counters[i];
		known = true;
	}
	return known;
}

static void set_push(JsonObject *object, const struct weir_push *push,
		     const struct weir_ledger_node *entry)
{
	uint64_t kept_out;

	if (!push)
		return;
	weir_json_set_text(object, "pushed_down", push->what);
	if (weir_report_kept_out(entry, &kept_out))
		weir_json_set_count(object, "kept_out", kept_out);
	else
		json_object_set_null_member(object, "kept_out");
}

/* ---- A node ---- */

static JsonObject *options_of(const struct weir_node *node)
{
	JsonObject *options = json_object_new();

	for (unsigned i = 0; i < node->n_options; i++)
		weir_json_set_text(options, weir_plugin_option(node->plugin, i)->name,
				   node->values[i].text);
	return options;
}

/* Outcomes that were settled after the packets had gone have no wire bytes, so sinks say none. */
static JsonObject *count_of(const struct weir_count *count, bool wire)
{
	JsonObject *object = json_object_new();

	weir_json_set_count(object, "packets", count->packets);
	weir_json_set_count(object, "captured_bytes", count->captured);
	if (wire)
		weir_json_set_count(object, "wire_bytes", count->wire);
	return object;
}

static JsonObject *outputs_of(const struct weir_node *node, const struct weir_row *row,
			      bool meanings)
{
	JsonObject *outputs = json_object_new();

	for (unsigned i = 0; i < node->n_outputs; i++) {
		JsonObject *output = count_of(&row->out[i], node->plugin->kind != WEIR_SINK);

		if (meanings)
			weir_json_set_text(output, "means", meaning_name(node, i));
		json_object_set_object_member(outputs, weir_plugin_output(node->plugin, i)->name,
					      output);
	}
	return outputs;
}

static void set_unless_0(JsonObject *object, const char *name, uint64_t count)
{
	if (count)
		weir_json_set_count(object, name, count);
}

static void set_row(JsonObject *object, const struct weir_node *node, const struct weir_row *row,
		    bool meanings)
{
	JsonObject *counters = json_object_new();

	if (node->plugin->kind != WEIR_SOURCE)
		json_object_set_object_member(object, "in", count_of(&row->in, true));
	json_object_set_object_member(object, "outputs", outputs_of(node, row, meanings));
	set_unless_0(object, "made", row->made);
	set_unless_0(object, "absorbed", row->absorbed);
	for (unsigned i = 0; i < node->n_counters; i++) {
		if (row->counter_set[i])
			weir_json_set_count(counters, weir_plugin_counter(node->plugin, i)->name,
					    row->counters[i]);
	}
	json_object_set_object_member(object, "counters", counters);
}

static JsonObject *node_of(const struct weir_report *report, const struct weir_ledger_node *entry)
{
	const struct weir_node *node = entry->node;
	JsonObject *object = json_object_new();
	JsonArray *lanes = json_array_new();

	weir_json_set_text(object, "name", node->name);
	weir_json_set_text(object, "kind", weir_node_kind(node));
	weir_json_set_text(object, "plugin", node->plugin->name);
	weir_json_set_text(object, "plugin_version", node->plugin->version);
	json_object_set_object_member(object, "options", options_of(node));
	set_push(object, weir_report_push(report, node), entry);
	set_row(object, node, &entry->total, true);
	if (entry->held)
		json_object_set_int_member(
			object, node->plugin->kind == WEIR_SINK ? "pending" : "held", entry->held);
	for (unsigned i = 0; i < entry->n_lanes; i++) {
		JsonObject *lane = json_object_new();

		weir_json_set_count(lane, "lane", i);
		set_row(lane, node, &entry->lanes[i], false);
		json_array_add_object_element(lanes, lane);
	}
	json_object_set_array_member(object, "lanes", lanes);
	return object;
}

/* ---- The run ---- */

static JsonArray *losses_of(const struct weir_ledger *ledger)
{
	g_autoptr(GArray) losses = weir_ledger_losses(ledger);
	JsonArray *array = json_array_new();

	for (unsigned i = 0; i < losses->len; i++) {
		const struct weir_loss *loss = &g_array_index(losses, struct weir_loss, i);
		JsonObject *object = json_object_new();

		weir_json_set_text(object, "node", loss->node->name);
		weir_json_set_text(object, "what", loss->what);
		weir_json_set_count(object, "packets", loss->packets);
		json_array_add_object_element(array, object);
	}
	return array;
}

static void add_text(JsonArray *array, const char *text)
{
	g_autofree char *valid = g_utf8_make_valid(text, -1);

	json_array_add_string_element(array, valid);
}

void weir_report_set_verdict(JsonObject *object, const struct weir_report *report)
{
	const struct weir_ledger *ledger = report->ledger;
	JsonArray *problems = json_array_new();
	JsonArray *errors = json_array_new();

	if (report->balanced < 0)
		json_object_set_null_member(object, "balanced");
	else
		json_object_set_boolean_member(object, "balanced", report->balanced);
	weir_json_set_count(object, "lost", ledger->lost);
	if (ledger->has_nic)
		weir_json_set_count(object, "nic", ledger->nic);
	json_object_set_array_member(object, "losses", losses_of(ledger));
	for (unsigned i = 0; i < ledger->problems->len; i++)
		add_text(problems, ledger->problems->pdata[i]);
	json_object_set_array_member(object, "problems", problems);
	for (unsigned i = 0; report->messages && report->messages[i]; i++)
		add_text(errors, report->messages[i]);
	json_object_set_array_member(object, "errors", errors);
}

static JsonArray *threads_of(const struct weir_report *report)
{
	JsonArray *threads = json_array_new();

	for (unsigned i = 0; i < report->n_threads; i++) {
		JsonObject *thread = json_object_new();

		weir_json_set_text(thread, "name", report->threads[i].name);
		json_object_set_double_member(thread, "cpu_seconds",
					      report->threads[i].cpu_seconds);
		json_array_add_object_element(threads, thread);
	}
	return threads;
}

char *weir_report_json(const struct weir_report *report)
{
	JsonObject *object = json_object_new();
	JsonArray *nodes = json_array_new();
	g_autofree char *text = NULL;

	weir_json_set_machine(object);
	weir_json_set_time(object, "start", report->start_us);
	weir_json_set_time(object, "end", report->end_us);
	weir_json_set_text(object, "source", report->graph->source);
	weir_json_set_text(object, "pipeline", report->graph->text);
	weir_report_set_verdict(object, report);
	json_object_set_double_member(object, "cpu_seconds", report->cpu_seconds);
	json_object_set_array_member(object, "threads", threads_of(report));
	for (unsigned i = 0; i < report->ledger->n_nodes; i++)
		json_array_add_object_element(nodes, node_of(report, &report->ledger->nodes[i]));
	json_object_set_array_member(object, "nodes", nodes);
	text = weir_json_text(object, TRUE);
	return g_strconcat(text, "\n", NULL);
}

/* ---- Files ---- */

static bool write_in_place(const char *path, const char *text, GError **error)
{
	FILE *file = fopen(path, "we");
	bool ok = file && fputs(text, file) >= 0;

	ok = (!file || fclose(file) == 0) && ok;
	if (!ok)
		g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(errno),
			    "%s cannot be written: %s", path, g_strerror(errno));
	return ok;
}

static bool is_replaced(const char *path)
{
	struct stat now;

	return lstat(path, &now) != 0 || S_ISREG(now.st_mode);
}

/* Why the path cannot be written, as errno says it; 0: it can. */
static int obstacle(const char *path)
{
	g_autofree char *folder = g_path_get_dirname(path);

	if (g_file_test(path, G_FILE_TEST_IS_DIR))
		return EISDIR;
	return (is_replaced(path) ? access(folder, W_OK | X_OK) : access(path, W_OK)) == 0 ? 0
											   : errno;
}

bool weir_report_check_path(const char *path, GError **error)
{
	int number = path ? obstacle(path) : 0;

	if (number)
		g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(number),
			    "%s cannot be written: %s", path, g_strerror(number));
	return number == 0;
}

bool weir_report_write(const char *path, const char *text, GError **error)
{
	if (!is_replaced(path))
		return write_in_place(path, text, error);
	return g_file_set_contents(path, text, -1, error);
}
