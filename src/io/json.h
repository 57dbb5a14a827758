/* Reading JSON (RFC 8259) strictly, value after value, without building a tree.
 *
 * The caller knows what should come next and asks for it; anything else is
 * N2CE_EDATA with a sentence that names the source, the byte, what was expected
 * and what was found. Nothing recurses and nothing is allocated: decoded
 * strings go into room that the caller provides.
 *
 *     n2_json_enter(&json, '{');
 *     while (n2_json_next(&json, '}', &more) == N2CE_OK && more) {
 *         n2_json_key(&json, &key);
 *         n2_json_skip(&json);
 *     }
 *     n2_json_end(&json);                     (statuses left out for brevity) */
#ifndef N2_JSON_H
#define N2_JSON_H

#include "base/ctx.h"

/* How deeply values may nest inside one that is skipped. */
#define N2_JSON_DEPTH 64

typedef struct n2_json {
    n2ce_ctx *ctx;
    const char *source;           /* what messages call it, e.g. a path */
    size_t origin;                /* where the text starts in the source */
    const char *start, *at, *end; /* the text, and how far it was read */
    char *strings;                /* where the next decoded string goes */
    bool first;                   /* just after an opening bracket */
} n2_json;

/* Starts reading n bytes of text. `strings` must have room for n bytes, enough
 * for all strings in it because no escape is shorter than what it stands for,
 * and must live as long as the strings are used. */
n2_json n2_json_new(n2ce_ctx *ctx, const char *source, const char *text, size_t n, char *strings);

/* The opening bracket of an object '{' or of a list '['. */
n2ce_status n2_json_enter(n2_json *json, char opening);

/* Steps to the next member: *more says whether there is one; if not, the closing
 * bracket, '}' or ']', has been read. */
n2ce_status n2_json_next(n2_json *json, char closing, bool *more);

/* A string, decoded to UTF-8 with a NUL at its end. One that contains a NUL
 * (\u0000), half a surrogate pair or bytes that are not UTF-8 is refused. */
n2ce_status n2_json_string(n2_json *json, const char **out);

/* The key of an object's member, and the colon. */
n2ce_status n2_json_key(n2_json *json, const char **out);

/* A whole number from 0 to 2^63 - 1, without fraction or exponent. */
n2ce_status n2_json_count(n2_json *json, int64_t *out);

/* A number, or null: NaN. */
n2ce_status n2_json_number(n2_json *json, double *out);

/* Whether the next value is a string. */
bool n2_json_at_string(n2_json *json);

/* Any value, at most N2_JSON_DEPTH deep. */
n2ce_status n2_json_skip(n2_json *json);

/* Nothing but white space is left. */
n2ce_status n2_json_end(n2_json *json);

/* Whether a text is UTF-8: no stray, missing, overlong or surrogate bytes. */
bool n2_is_utf8(const char *text);

#endif
