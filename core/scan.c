/*
 * scan.c: the scanner of the pipeline language.  GLib's shell splitting loses columns, quotes and
 * operators, hence an own one.
 */
#include "scan.h"

#include <string.h>

size_t weir_name_length(const char *text)
{
	size_t n = 0;

	if (!g_ascii_isalpha(text[0]))
		return 0;
	while (g_ascii_isalnum(text[n]) || text[n] == '_' || text[n] == '-') {
		if (text[n] == '-' && text[n + 1] == '>')
			break;
		n++;
	}
	return n;
}

size_t weir_key_length(const char *text)
{
	size_t n = 0;

	if (!g_ascii_islower(text[0]))
		return 0;
	while (g_ascii_islower(text[n]) || g_ascii_isdigit(text[n]) || text[n] == '-')
		n++;
	return n;
}

void weir_word_free(struct weir_word *word)
{
	if (!word)
		return;
	g_free(word->key);
	g_string_free(word->text, TRUE);
	g_string_free(word->list, TRUE);
	g_free(word);
}

/* One byte on; a column is a character, so only the last byte of one counts. */
static void step(struct weir_scanner *s)
{
	if (*s->at == '\n')
		s->where = (struct weir_position){s->where.line + 1, 1};
	else if (((unsigned char)s->at[1] & 0xc0) != 0x80)
		s->where.column++;
	s->at++;
}

static bool at_arrow(const struct weir_scanner *s)
{
	return s->at[0] == '-' && s->at[1] == '>';
}

static bool at_variable(const struct weir_scanner *s)
{
	return s->at[0] == '$' && s->at[1] == '{';
}

static bool at_continuation(const struct weir_scanner *s)
{
	return s->at[0] == '\\' && (s->at[1] == '\n' || s->at[1] == '\0');
}

static void skip(struct weir_scanner *s, bool lines)
{
	for (;;) {
		if (*s->at == '#') {
			while (*s->at && *s->at != '\n')
				step(s);
		} else if (at_continuation(s)) {
			step(s);
			if (*s->at)
				step(s);
		} else if (*s->at == ' ' || *s->at == '\t' || (lines && *s->at == '\n')) {
			step(s);
		} else {
			return;
		}
	}
}

void weir_scanner_lines(struct weir_scanner *s)
{
	skip(s, true);
}

enum weir_token weir_scanner_peek(struct weir_scanner *s)
{
	skip(s, false);
	if (*s->at == '\n') {
		struct weir_scanner ahead = *s;

		skip(&ahead, true);
		if (at_arrow(&ahead))
			*s = ahead;
	}
	if (at_arrow(s))
		return WEIR_TOKEN_ARROW;
	if (*s->at == '\n' || *s->at == ';')
		return WEIR_TOKEN_END;
	return *s->at ? WEIR_TOKEN_WORD : WEIR_TOKEN_EOF;
}

void weir_scanner_take(struct weir_scanner *s)
{
	if (at_arrow(s))
		step(s);
	step(s);
}

