/*
 * value.c: typed option values.
 */
#include "value.h"
#include "errors.h"
#include "units.h"

#include <string.h>

G_DEFINE_QUARK(weir_value_error, weir_value_error)

/* ---- Types ---- */

union value {
	int64_t number;
	uint64_t size;
	struct weir_rate rate;
	struct weir_amount amount;
	bool yes;
};

static bool read_number(const char *text, union value *ret)
{
	return weir_parse_number(text, &ret->number);
}

static bool read_size(const char *text, union value *ret)
{
	return weir_parse_size(text, &ret->size);
}

static bool read_time(const char *text, union value *ret)
{
	return weir_parse_time(text, &ret->number);
}

static bool read_rate(const char *text, union value *ret)
{
	return weir_parse_rate(text, &ret->rate);
}

static bool read_amount(const char *text, union value *ret)
{
	return weir_parse_amount(text, &ret->amount);
}

static bool read_bool(const char *text, union value *ret)
{
	ret->yes = !strcmp(text, "yes");
	return ret->yes || !strcmp(text, "no");
}

static int order_number(const union value *a, const union value *b)
{
	return (a->number > b->number) - (a->number < b->number);
}

static int order_size(const union value *a, const union value *b)
{
	return (a->size > b->size) - (a->size < b->size);
}

/* Of different kinds, bits and packets, or bytes and percent, none is out of the other's range. */
static int order_rate(const union value *a, const union value *b)
{
	if (a->rate.packets != b->rate.packets)
		return 0;
	return (a->rate.per_second > b->rate.per_second) -
	       (a->rate.per_second < b->rate.per_second);
}

static int order_amount(const union value *a, const union value *b)
{
	if ((a->amount.percent > 0) != (b->amount.percent > 0))
		return 0;
	if (a->amount.percent > 0)
		return (a->amount.percent > b->amount.percent) -
		       (a->amount.percent < b->amount.percent);
	return (a->amount.bytes > b->amount.bytes) - (a->amount.bytes < b->amount.bytes);
}

struct type {
	const char *name, *expected;
	size_t size;
	bool (*read)(const char *text, union value *ret); /* NULL: strings and words, see below */
	int (*order)(const union value *a, const union value *b); /* NULL: no ranges */
};

static const struct type types[] = {
	[WEIR_STRING] = {"text", "text", sizeof(char *), NULL, NULL},
	[WEIR_INFILE] = {"file to read", "the name of a file", sizeof(char *), NULL, NULL},
	[WEIR_OUTFILE] = {"file to write", "the name of a file", sizeof(char *), NULL, NULL},
	[WEIR_ENDPOINT] = {"endpoint", "an endpoint", sizeof(char *), NULL, NULL},
	[WEIR_NUMBER] = {"number", "a number", sizeof(int64_t), read_number, order_number},
	[WEIR_SIZE] = {"size", "a size such as 64KiB, 10MB or 1500", sizeof(uint64_t), read_size,
		       order_size},
	[WEIR_TIME] = {"time", "a time such as 250ms, 10s or 24h", sizeof(int64_t), read_time,
		       order_number},
	[WEIR_RATE] = {"rate", "a rate such as 1Gbps or 500kpps", sizeof(struct weir_rate),
		       read_rate, order_rate},
	[WEIR_AMOUNT] = {"size or percent", "a size such as 1GiB, or percent such as 20%",
			 sizeof(struct weir_amount), read_amount, order_amount},
	[WEIR_BOOL] = {"yes or no", "yes or no", sizeof(bool), read_bool, NULL},
	[WEIR_CHOICE] = {"choice", "one of", sizeof(uint32_t), NULL, NULL},
	[WEIR_SET] = {"set", "none, or a list of", sizeof(uint32_t), NULL, NULL},
	[WEIR_LIST] = {"list", "a list such as a,b", sizeof(char **), NULL, NULL},
	[WEIR_INFILES] = {"files to read", "a list of files", sizeof(char **), NULL, NULL},
	[WEIR_ENDPOINTS] = {"endpoints", "a list of endpoints", sizeof(char **), NULL, NULL},
};

static const struct type *find_type(uint32_t type)
{
	return type > 0 && type < G_N_ELEMENTS(types) ? &types[type] : NULL;
}

const char *weir_value_type_name(uint32_t type)
{
	return find_type(type) ? find_type(type)->name : NULL;
}

size_t weir_value_size(uint32_t type)
{
	return find_type(type) ? find_type(type)->size : 0;
}

/* ---- Words of a range "a|b|c" ---- */

static bool has_words(const struct weir_option *option)
{
	return option->type == WEIR_CHOICE || option->type == WEIR_SET;
}

static char **range_words(const struct weir_option *option)
{
	return g_strsplit(option->range ? option->range : "", "|", 32);
}

static int word_index(char *const *words, const char *word)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(words[i], word))
			return i;
	return -1;
}

char *weir_value_expected(const struct weir_option *option)
{
	const struct type *type = find_type(option->type);

	if (has_words(option)) {
		g_auto(GStrv) words = range_words(option);
		g_autofree char *list = g_strjoinv(", ", words);

		return g_strdup_printf("%s %s", type->expected, list);
	}
	if (option->range && type->order)
		return g_strdup_printf("%s, in %s", type->expected, option->range);
	return g_strdup(type->expected);
}

/* ---- Storing ---- */

