/* interim.c: a least report until report.c and its companions land; whoever lands them deletes this
 * file. */
#include "report.h"
#include "journal.h"
#include "plan_text.h"
#include "versions.h"
#include <inttypes.h>

char *weir_report_json(const struct weir_report *report)
{
	GString *s = g_string_new("{");
	g_string_append_printf(s, "\"balanced\": %s, \"lost\": %" PRIu64,
			       report->balanced == 1   ? "true"
			       : report->balanced == 0 ? "false"
						       : "null",
			       report->ledger->lost);
	if (report->ledger->has_nic)
		g_string_append_printf(s, ", \"nic\": %" PRIu64, report->ledger->nic);
	g_string_append(s, ", \"nodes\": [");
	for (unsigned n = 0; n < report->ledger->n_nodes; n++) {
		const struct weir_ledger_node *e = &report->ledger->nodes[n];
		g_string_append_printf(
			s,
			"%s{\"name\": \"%s\", \"plugin\": \"%s\", \"in\": {\"packets\": %" PRIu64
			"}, \"outputs\": {",
			n ? ", " : "", e->node->name, e->node->plugin->name, e->total.in.packets);
		for (unsigned i = 0; i < e->node->n_outputs; i++)
			g_string_append_printf(
				s,
				"%s\"%s\": {\"packets\": %" PRIu64 ", \"captured\": %" PRIu64
				", \"wire\": %" PRIu64 "}",
				i ? ", " : "", weir_plugin_output(e->node->plugin, i)->name,
				e->total.out[i].packets, e->total.out[i].captured,
				e->total.out[i].wire);
		g_string_append(s, "}, \"counters\": {");
		for (unsigned i = 0, k = 0; i < e->node->n_counters; i++)
			if (e->total.counter_set[i])
				g_string_append_printf(
					s, "%s\"%s\": %" PRIu64, k++ ? ", " : "",
					weir_plugin_counter(e->node->plugin, i)->name,
					e->total.counters[i]);
		g_string_append(s, "}}");
	}
	g_string_append(s, "]}\n");
	return g_string_free(s, FALSE);
}
bool weir_report_write(const char *path, const char *text, GError **error)
{
	return g_file_set_contents(path, text, -1, error);
}
void weir_report_print(const struct weir_report *report, FILE *to)
{
	char *s = weir_report_json(report);
	fputs(s, to);
	g_free(s);
	for (unsigned i = 0; i < report->ledger->problems->len; i++)
		fprintf(to, "PROBLEM %s\n", (char *)report->ledger->problems->pdata[i]);
}
char *weir_report_metrics(const struct weir_report *report)
{
	(void)report;
	return g_strdup("");
}
struct weir_journal *weir_journal_open(const char *path, GError **error)
{
	(void)path;
	(void)error;
	return NULL;
}
void weir_journal_close(struct weir_journal *journal)
{
	(void)journal;
}
void weir_journal_event(struct weir_journal *journal, const char *node, int lane, const char *event,
			const char *detail)
{
	(void)journal, (void)node, (void)lane, (void)event, (void)detail;
}
void weir_journal_interval(struct weir_journal *journal, const struct weir_report *report)
{
	(void)journal, (void)report;
}
char *weir_plan_text(const struct weir_plan *plan)
{
	(void)plan;
	return g_strdup("");
}
void weir_versions_print(FILE *to)
{
	fputs("weir " WEIR_VERSION "\n", to);
}
