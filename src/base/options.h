/* Option values with typed access, for the tasks. The public half (new, set, get,
 * find) is in n2ce.h. Values were checked when they were set, so reading them
 * cannot fail; asking for a name that the table does not have is a bug, and so is
 * counting with an option that was not set and has no default. */
#ifndef N2_OPTIONS_H
#define N2_OPTIONS_H

#include "arena.h"
#include "text.h"

const char *n2_options_given(const n2ce_options *o, const char *name); /* NULL: it was not set */

/* Fails, with N2CE_EINVAL, if the options are not those of the table. */
n2ce_status n2_options_check_table(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_option *table);

bool n2_options_is_auto(const n2ce_options *o, const char *name);
bool n2_options_flag(const n2ce_options *o, const char *name);
uint64_t n2_options_count(const n2ce_options *o, const char *name);

/* True if `word` is among the words of the option's value. */
bool n2_options_has_word(const n2ce_options *o, const char *name, const char *word);

/* The numbers of a list, into the arena; *n is 0 for "auto", and where nothing was set and
 * there is no default. */
n2ce_status n2_options_reals(const n2ce_options *o, const char *name, n2_arena *arena,
                             double **values, size_t *n);

/* A line NAME=VALUE for every option that has a value, but those that are among `apart`, names with
 * a space before and behind each. */
void n2_options_lines(const n2ce_options *o, const char *apart, n2_text *out);

/* {"name": value, ...} with numbers as numbers, for JSON and metadata; null where nothing was
 * set and there is no default. */
void n2_options_json(const n2ce_options *o, n2_text *out);

#endif