static bool refuse(const struct weir_option *option, const char *hint, GError **error)
{
	g_autofree char *expected = weir_value_expected(option);

	g_set_error(error, WEIR_VALUE_ERROR, 0, "expected %s%s", expected, hint);
	return false;
}

static bool refuse_number(const struct weir_option *option, const char *text, GError **error)
{
	char letter = (char)g_ascii_toupper(text[strspn(text, "0123456789")]);
	int digits = (int)strspn(text, "0123456789");
	g_autofree char *hint = NULL;

	if ((option->type != WEIR_SIZE && option->type != WEIR_AMOUNT) ||
	    !weir_is_ambiguous_size(text))
		return refuse(option, "", error);
	hint = g_strdup_printf("; '%s' could be %.*s%cB (decimal) or %.*s%ciB (binary)", text,
			       digits, text, letter, digits, text, letter);
	return refuse(option, hint, error);
}

static bool in_range(const struct weir_option *option, const struct type *type,
		     const union value *value)
{
	const char *dots = option->range ? strstr(option->range, "..") : NULL;
	g_autofree char *low = NULL;
	union value limit;

	if (!dots || !type->order)
		return true;
	low = g_strndup(option->range, (gsize)(dots - option->range));
	if (type->read(low, &limit) && type->order(value, &limit) < 0)
		return false;
	return !type->read(dots + 2, &limit) || type->order(value, &limit) <= 0;
}

static bool store_number(const struct weir_option *option, const struct type *type,
			 const char *text, void *to, GError **error)
{
	union value value = {0};

	if (!type->read(text, &value))
		return refuse_number(option, text, error);
	if (!in_range(option, type, &value))
		return refuse(option, "", error);
	memcpy(to, &value, type->size);
	return true;
}

static bool store_string(const struct weir_option *option, const char *text, void *to,
			 GPtrArray *memory, GError **error)
{
	char *copy;

	if (option->type != WEIR_STRING && !*text)
		return refuse(option, "", error);
	copy = g_strdup(text);
	g_ptr_array_add(memory, copy);
	memcpy(to, &copy, sizeof(copy));
	return true;
}

static bool find_word(const struct weir_option *option, const char *word, uint32_t *ret,
		      GError **error)
{
	g_auto(GStrv) words = range_words(option);
	int i = word_index(words, word);

	if (i < 0) {
		g_autofree char *hint = weir_suggestion(word, (const char *const *)words);

		return refuse(option, hint, error);
	}
	*ret = (uint32_t)i;
	return true;
}

/* The elements of "a,b", where "\," is a comma in one; NULL if one is empty, but "" has none. */
static char **split_list(const char *text)
{
	g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
	GString *part = g_string_new(NULL);
	bool ok = true;

	for (const char *at = text; *text; at++) {
		if (at[0] == '\\' && at[1] == ',') {
			g_string_append_c(part, *++at);
		} else if (*at && *at != ',') {
			g_string_append_c(part, *at);
		} else {
			ok &= part->len > 0;
			g_ptr_array_add(parts, g_strdup(part->str));
			g_string_truncate(part, 0);
			if (!*at)
				break;
		}
	}
	g_string_free(part, TRUE);
	g_ptr_array_add(parts, NULL);
	return ok ? (char **)g_ptr_array_steal(parts, NULL) : NULL;
}

static bool store_list(const struct weir_option *option, const char *text, void *to,
		       GPtrArray *memory, GError **error)
{
	char **elements = split_list(text);

	if (!elements)
		return refuse(option, ", with no empty element", error);
	if (!*elements && !option->fallback) {
		g_free(elements);
		return refuse(option, "", error);
	}
	if (!*elements)
		g_clear_pointer(&elements, g_free);
	else
		g_ptr_array_add(memory, elements);
	for (char **element = elements; element && *element; element++)
		g_ptr_array_add(memory, *element);
	memcpy(to, &elements, sizeof(elements));
	return true;
}

static bool store_choice(const struct weir_option *option, const char *text, void *to,
			 GError **error)
{
	uint32_t index;

	if (!find_word(option, text, &index, error))
		return false;
	memcpy(to, &index, sizeof(index));
	return true;
}

static bool store_set(const struct weir_option *option, const char *text, void *to, GError **error)
{
	g_auto(GStrv) elements = split_list(strcmp(text, "none") != 0 ? text : "");
	uint32_t set = 0;

	if (!elements || !*text)
		return refuse(option, "", error);
	for (char **element = elements; *element; element++) {
		uint32_t index;

		if (!find_word(option, *element, &index, error))
			return false;
		set |= UINT32_C(1) << index;
	}
	memcpy(to, &set, sizeof(set));
	return true;
}

bool weir_value_store(const struct weir_option *option, const char *text, void *config,
		      GPtrArray *memory, GError **error)
{
	const struct type *type = find_type(option->type);
	void *to = (char *)config + option->offset;

	if (type->read)
		return store_number(option, type, text, to, error);
	switch (option->type) {
	case WEIR_CHOICE:
		return store_choice(option, text, to, error);
	case WEIR_SET:
		return store_set(option, text, to, error);
	case WEIR_LIST:
	case WEIR_INFILES:
	case WEIR_ENDPOINTS:
		return store_list(option, text, to, memory, error);
	default:
		return store_string(option, text, to, memory, error);
	}
}
