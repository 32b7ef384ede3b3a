/*
 * text.c: the parser of the pipeline language.  After an error it goes on with the next statement,
 * so that all errors are found at once.
 */
#include "text.h"

#include <string.h>

struct parser {
	struct weir_scanner scan;
	struct weir_text *text;
};

static void term_free(struct weir_term *term)
{
	if (!term)
		return;
	g_free(term->name);
	g_free(term->output);
	g_ptr_array_unref(term->words);
	g_free(term);
}

static void statement_free(struct weir_statement *statement)
{
	g_free(statement->name);
	g_ptr_array_unref(statement->terms);
	g_free(statement);
}

void weir_text_free(struct weir_text *text)
{
	if (!text)
		return;
	g_ptr_array_unref(text->statements);
	g_hash_table_unref(text->mentioned);
	g_free(text);
}

static struct weir_statement *add_statement(struct parser *p)
{
	struct weir_statement *statement = g_new0(struct weir_statement, 1);

	statement->where = p->scan.where;
	statement->terms = g_ptr_array_new_with_free_func((GDestroyNotify)term_free);
	g_ptr_array_add(p->text->statements, statement);
	return statement;
}

/* What is passed over may still be what feeds or reads a node: its names are remembered. */
static void pass_over(struct parser *p)
{
	enum weir_token token;

	while ((token = weir_scanner_peek(&p->scan)) < WEIR_TOKEN_END) {
		struct weir_word *word;

		if (token == WEIR_TOKEN_ARROW) {
			weir_scanner_take(&p->scan);
			continue;
		}
		word = weir_scanner_word(&p->scan);
		g_hash_table_add(p->text->mentioned,
				 g_strndup(word->text->str, weir_name_length(word->text->str)));
		weir_word_free(word);
	}
}

static const char *token_name(const struct weir_scanner *s, enum weir_token token)
{
	if (token == WEIR_TOKEN_ARROW)
		return "'->'";
	if (token == WEIR_TOKEN_EOF)
		return "the end of the text";
	return *s->at == ';' ? "';'" : "the end of the line";
}

/* ---- Words ---- */

static bool is_empty(const struct weir_word *word)
{
	return *word->text->str == '\0' && !word->quoted && !word->broken;
}

/* Arrows of other languages, which look like parts of options where they stand. */
static bool is_false_arrow(const struct weir_word *word)
{
	return !word->quoted && strcmp(word->text->str, "=>") == 0;
}

static bool could_be_key(const struct weir_word *word)
{
	return !word->key && !word->quoted && word->text->len &&
	       weir_key_length(word->text->str) == word->text->len;
}

static struct weir_word *word_at(const GPtrArray *words, guint i)
{
	return i < words->len ? words->pdata[i] : NULL;
}

/* Takes the value of `from`, without its first `skip` bytes, over into `word`. */
static void take_value(struct weir_word *word, const struct weir_word *from, size_t skip)
{
	g_string_assign(word->text, from->text->str + skip);
	g_string_assign(word->list, from->list->str + skip);
	word->quoted |= from->quoted;
	word->broken |= from->broken;
}

/* `key = value` is read as what was meant, so that the value is judged too, and refused. */
static void mend_option(struct weir_errors *errors, GPtrArray *words, guint i)
{
	struct weir_word *word = word_at(words, i), *next = word_at(words, i + 1);
	bool blanks = false;

	if (next && next->equals && !is_false_arrow(next) && could_be_key(word)) {
		word->key = g_strdup(word->text->str);
		take_value(word, next, 1);
		g_ptr_array_remove_index(words, i + 1);
		next = word_at(words, i + 1);
		blanks = true;
	}
	if (word->key && is_empty(word) && next && !next->key && !next->equals) {
		take_value(word, next, 0);
		g_ptr_array_remove_index(words, i + 1);
		blanks = true;
	}
	if (word->key && is_empty(word)) {
		weir_errors_add(errors, word->where,
				"'%s=' has no value; an empty one is written %s=\"\"", word->key,
				word->key);
		word->broken = true;
	} else if (blanks) {
		weir_errors_add(errors, word->where, "no blanks around '=': write %s=%s", word->key,
				word->text->str);
	}
}

static void read_words(struct parser *p, GPtrArray *words)
{
	while (weir_scanner_peek(&p->scan) == WEIR_TOKEN_WORD)
		g_ptr_array_add(words, weir_scanner_word(&p->scan));
	for (guint i = 0; i < words->len; i++)
		mend_option(p->scan.errors, words, i);
}

/* ---- Terms ---- */

/* "name" or "name.output" of a plain word; false: it is neither. */
static bool split_name(const struct weir_word *word, struct weir_term *term)
{
	const char *text = word->text->str;
	size_t n = weir_name_length(text);

	if (word->key || word->quoted || n == 0)
		return false;
	term->name = g_strndup(text, n);
	if (text[n] == '\0')
		return true;
	if (text[n] != '.' || weir_key_length(text + n + 1) != strlen(text + n + 1) ||
	    text[n + 1] == '\0')
		return false;
	term->output = g_strdup(text + n + 1);
	return true;
}

static bool read_term(struct parser *p, struct weir_term *term, const char *expected)
{
	enum weir_token token = weir_scanner_peek(&p->scan);
	struct weir_word *word;
	bool ok;

	term->where = p->scan.where;
	if (token != WEIR_TOKEN_WORD) {
		weir_errors_add(p->scan.errors, term->where, "expected %s instead of %s", expected,
				token_name(&p->scan, token));
		return false;
	}
	word = weir_scanner_word(&p->scan);
	ok = split_name(word, term);
	if (ok)
		read_words(p, term->words);
	else if (!word->broken)
		weir_errors_add(p->scan.errors, word->where, "expected %s instead of '%s%s%s'%s",
				expected, word->key ? word->key : "", word->key ? "=" : "",
				word->text->str,
				word->quoted ? "; quotes and variables belong into arguments"
				: g_str_has_suffix(word->text->str, ":")
					? "; a definition is written NAME = PLUGIN"
					: "");
	weir_word_free(word);
	return ok;
}

