/* opening.c: opens sources, then the others; starts them in the opposite order. */
#include "opening.h"

#include "feedback.h"
#include "privileges.h"
#include "push.h"
#include "report.h"

#include <stdio.h>

static bool call(struct weir_running *run, struct weir_seat *seat,
		 bool (*callback)(struct weir_self *))
{
	struct weir_errors *errors = run->context->errors;
	unsigned before = errors->messages->len;

	if (!callback || callback(&seat->self))
		return errors->messages->len == before;
	if (errors->messages->len == before)
		weir_errors_add(errors, seat->instance->node->where, "%s cannot be opened",
				seat->self.name);
	return false;
}

/* Sources before all others, so that link types are known before a sink makes a file. */
static bool open_nodes(struct weir_running *run)
{
	bool ok = true;

	for (int sources = 1; sources >= 0 && ok; sources--) {
		for (unsigned i = 0; i < run->graph->nodes->len; i++) {
			struct weir_instance *instance = run->plan->instances[i];

			if ((instance->node->plugin->kind == WEIR_SOURCE) == sources)
				ok &= call(run, &instance->seat, instance->node->plugin->open);
		}
	}
	return ok;
}

/* What came of it is in the ledger file, since it explains what the source counts. */
static void push_down(struct weir_running *run)
{
	run->pushes = weir_push_all(run->plan, run->context->interfaces);
	for (unsigned i = 0; i < run->pushes->len; i++) {
		const struct weir_push *push = run->pushes->pdata[i];
		g_autofree char *text = weir_push_text(push);

		weir_journal_event(run->journal, push->source->name, -1, "pushdown", text);
	}
}

static bool open_lane(struct weir_running *run, struct weir_lane *lane)
{
	bool ok = true;

	for (unsigned i = 0; i < weir_lane_n_posts(lane) && ok; i++) {
		struct weir_post *post = weir_lane_nth_post(lane, i);

		ok = call(run, &post->seat, post->plugin->lane_open);
	}
	return ok;
}

static bool open_lanes(struct weir_running *run)
{
	bool ok = true;

	for (unsigned l = 0; l < run->lanes->len && ok; l++)
		ok = open_lane(run, run->lanes->pdata[l]);
	return ok;
}

/* Sinks first, so that whoever lets packets in finds everything ready. */
static bool start_nodes(struct weir_running *run)
{
	bool ok = true;

	for (unsigned i = run->graph->nodes->len; i-- > 0 && ok;) {
		struct weir_instance *instance = run->plan->instances[i];

		ok = call(run, &instance->seat, instance->node->plugin->start);
	}
	return ok;
}

bool weir_opening_start_lanes(struct weir_running *run)
{
	g_autoptr(GError) error = NULL;

	for (unsigned l = run->lanes->len; l-- > 0;) {
		if (weir_lane_start(run->lanes->pdata[l], &error))
			continue;
		weir_errors_add(run->context->errors, (struct weir_position){0}, "%s",
				error->message);
		for (unsigned i = 0; i <= l; i++)
			weir_lane_skip(run->lanes->pdata[i]);
		return false;
	}
	return true;
}

/* Threads that plugins start while they open are then sealed, too. */
static bool seal_privileges(struct weir_running *run)
{
	g_autoptr(GError) error = NULL;

	if (!run->options->user || weir_privileges_seal(run->options->user, &error))
		return true;
	weir_errors_add(run->context->errors, (struct weir_position){0}, "%s", error->message);
	return false;
}

/* From here on with the rights that the run will have, so that what it may not do shows at once. */
static bool drop_privileges(struct weir_running *run)
{
	g_autoptr(GError) error = NULL;

	if ((!run->options->user || weir_privileges_drop(run->options->user, &error)) &&
	    weir_report_check_path(run->options->report, &error) &&
	    weir_report_check_path(run->options->metrics, &error))
		return true;
	weir_errors_add(run->context->errors, (struct weir_position){0}, "%s", error->message);
	return false;
}

static void print_warnings(const GPtrArray *warnings)
{
	for (unsigned i = 0; i < warnings->len; i++)
		fprintf(stderr, "weir: warning: %s\n", (char *)warnings->pdata[i]);
}

static void warn_of_feedback(const struct weir_running *run)
{
	g_autoptr(GPtrArray) warnings = weir_feedback_find(run->graph, run->context->interfaces);

	print_warnings(warnings);
}

bool weir_opening_prepare(struct weir_running *run)
{
	print_warnings(run->plan->warnings);
	for (unsigned i = 0; i < run->graph->nodes->len; i++) {
		if (((struct weir_node *)run->graph->nodes->pdata[i])->plugin->kind == WEIR_SINK)
			run->context->unfinished_sinks++;
	}
	run->lanes = weir_lanes_new(run->plan, run->context);
	if (!run->lanes || !seal_privileges(run) || !open_nodes(run))
		return false;
	warn_of_feedback(run);
	push_down(run);
	return open_lanes(run) && drop_privileges(run) && start_nodes(run);
}
