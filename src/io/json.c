#include "json.h"

#include "base/numerics.h"
#include "base/text.h"
#include "csv.h"

#include <stdio.h>
#include <string.h>

n2_json n2_json_new(n2ce_ctx *ctx, const char *source, const char *text, size_t n, char *strings) {
    return (n2_json){.ctx = ctx,
                     .source = source,
                     .start = text,
                     .at = text,
                     .end = text + n,
                     .strings = strings};
}

static n2ce_status refuse(const n2_json *json, const char *expected) {
    char found[32] = "the end";
    if (json->at < json->end) {
        const unsigned char c = (unsigned char)*json->at;
        snprintf(found, sizeof found, c >= 0x20 && c < 0x7f ? "'%c'" : "byte 0x%02x", c);
    }
    return n2_fail(json->ctx, N2CE_EDATA,
                   "%s: the JSON text has %s at byte %zu, where %s should be. The file is damaged, "
                   "or not of the kind it should be: get it or write it again.",
                   json->source, found, json->origin + (size_t)(json->at - json->start), expected);
}

static bool at_char(const n2_json *json, char c) { return json->at < json->end && *json->at == c; }

static bool at_digit(const n2_json *json) {
    return json->at < json->end && *json->at >= '0' && *json->at <= '9';
}

/* Reads a character if it is the next one. */
static bool accept(n2_json *json, char c) {
    if (!at_char(json, c)) return false;
    json->at++;
    return true;
}

static void skip_space(n2_json *json) {
    while (at_char(json, ' ') || at_char(json, '\n') || at_char(json, '\r') || at_char(json, '\t'))
        json->at++;
}

/* ---- UTF-8 and strings ------------------------------------------------------------------ */

bool n2_is_utf8(const char *text) {
    for (size_t left = strlen(text); left > 0;) {
        const size_t n = n2_utf8_length(text, left);
        if (n == 0) return false;
        text += n;
        left -= n;
    }
    return true;
}

static void put(n2_json *json, uint32_t byte) { *json->strings++ = (char)(unsigned char)byte; }

static void put_code_point(n2_json *json, uint32_t c) {
    if (c < 0x80) {
        put(json, c);
        return;
    }
    if (c < 0x800) {
        put(json, 0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            put(json, 0xe0 | c >> 12);
        } else {
            put(json, 0xf0 | c >> 18);
            put(json, 0x80 | (c >> 12 & 0x3f));
        }
        put(json, 0x80 | (c >> 6 & 0x3f));
    }
    put(json, 0x80 | (c & 0x3f));
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static n2ce_status read_hex4(n2_json *json, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = json->at < json->end ? hex_value(*json->at) : -1;
        if (digit < 0) return refuse(json, "a hexadecimal digit");
        *out = *out << 4 | (uint32_t)digit;
        json->at++;
    }
    return N2CE_OK;
}

/* What follows \u: a character, or the two halves of a surrogate pair. */
static n2ce_status read_unicode_escape(n2_json *json) {
    const char *const digits = json->at;
    uint32_t c, low = 0;
    N2_TRY(read_hex4(json, &c));
    const bool high_half = c >= 0xd800 && c <= 0xdbff;
    if (high_half && accept(json, '\\') && accept(json, 'u')) N2_TRY(read_hex4(json, &low));
    const bool pair = high_half && low >= 0xdc00 && low <= 0xdfff;
    if (c == 0 || (c >= 0xd800 && c <= 0xdfff && !pair)) {
        json->at = digits;
        return refuse(json, c == 0 ? "a character other than NUL" : "a whole surrogate pair");
    }
    put_code_point(json, pair ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : c);
    return N2CE_OK;
}

/* What follows a backslash. */
static n2ce_status read_escape(n2_json *json) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (accept(json, 'u')) return read_unicode_escape(json);
    const char *letter =
        json->at < json->end ? memchr(letters, *json->at, sizeof letters - 1) : NULL;
    if (!letter) return refuse(json, "one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
    json->at++;
    put(json, (unsigned char)meanings[letter - letters]);
    return N2CE_OK;
}

/* Characters as they stand: at least one. */
static n2ce_status read_plain(n2_json *json) {
    const size_t room = (size_t)(json->end - json->at);
    if (room == 0) return refuse(json, "the closing quote of a string");
    if ((unsigned char)*json->at < 0x20) return refuse(json, "an escaped control character");
    const size_t plain = n2_json_plain_length(json->at, room);
    const size_t n = plain ? plain : n2_utf8_length(json->at, room);
    if (n == 0) return refuse(json, "a character in UTF-8");
    memcpy(json->strings, json->at, n);
    json->strings += n;
    json->at += n;
    return N2CE_OK;
}