char *weir_scanner_definition(struct weir_scanner *s)
{
	struct weir_scanner ahead = *s;
	size_t n = weir_name_length(s->at);
	char *name;

	if (n == 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		step(&ahead);
	skip(&ahead, false);
	if (*ahead.at != '=')
		return NULL;
	step(&ahead);
	name = g_strndup(s->at, n);
	*s = ahead;
	return name;
}

/* ---- The pieces of a word ---- */

static void append(struct weir_word *word, const char *text)
{
	g_string_append(word->text, text);
	g_string_append(word->list, text);
}

static void take(struct weir_scanner *s, struct weir_word *word)
{
	g_string_append_c(word->text, *s->at);
	g_string_append_c(word->list, *s->at);
	step(s);
}

static void plain(struct weir_scanner *s, struct weir_word *word)
{
	if (*s->at == '=' && !word->key && !word->quoted) {
		const char *text = word->text->str;

		word->equals |= *text == '\0';
		if (*text && weir_key_length(text) == word->text->len) {
			word->key = g_strdup(text);
			g_string_truncate(word->text, 0);
			g_string_truncate(word->list, 0);
			step(s);
			return;
		}
	}
	take(s, word);
}

static void escape(struct weir_scanner *s, struct weir_word *word)
{
	step(s);
	if (*s->at == ',')
		g_string_append_c(word->list, '\\');
	take(s, word);
}

static void wrong(struct weir_scanner *s, struct weir_word *word, struct weir_position where,
		  const char *message)
{
	word->broken = true;
	weir_errors_add(s->errors, where, "%s", message);
}

/* The text behind ":-", up to the "}"; NULL if there is none.  Variables do not stand in each
 * other. */
static char *fallback(struct weir_scanner *s)
{
	GString *text;

	if (s->at[0] != ':' || s->at[1] != '-')
		return NULL;
	step(s);
	step(s);
	text = g_string_new(NULL);
	while (*s->at && *s->at != '}' && *s->at != '\n' && !at_variable(s)) {
		if (s->at[0] == '\\' && s->at[1] && s->at[1] != '\n')
			step(s);
		g_string_append_c(text, *s->at);
		step(s);
	}
	return g_string_free(text, FALSE);
}

static void fill_in(struct weir_scanner *s, struct weir_word *word, struct weir_position where,
		    const char *name, const char *otherwise)
{
	const char *value = s->variables ? g_hash_table_lookup(s->variables, name) : NULL;
	g_autofree const char **known = NULL;
	g_autofree char *suggestion = NULL;

	g_hash_table_add(s->used, g_strdup(name));
	if (otherwise && (!value || !*value))
		value = otherwise;
	if (value) {
		append(word, value);
		return;
	}
	known = s->variables ? (const char **)g_hash_table_get_keys_as_array(s->variables, NULL)
			     : g_new0(const char *, 1);
	suggestion = weir_suggestion(name, known);
	word->broken = true;
	weir_errors_add(s->errors, where,
			"variable '%s' is not set: use --set %s=VALUE, or write ${%s:-VALUE}%s",
			name, name, name, suggestion);
}

static void variable(struct weir_scanner *s, struct weir_word *word)
{
	struct weir_position where = s->where;
	g_autofree char *name = NULL;
	g_autofree char *otherwise = NULL;
	size_t n;

	word->quoted = true;
	step(s);
	step(s);
	n = weir_name_length(s->at);
	name = g_strndup(s->at, n);
	while (n--)
		step(s);
	otherwise = fallback(s);
	if (*s->at != '}' || !*name) {
		wrong(s, word, where, "expected ${NAME} or ${NAME:-VALUE}");
		return;
	}
	step(s);
	fill_in(s, word, where, name, otherwise);
}

static void unclosed(struct weir_scanner *s, struct weir_word *word, struct weir_position where)
{
	s->torn = true;
	wrong(s, word, where, "this quote is not closed");
}

static void single_quoted(struct weir_scanner *s, struct weir_word *word)
{
	struct weir_position where = s->where;

	word->quoted = true;
	step(s);
	while (*s->at && *s->at != '\'')
		take(s, word);
	if (*s->at)
		step(s);
	else
		unclosed(s, word, where);
}

static void double_quoted(struct weir_scanner *s, struct weir_word *word)
{
	struct weir_position where = s->where;

	word->quoted = true;
	step(s);
	while (*s->at && *s->at != '"') {
		if (at_variable(s)) {
			variable(s, word);
		} else if (s->at[0] == '\\' && s->at[1] == '\n') {
			append(word, " ");
			step(s);
			step(s);
		} else if (s->at[0] == '\\' && s->at[1] && strchr("\"\\$,", s->at[1])) {
			escape(s, word);
		} else {
			take(s, word);
		}
	}
	if (*s->at)
		step(s);
	else
		unclosed(s, word, where);
}

static void piece(struct weir_scanner *s, struct weir_word *word)
{
	if (*s->at == '\'') {
		single_quoted(s, word);
	} else if (*s->at == '"') {
		double_quoted(s, word);
	} else if (*s->at == '\\') {
		word->quoted = true;
		escape(s, word);
	} else if (at_variable(s)) {
		variable(s, word);
	} else {
		plain(s, word);
	}
}

struct weir_word *weir_scanner_word(struct weir_scanner *s)
{
	struct weir_word *word = g_new0(struct weir_word, 1);

	word->where = s->where;
	word->text = g_string_new(NULL);
	word->list = g_string_new(NULL);
	while (*s->at && !strchr(" \t\n;", *s->at) && !at_arrow(s) && !at_continuation(s))
		piece(s, word);
	return word;
}
