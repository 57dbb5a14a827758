#include "text.h"

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

static void format_shortest(double value, char *buffer) {
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, 32, "%.*g", digits, value);
        if (!isfinite(value) || strtod(buffer, NULL) == value) return;
    }
}

char *n2_format_number(double value, char *buffer) {
    if (value == floor(value) && fabs(value) < 1e15) {
        snprintf(buffer, 32, "%.0f", value + 0.0); /* no minus at zero */
        return buffer;
    }
    const n2_c_locale scope = n2_c_locale_enter();
    format_shortest(value, buffer);
    n2_c_locale_leave(scope);
    return buffer;
}

void n2_text_add_number(n2_text *text, double value) {
    char buffer[32];
    n2_text_add(text, "%s", isfinite(value) ? n2_format_number(value, buffer) : "null");
}

void n2_text_add_json_string(n2_text *text, const char *s) {
    n2_text_add_raw(text, "\"", 1);
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            n2_text_add(text, "\\%c", c);
        else if (c < 0x20)
            n2_text_add(text, "\\u%04x", c);
        else
            n2_text_add_raw(text, s, 1);
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