n2ce_status n2_json_string(n2_json *json, const char **out) {
    skip_space(json);
    *out = json->strings;
    if (!accept(json, '"')) return refuse(json, "a string");
    while (!accept(json, '"')) N2_TRY(accept(json, '\\') ? read_escape(json) : read_plain(json));
    put(json, '\0');
    return N2CE_OK;
}

n2ce_status n2_json_key(n2_json *json, const char **out) {
    N2_TRY(n2_json_string(json, out));
    skip_space(json);
    return accept(json, ':') ? N2CE_OK : refuse(json, "':'");
}

/* ---- objects and lists ------------------------------------------------------------------ */

n2ce_status n2_json_enter(n2_json *json, char opening) {
    skip_space(json);
    json->first = true;
    if (accept(json, opening)) return N2CE_OK;
    return refuse(json, opening == '{' ? "an object, '{'" : "a list, '['");
}

n2ce_status n2_json_next(n2_json *json, char closing, bool *more) {
    skip_space(json);
    const bool first = json->first;
    json->first = false;
    *more = !accept(json, closing);
    if (!*more || first || accept(json, ',')) return N2CE_OK;
    return refuse(json, closing == '}' ? "',' or '}'" : "',' or ']'");
}

n2ce_status n2_json_end(n2_json *json) {
    skip_space(json);
    return json->at == json->end ? N2CE_OK : refuse(json, "the end");
}

/* ---- numbers and other values ----------------------------------------------------------- */

n2ce_status n2_json_count(n2_json *json, int64_t *out) {
    skip_space(json);
    const char *const number = json->at;
    *out = 0;
    bool fits = at_digit(json);
    for (; at_digit(json) && fits; json->at++)
        fits = !__builtin_mul_overflow(*out, 10, out) &&
               !__builtin_add_overflow(*out, *json->at - '0', out);
    const bool padded = json->at - number > 1 && *number == '0';
    if (fits && !padded && !at_char(json, '.') && !at_char(json, 'e') && !at_char(json, 'E'))
        return N2CE_OK;
    json->at = number;
    return refuse(json, "a whole number from 0 to 2^63 - 1");
}

static n2ce_status skip_digits(n2_json *json) {
    if (!at_digit(json)) return refuse(json, "a digit");
    while (at_digit(json)) json->at++;
    return N2CE_OK;
}

static n2ce_status skip_number(n2_json *json) {
    accept(json, '-');
    if (!accept(json, '0')) N2_TRY(skip_digits(json));
    if (accept(json, '.')) N2_TRY(skip_digits(json));
    if (accept(json, 'e') || accept(json, 'E')) {
        if (!accept(json, '+')) accept(json, '-');
        N2_TRY(skip_digits(json));
    }
    return N2CE_OK;
}

static n2ce_status skip_scalar(n2_json *json) {
    static const char *const words[] = {"true", "false", "null"};
    const char *ignored;
    if (at_char(json, '"')) return n2_json_string(json, &ignored);
    if (at_char(json, '-') || at_digit(json)) return skip_number(json);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(json->end - json->at) < n || memcmp(json->at, words[i], n) != 0) continue;
        json->at += n;
        return N2CE_OK;
    }
    return refuse(json, "a value");
}

bool n2_json_at_string(n2_json *json) {
    skip_space(json);
    return at_char(json, '"');
}

n2ce_status n2_json_number(n2_json *json, double *out) {
    skip_space(json);
    const char *const text = json->at;
    *out = N2_NAN;
    if (at_char(json, 'n')) return skip_scalar(json);
    if (!at_char(json, '-') && !at_digit(json)) return refuse(json, "a number");
    N2_TRY(skip_number(json));
    const n2_c_locale scope = n2_c_locale_enter();
    const n2_value kind = n2_value_parse(text, (size_t)(json->at - text), out);
    n2_c_locale_leave(scope);
    if (kind == N2_VALUE_NUMBER) return N2CE_OK;
    json->at = text;
    return refuse(json, "a number that is finite");
}

n2ce_status n2_json_skip(n2_json *json) {
    char closing[N2_JSON_DEPTH]; /* of the objects and lists that are open */
    size_t depth = 0;
    do {
        bool more = true;
        const char *ignored;
        if (depth > 0) N2_TRY(n2_json_next(json, closing[depth - 1], &more));
        if (!more) {
            depth--;
            continue;
        }
        if (depth > 0 && closing[depth - 1] == '}') N2_TRY(n2_json_key(json, &ignored));
        skip_space(json);
        if (!at_char(json, '{') && !at_char(json, '[')) {
            N2_TRY(skip_scalar(json));
            continue;
        }
        if (depth == N2_JSON_DEPTH) return refuse(json, "a value that nests less deeply");
        closing[depth++] = at_char(json, '{') ? '}' : ']';
        N2_TRY(n2_json_enter(json, *json->at));
    } while (depth > 0);
    return N2CE_OK;
}
