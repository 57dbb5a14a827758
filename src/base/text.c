#include "text.h"

#include "decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

n2_text n2_text_new(n2ce_ctx *ctx) { return (n2_text){.ctx = ctx}; }

void n2_text_free(n2_text *text) {
    n2_free(text->ctx, text->data);
    *text = n2_text_new(text->ctx);
}

/* Makes room for n more bytes and the terminating NUL. */
static bool reserve(n2_text *text, size_t n) {
    if (text->failed) return false;
    if (text->capacity > text->length + n) return true;
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity <= text->length + n) capacity *= 2;
    char *data = n2_realloc(text->ctx, text->data, capacity, 1);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void n2_text_add(n2_text *text, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(text, (size_t)n)) {
        vsnprintf(text->data + text->length, (size_t)n + 1, format, again);
        text->length += (size_t)n;
    }
    va_end(again);
}

void n2_text_add_raw(n2_text *text, const char *bytes, size_t n) {
    if (!reserve(text, n)) return;
    memcpy(text->data + text->length, bytes, n);
    text->length += n;
    text->data[text->length] = '\0';
}

void n2_text_pad(n2_text *text, size_t n) {
    while (n-- > 0) n2_text_add_raw(text, " ", 1);
}

n2_c_locale n2_c_locale_enter(void) {
    n2_c_locale scope = {newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), (locale_t)0};
    if (scope.c) scope.before = uselocale(scope.c);
    return scope;
}

void n2_c_locale_leave(n2_c_locale scope) {
    if (!scope.c) return;
    uselocale(scope.before);
    freelocale(scope.c);
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* The digits of a number below 10^8, the first one lowest: of halves, of quarters, of each. */
static uint64_t eight_digits(uint64_t x) {
    const uint64_t fours = x / 10000 | (x % 10000) << 32;
    const uint64_t hundreds = (fours * 5243 >> 19) & 0x0000007f0000007f;
    const uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
    const uint64_t tens = (twos * 103 >> 10) & 0x000f000f000f000f;
    return tens | (twos - 10 * tens) << 8 | '0' * (UINT64_MAX / 255);
}

/* The last n of eight digits, and then bytes that nobody looks at. */
static void put_eight(uint64_t digits, size_t n, char *out) {
    digits >>= 8 * (8 - n);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    digits = __builtin_bswap64(digits);
#endif
    memcpy(out, &digits, sizeof digits);
}

enum { MOST_DIGITS = 17 }; /* of a shortest decimal */

/* 0 has one. */
static size_t count_digits(uint64_t x) {
    static const uint64_t tens[] = {0,
                                    10,
                                    100,
                                    1000,
                                    10000,
                                    100000,
                                    1000000,
                                    10000000,
                                    100000000,
                                    1000000000,
                                    10000000000,
                                    100000000000,
                                    1000000000000,
                                    10000000000000,
                                    100000000000000,
                                    1000000000000000,
                                    10000000000000000,
                                    100000000000000000};
    const int bits = 64 - __builtin_clzll(x | 1), about = bits * 1233 >> 12; /* log10(2) */
    return (size_t)about + (x >= tens[about]);
}

/* The n digits of x, MOST_DIGITS or fewer; behind them are up to seven bytes that do not count.
 * Without a loop: how many there are is what a processor cannot guess. Returns their end. */
static char *put_digits(uint64_t x, size_t n, char *out) {
    const uint64_t most = 10000000000000000, half = 100000000, rest = x % most;
    *out = (char)('0' + x / most);
    out += n == MOST_DIGITS;
    n -= n == MOST_DIGITS;
    if (n > 8) {
        put_eight(eight_digits(rest / half), n - 8, out);
        out += n - 8;
        n = 8;
    }
    put_eight(eight_digits(rest % half), n, out);
    return out + n;
}

/* As %e: d.ddde+XX. */
static char *put_scientific(uint64_t digits, size_t n, int exponent, char *out) {
    char *end = put_digits(digits, n, out + 1);
    out[0] = out[1];
    out[1] = '.';
    out = n > 1 ? end : out + 1;
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    const int size = abs(exponent);
    if (size >= 100) *out++ = (char)('0' + size / 100);
    *out++ = (char)('0' + size / 10 % 10);
    *out++ = (char)('0' + size % 10);
    return out;
}

/* As %f, where `whole` digits come before the point; 0 or less are so many zeros behind it. */
static char *put_fixed(uint64_t digits, size_t n, int whole, char *out) {
    if (whole <= 0) {
        memcpy(out, "0.000", 5);
        return put_digits(digits, n, out + 2 - whole);
    }
    const size_t before = (size_t)whole;
    if (before == n) return put_digits(digits, n, out);
    char *end = put_digits(digits, n, out + 1);
    for (size_t i = 0; i < before; i++) out[i] = out[i + 1];
    out[before] = '.';
    return end;
}

/* As %g does with as many digits as there are. */
static char *put_decimal(n2_decimal d, char *out) {
    const size_t n = count_digits(d.digits);
    const int exponent = d.exponent + (int)n - 1;
    if (exponent < -4 || exponent >= (int)n) return put_scientific(d.digits, n, exponent, out);
    return put_fixed(d.digits, n, exponent + 1, out);
}

size_t n2_put_number(double value, char *buffer) {
    char *out = buffer;
    const double size = fabs(value);
    *out = '-'; /* a sign is as hard to guess as a coin */
    out += signbit(value) && value != 0;
    if (!isfinite(value)) {
        memcpy(out, isnan(value) ? "nan" : "inf", 3);
        return (size_t)(out + 3 - buffer);
    }
    const int64_t whole = size < 1e15 ? (int64_t)size : -1;
    const bool in_full = (double)whole == size;
    out = put_decimal(in_full ? (n2_decimal){(uint64_t)whole, 0} : n2_decimal_shortest(size), out);
    return (size_t)(out - buffer);
}

char *n2_format_number(double value, char *buffer) {
    buffer[n2_put_number(value, buffer)] = '\0';
    return buffer;
}

void n2_text_add_number(n2_text *text, double value) {
    if (!isfinite(value)) {
        n2_text_add_raw(text, "null", 4);
        return;
    }
    if (!reserve(text, N2_NUMBER_ROOM)) return;
    text->length += n2_put_number(value, text->data + text->length);
    text->data[text->length] = '\0';
}

/* ---- escapes ------------------------------------------------------------------------------ */

size_t n2_utf8_length(const char *text, size_t room) {
    const unsigned char *p = (const unsigned char *)text, c = p[0];
    if (c < 0x80) return 1;
    const size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || n > room) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    const bool overlong = (c == 0xe0 && p[1] < 0xa0) || (c == 0xf0 && p[1] < 0x90);
    const bool surrogate = c == 0xed && p[1] > 0x9f, too_large = c == 0xf4 && p[1] > 0x8f;
    return overlong || surrogate || too_large ? 0 : n;
}