static struct weir_term *add_term(struct parser *p, struct weir_statement *statement,
				  const char *expected)
{
	struct weir_term *term = g_new0(struct weir_term, 1);

	term->words = g_ptr_array_new_with_free_func((GDestroyNotify)weir_word_free);
	if (!read_term(p, term, expected)) {
		term_free(term);
		statement->broken = true;
		return NULL;
	}
	g_ptr_array_add(statement->terms, term);
	return term;
}

/* ---- Statements ---- */

static void read_definition(struct parser *p, struct weir_statement *statement)
{
	struct weir_term *term;

	weir_scanner_lines(&p->scan);
	term = add_term(p, statement, "a plugin");
	if (term && term->output) {
		weir_errors_add(p->scan.errors, term->where,
				"expected a plugin instead of the output '%s.%s'", term->name,
				term->output);
		statement->broken = true;
	} else if (term && weir_scanner_peek(&p->scan) == WEIR_TOKEN_ARROW) {
		weir_errors_add(
			p->scan.errors, p->scan.where,
			"a definition ends before '->': continue with '%s ->' on the next line",
			statement->name);
		statement->broken = true;
	}
}

static void read_flow(struct parser *p, struct weir_statement *statement)
{
	const char *expected = "a name or a plugin";

	while (add_term(p, statement, expected)) {
		enum weir_token token = weir_scanner_peek(&p->scan);

		if (token == WEIR_TOKEN_ARROW) {
			weir_scanner_take(&p->scan);
			weir_scanner_lines(&p->scan);
			expected = "a name or a plugin after '->'";
			continue;
		}
		if (statement->terms->len == 1) {
			statement->broken = true;
			if (!p->scan.torn)
				weir_errors_add(p->scan.errors, p->scan.where,
						"expected '->' instead of %s",
						token_name(&p->scan, token));
		}
		return;
	}
}

static void read_statement(struct parser *p)
{
	struct weir_statement *statement = add_statement(p);

	statement->name = weir_scanner_definition(&p->scan);
	if (statement->name)
		read_definition(p, statement);
	else
		read_flow(p, statement);
	if (statement->broken)
		pass_over(p);
}

static void read_statements(struct parser *p)
{
	enum weir_token token;

	while ((token = weir_scanner_peek(&p->scan)) != WEIR_TOKEN_EOF) {
		if (token == WEIR_TOKEN_END)
			weir_scanner_take(&p->scan);
		else
			read_statement(p);
	}
}

static bool has_flow(const struct weir_text *text)
{
	for (guint i = 0; i < text->statements->len; i++) {
		const struct weir_statement *statement = text->statements->pdata[i];

		if (!statement->name || statement->broken)
			return true;
	}
	return false;
}

static void check_unused(struct parser *p)
{
	g_autoptr(GList) names = g_hash_table_get_keys(p->scan.variables);

	names = g_list_sort(names, (GCompareFunc)strcmp);
	for (GList *name = names; name; name = name->next)
		if (!g_hash_table_contains(p->scan.used, name->data))
			weir_errors_add(p->scan.errors, (struct weir_position){0},
					"--set %s: the text has no ${%s}", (char *)name->data,
					(char *)name->data);
}

static void check_whole(struct parser *p)
{
	if (!has_flow(p->text))
		weir_errors_add(p->scan.errors, (struct weir_position){1, 1},
				p->text->statements->len
					? "there is no flow: expected NAME -> NAME"
					: "the text is empty: expected SOURCE -> SINK");
	if (p->scan.variables && !p->scan.torn)
		check_unused(p);
}

/* The position of the first byte that is no UTF-8, or line 0. */
static struct weir_position find_foreign(const char *text)
{
	struct weir_position where = {1, 1};
	const char *end;

	if (g_utf8_validate(text, -1, &end))
		return (struct weir_position){0};
	for (; text < end; text = g_utf8_next_char(text)) {
		where.column++;
		if (*text == '\n')
			where = (struct weir_position){where.line + 1, 1};
	}
	return where;
}

/* CRLF is a newline, in quotes too; a byte order mark is nothing. */
static char *normalized(const char *text)
{
	GString *result = g_string_new(g_str_has_prefix(text, "\xef\xbb\xbf") ? text + 3 : text);

	g_string_replace(result, "\r\n", "\n", 0);
	return g_string_free(result, FALSE);
}

struct weir_text *weir_text_parse(const char *source, GHashTable *variables,
				  struct weir_errors *errors)
{
	struct weir_text *text = g_new0(struct weir_text, 1);
	struct weir_position foreign = find_foreign(source);
	g_autofree char *plain = normalized(source);
	struct parser parser = {.text = text};

	text->statements = g_ptr_array_new_with_free_func((GDestroyNotify)statement_free);
	text->mentioned = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	if (foreign.line) {
		weir_errors_add(errors, foreign, "the text is not UTF-8 here");
		return text;
	}
	parser.scan = (struct weir_scanner){
		.at = plain,
		.where = {1, 1},
		.variables = variables,
		.used = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
		.errors = errors,
	};
	read_statements(&parser);
	check_whole(&parser);
	g_hash_table_unref(parser.scan.used);
	return text;
}
