/* Text that grows: tables, JSON, SVG and HTML are built in one of these.
 *
 * Errors are sticky: after a failed allocation every call does nothing, and
 * n2_text_take() reports it. So a writer is straight-line code. */
#ifndef N2_TEXT_H
#define N2_TEXT_H

#include "ctx.h"

#include <locale.h>

typedef struct n2_text {
    n2ce_ctx *ctx;
    char *data; /* NUL-terminated once something was added */
    size_t length, capacity;
    bool failed;
} n2_text;

n2_text n2_text_new(n2ce_ctx *ctx); /* allocates nothing yet */
void n2_text_free(n2_text *text);

void n2_text_add(n2_text *text, const char *format, ...) N2_PRINTF(2, 3);
void n2_text_add_raw(n2_text *text, const char *bytes, size_t n);
void n2_text_pad(n2_text *text, size_t n); /* n spaces */

/* The shortest decimal that reads back as the same double (whole numbers below
 * 1e15 in full), as JSON wants it: "null" for what is not finite. Independent of the locale. */
void n2_text_add_number(n2_text *text, double value);

/* Between these two, numbers are printed and read with a point, whatever locale the
 * host program has set for this thread. */
typedef struct n2_c_locale {
    locale_t c, before;
} n2_c_locale;
n2_c_locale n2_c_locale_enter(void);
void n2_c_locale_leave(n2_c_locale scope);

/* The same into a buffer of at least N2_NUMBER_ROOM characters; "inf", "-inf", "nan"
 * for what is not finite. The first returns the buffer, the second writes no NUL and
 * returns how many characters there are. */
enum { N2_NUMBER_ROOM = 32 };
char *n2_format_number(double value, char *buffer);
size_t n2_put_number(double value, char *buffer);

/* Bytes of the character that a text of `room` bytes begins with, 0 if it is not UTF-8 (Unicode,
 * table 3-7). */
size_t n2_utf8_length(const char *text, size_t room);

/* How many bytes of a text, from its beginning, stand for themselves in a JSON string: ASCII
 * without control characters, quotes and backslashes. */
size_t n2_json_plain_length(const char *text, size_t room);

/* Quoted, escaped; bytes that are not UTF-8, as names of files may have, are U+FFFD each. */
void n2_text_add_json_string(n2_text *text, const char *s);
void n2_text_add_xml(n2_text *text, const char *s); /* & < > " escaped */

/* Where an item of a list ends: at the next separator outside double quotes, or at the end. */
const char *n2_item_end(const char *text, char separator);

/* Hands the string over (free it with n2_free) and empties the text; N2CE_ENOMEM
 * and NULL if an addition failed. */
n2ce_status n2_text_take(n2_text *text, char **out);

#endif