size_t n2_json_plain_length(const char *text, size_t room) {
    size_t n = 0;
    while (n < room && text[n] >= 0x20 && text[n] < 0x7f && text[n] != '"' && text[n] != '\\') n++;
    return n;
}

void n2_text_add_json_string(n2_text *text, const char *s) {
    n2_text_add_raw(text, "\"", 1);
    for (size_t left = strlen(s), n; left > 0; s += n, left -= n) {
        const unsigned char c = (unsigned char)*s;
        const size_t plain = n2_json_plain_length(s, left);
        n = plain ? plain : n2_utf8_length(s, left);
        if (c == '"' || c == '\\')
            n2_text_add(text, "\\%c", c);
        else if (c < 0x20)
            n2_text_add(text, "\\u%04x", c);
        else
            n2_text_add_raw(text, n ? s : "\xef\xbf\xbd", n ? n : 3);
        if (n == 0) n = 1;
    }
    n2_text_add_raw(text, "\"", 1);
}

void n2_text_add_xml(n2_text *text, const char *s) {
    for (; *s; s++) {
        switch (*s) {
        case '&':
            n2_text_add_raw(text, "&amp;", 5);
            break;
        case '<':
            n2_text_add_raw(text, "&lt;", 4);
            break;
        case '>':
            n2_text_add_raw(text, "&gt;", 4);
            break;
        case '"':
            n2_text_add_raw(text, "&quot;", 6);
            break;
        default:
            n2_text_add_raw(text, s, 1);
        }
    }
}

const char *n2_item_end(const char *text, char separator) {
    bool quoted = false;
    for (; *text && (quoted || *text != separator); text++) quoted ^= *text == '"';
    return text;
}

n2ce_status n2_text_take(n2_text *text, char **out) {
    *out = NULL;
    if (reserve(text, 0) && text->length == 0) text->data[0] = '\0';
    if (text->failed) {
        n2_text_free(text);
        return N2CE_ENOMEM;
    }
    *out = text->data;
    *text = n2_text_new(text->ctx);
    return N2CE_OK;
}
