#include "csv.h"

#include "base/decimal.h"
#include "base/pool.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_START = 1 << 16,
    PIECE = 16 << 20, /* bytes of the buffer that are worth all threads, */
    PART = 1 << 14,   /* and those that are worth one */
    FIELDS_START = 64,
    PART_FIELDS = 1 << 21 /* fields of all threads' rows: in a wider file they are too many */
};

/* ---- values ----------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void trim(const char **text, const char **end) {
    while (*text < *end && is_blank(**text)) ++*text;
    while (*text < *end && is_blank((*end)[-1])) --*end;
}

/* sign digits 10^exponent, as written; `exact` unless there were more digits than fit. */
typedef struct decimal {
    uint64_t digits;
    int exponent;
    bool negative, exact;
} decimal;

static const char *read_digits(const char *p, const char *end, decimal *d) {
    for (; p < end && is_digit(*p); p++) {
        if (d->digits < UINT64_MAX / 10)
            d->digits = d->digits * 10 + (uint64_t)(*p - '0');
        else
            d->exact = false;
    }
    return p;
}

/* The exponent after the letter; NULL if there is none. */
static const char *read_exponent(const char *p, const char *end, decimal *d) {
    const bool negative = p < end && *p == '-';
    int value = 0;
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end || !is_digit(*p)) return NULL;
    for (; p < end && is_digit(*p); p++)
        if (value < 100000) value = value * 10 + (*p - '0');
    d->exponent += negative ? -value : value;
    return p;
}

/* True if all of the text is a decimal number. */
static bool read_decimal(const char *p, const char *end, decimal *d) {
    *d = (decimal){.exact = true, .negative = p < end && *p == '-'};
    if (p < end && (*p == '-' || *p == '+')) p++;
    const char *whole = p;
    p = read_digits(p, end, d);
    ptrdiff_t n = p - whole;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        p = read_digits(p, end, d);
        n += p - fraction;
        d->exponent = (int)(fraction - p);
    }
    if (n > 0 && p < end && (*p == 'e' || *p == 'E')) p = read_exponent(p + 1, end, d);
    return n > 0 && p == end;
}

enum { NUMBER_MAX = 500 };

/* For decimals of more than 19 digits and the hardest of the others. */
static double by_strtod(const char *text, size_t n) {
    char copy[NUMBER_MAX + 1];
    memcpy(copy, text, n);
    copy[n] = '\0';
    return strtod(copy, NULL);
}

static double decimal_value(const decimal *d, const char *text, size_t n) {
    double size;
    if (!d->exact || !n2_decimal_nearest((n2_decimal){d->digits, d->exponent}, &size))
        return by_strtod(text, n);
    return d->negative ? -size : size;
}

/* Whether the text is the word, in any case; not by the locale's idea of case. */
static bool same_word(const char *text, size_t n, const char *word) {
    for (; n > 0 && *word; n--, text++, word++)
        if ((*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text) != *word) return false;
    return n == 0 && *word == '\0';
}

static bool is_word(const char *text, size_t n, const char *const *words, size_t n_words) {
    for (size_t i = 0; i < n_words; i++)
        if (same_word(text, n, words[i])) return true;
    return false;
}

static n2_value word_value(const char *text, size_t n) {
    static const char *const missing[] = {"",     "na",   "n/a", "nan", "-nan",
                                          "null", "none", "?",   "-",   "."};
    static const char *const infinite[] = {"inf", "infinity"};
    if (is_word(text, n, missing, sizeof missing / sizeof missing[0])) return N2_VALUE_MISSING;
    const size_t sign = *text == '-' || *text == '+';
    return is_word(text + sign, n - sign, infinite, 2) ? N2_VALUE_INFINITE : N2_VALUE_TEXT;
}

n2_value n2_value_parse(const char *text, size_t n, double *number) {
    const char *end = text + n;
    decimal d;
    trim(&text, &end);
    n = (size_t)(end - text);
    if (n > NUMBER_MAX) return N2_VALUE_TEXT;
    if (!read_decimal(text, end, &d)) return word_value(text, n);
    *number = decimal_value(&d, text, n);
    return isfinite(*number) ? N2_VALUE_NUMBER : N2_VALUE_INFINITE;
}

/* ---- the buffer ------------------------------------------------------------------------- */

typedef enum place { FIELD_START, IN_PLAIN, IN_QUOTES, AFTER_QUOTE } place;

struct n2_csv {
    n2ce_ctx *ctx;
    n2_input *in;
    char *buffer;
    size_t room, piece;  /* bytes of the buffer, and how large it becomes where bytes are many */
    size_t origin;       /* of the buffer in the input */
    size_t row, at, end; /* of the buffer: where the row starts, scanned to, filled to */
    bool started, ended; /* past what precedes the first row; no more bytes */
    bool filled;         /* the last bytes that came were as many as there was room for */
    char separator;
    size_t line, row_line;         /* at `at`, and where the row starts, from 1 */
    size_t first_line, quote_line; /* of the first row, and of the opening quote */
    place place;                   /* at `at` */
    n2_csv_field *fields;          /* of the row, the last one unfinished */
    size_t n, fields_room;
    bool doubled;    /* a field of the row is */
    bool checked;    /* quotes of a piece of a file are even */
    size_t expected; /* fields of the first row, 0 before there is one */

    size_t part;               /* bytes */
    n2_csv_field *part_fields; /* `expected` of each thread, or NULL */
};

n2ce_status n2_csv_open(n2ce_ctx *ctx, n2_input *in, size_t part, n2_csv **out) {
    *out = NULL;
    n2_csv *c = n2_alloc(ctx, 1, sizeof *c);
    if (!c) return N2CE_ENOMEM;
    *c = (n2_csv){.ctx = ctx, .in = in, .separator = ',', .line = 1};
    c->part = part > 0 ? part : PART;
    c->piece = part > 0 ? part * N2_CSV_PARTS : PIECE;
    c->room = c->piece < BUFFER_START ? c->piece : BUFFER_START;
    if (n2_ctx_threads(ctx) == 1) c->piece = c->room;
    c->fields_room = FIELDS_START;
    c->buffer = n2_realloc(ctx, NULL, c->room, 1);
    c->fields = n2_alloc(ctx, c->fields_room, sizeof *c->fields);
    if (c->buffer && c->fields) {
        *out = c;
        return N2CE_OK;
    }
    n2_csv_close(c);
    return N2CE_ENOMEM;
}

void n2_csv_close(n2_csv *csv) {
    if (!csv) return;
    n2_free(csv->ctx, csv->buffer);
    n2_free(csv->ctx, csv->fields);
    n2_free(csv->ctx, csv->part_fields);
    n2_free(csv->ctx, csv);
}

size_t n2_csv_line(const n2_csv *csv) { return csv->row_line; }
size_t n2_csv_place(const n2_csv *csv) { return csv->origin + csv->at; }

/* Moves what is left to `buffer`, which is the old one or larger, and its fields with it. */
static void move_row(n2_csv *c, char *buffer) {
    const char *from = c->buffer + c->row;
    for (size_t i = 0; i < c->n; i++) c->fields[i].text = buffer + (c->fields[i].text - from);
    memmove(buffer, from, c->end - c->row);
    c->origin += c->row;
    c->at -= c->row;
    c->end -= c->row;
    c->row = 0;
}

static n2ce_status grow(n2_csv *c) {
    if (c->room >= N2_CSV_ROW_MAX)
        return n2_fail(c->ctx, N2CE_EDATA,
                       "%s, line %zu: the row is longer than %zu MiB. Check for a quote that is "
                       "not closed, and that it is a text file.",
                       c->in->label, c->row_line, N2_CSV_ROW_MAX >> 20);
    char *larger = n2_realloc(c->ctx, NULL, c->room * 2, 1);
    if (!larger) return N2CE_ENOMEM;
    move_row(c, larger);
    n2_free(c->ctx, c->buffer);
    c->buffer = larger;
    c->room *= 2;
    return N2CE_OK;
}

/* More bytes behind those of the row so far. */
static n2ce_status refill(n2_csv *c) {
    size_t n = 0;
    if (c->row > 0) move_row(c, c->buffer);
    if (c->end == c->room || (c->filled && c->room < c->piece)) N2_TRY(grow(c));
    N2_TRY(n2_input_read(c->in, c->buffer + c->end, c->room - c->end, &n));
    c->end += n;
    c->filled = c->end == c->room;
    c->ended = n == 0;
    return N2CE_OK;
}

/* ---- before the first row --------------------------------------------------------------- */

/* The length of the physical line at `row`, with its newline. */
static n2ce_status whole_line(n2_csv *c, size_t *n) {
    for (size_t scanned = 0;;) {
        const char *start = c->buffer + c->row;
        const char *newline = memchr(start + scanned, '\n', c->end - c->row - scanned);
        *n = newline ? (size_t)(newline - start) + 1 : c->end - c->row;
        if (newline || c->ended) return N2CE_OK;
        scanned = *n;
        N2_TRY(refill(c));
    }
}

static bool is_blank_line(const char *text, size_t n) {
    while (n > 0 && (is_blank(text[n - 1]) || text[n - 1] == '\n')) n--;
    return n == 0;
}

static n2ce_status skip_mark(n2_csv *c) {
    while (c->end - c->row < 3 && !c->ended) N2_TRY(refill(c));
    if (c->end - c->row >= 3 && memcmp(c->buffer + c->row, "\xef\xbb\xbf", 3) == 0) c->row = 3;
    c->at = c->row;
    return N2CE_OK;
}

/* The first of comma, tab and semicolon that the line has outside quotes. */
static char find_separator(const char *line, size_t n) {
    bool quoted = false, has_tab = false, has_semicolon = false;
    for (size_t i = 0; i < n; i++) {
        quoted ^= line[i] == '"';
        if (quoted) continue;
        if (line[i] == ',') return ',';
        has_tab |= line[i] == '\t';
        has_semicolon |= line[i] == ';';
    }
    return has_tab ? '\t' : has_semicolon ? ';' : ',';
}

/* Skips blank lines and comments, and looks at the first row's line. */
static n2ce_status start(n2_csv *c) {
    size_t n = 0;
    N2_TRY(skip_mark(c));
    for (;; c->at = c->row += n, c->line++) {
        c->row_line = c->line;
        N2_TRY(whole_line(c, &n));
        const char *line = c->buffer + c->row;
        if (n > 0 && (line[0] == '#' || is_blank_line(line, n))) continue;
        if (n > 0 && memchr(line, '\0', n))
            return n2_fail(
                c->ctx, N2CE_EDATA,
                "%s, line %zu: there is a NUL byte, so this is neither CSV nor NPY. Save "
                "it as one of the two.",
                c->in->label, c->line);
        c->separator = find_separator(line, n);
        c->started = true;
        return N2CE_OK;
    }
}

/* ---- rows ------------------------------------------------------------------------------- */

/* A part has no context: its rows have as many fields as are expected, or are not its business. */
static n2ce_status grow_fields(n2_csv *c) {
    if (!c->ctx) return N2CE_EDATA;
    n2_csv_field *more = n2_realloc(c->ctx, c->fields, c->fields_room * 2, sizeof *c->fields);
    if (!more) return N2CE_ENOMEM;
    c->fields = more;
    c->fields_room *= 2;
    return N2CE_OK;
}

/* A new field that starts at `at`. */
static n2ce_status add_field(n2_csv *c) {
    if (c->n == N2_CSV_FIELDS_MAX)
        return n2_fail(c->ctx, N2CE_EDATA, "%s, line %zu: the row has more than %zu fields.",
                       c->in->label, c->row_line, N2_CSV_FIELDS_MAX);
    if (c->n == c->fields_room) N2_TRY(grow_fields(c));
    c->fields[c->n++] = (n2_csv_field){.text = c->buffer + c->at};
    c->place = FIELD_START;
    return N2CE_OK;
}

/* Ends the field in front of the byte at `at`. */
static void end_field(n2_csv *c) {
    n2_csv_field *f = &c->fields[c->n - 1];
    if (f->quoted) return;
    const char *end = c->buffer + c->at;
    trim(&f->text, &end);
    f->n = (size_t)(end - f->text);
}

/* Ends the field, and perhaps the row, if a separator or a newline is at `at`. */
static n2ce_status end_at_delimiter(n2_csv *c, bool *row_ended) {
    const char found = c->buffer[c->at];
    if (found != c->separator && found != '\n') return N2CE_OK;
    end_field(c);
    c->at++;
    *row_ended = found == '\n';
    c->line += *row_ended;
    return *row_ended ? N2CE_OK : add_field(c);
}

static n2ce_status scan_start(n2_csv *c) {
    while (c->at < c->end && is_blank(c->buffer[c->at]) && c->buffer[c->at] != c->separator)
        c->at++;
    if (c->at == c->end) return N2CE_OK;
    c->place = c->buffer[c->at] == '"' ? IN_QUOTES : IN_PLAIN;
    if (c->place == IN_PLAIN) return N2CE_OK;
    c->fields[c->n - 1] = (n2_csv_field){.text = c->buffer + ++c->at, .quoted = true};
    c->quote_line = c->line;
    return N2CE_OK;
}

static const uint64_t ONES = UINT64_MAX / 255; /* a one in each byte */

/* The highest bit of each byte that is 0, and perhaps of some above the lowest of them. */
static uint64_t zero_bytes(uint64_t word) { return (word - ONES) & ~word & ONES << 7; }

/* The first separator or newline, eight bytes at a time; or the end. */
static const char *find_delimiter(const char *p, const char *end, char separator) {
    const uint64_t separators = ONES * (unsigned char)separator, newlines = ONES * '\n';
    for (uint64_t word; end - p >= (ptrdiff_t)sizeof word; p += sizeof word) {
        memcpy(&word, p, sizeof word);
        const uint64_t found = zero_bytes(word ^ separators) | zero_bytes(word ^ newlines);
        if (found) return p + __builtin_ctzll(found) / 8;
    }
    while (p < end && *p != separator && *p != '\n') p++;
    return p;
}

static n2ce_status scan_plain(n2_csv *c, bool *row_ended) {
    const char *end = c->buffer + c->end;
    const char *p = find_delimiter(c->buffer + c->at, end, c->separator);
    c->at = (size_t)(p - c->buffer);
    return p < end ? end_at_delimiter(c, row_ended) : N2CE_OK;
}

static void scan_quoted(n2_csv *c) {
    for (; c->at < c->end; c->at++) {
        if (c->buffer[c->at] == '"') {
            n2_csv_field *f = &c->fields[c->n - 1];
            f->n = (size_t)(c->buffer + c->at++ - f->text);
            c->place = AFTER_QUOTE;
            return;
        }
        c->line += c->buffer[c->at] == '\n';
    }
}

/* After a quote comes another one, which makes it a part of the text, or the end of the field. */
static n2ce_status scan_after_quote(n2_csv *c, bool *row_ended) {
    n2_csv_field *f = &c->fields[c->n - 1];
    const char *quote = f->text + f->n, *p = c->buffer + c->at;
    if (*p == '"' && p == quote + 1) {
        f->doubled = c->doubled = true;
        c->place = IN_QUOTES;
        c->at++;
        return N2CE_OK;
    }
    if (*p == c->separator || *p == '\n') return end_at_delimiter(c, row_ended);
    c->at++;
    if (is_blank(*p)) return N2CE_OK;
    return n2_fail(c->ctx, N2CE_EDATA,
                   "%s, line %zu: \"%s\" comes after the closing quote of field %zu. Double the "
                   "quotes inside a quoted field.",
                   c->in->label, c->line, n2_show(p, 1).text, c->n);
}

/* Scans on until the row ends or the bytes do. */
static n2ce_status scan(n2_csv *c, bool *row_ended) {
    while (c->at < c->end && !*row_ended) {
        if (c->place == FIELD_START) N2_TRY(scan_start(c));
        if (c->place == IN_PLAIN)
            N2_TRY(scan_plain(c, row_ended));
        else if (c->place == IN_QUOTES)
            scan_quoted(c);
        else if (c->place == AFTER_QUOTE && c->at < c->end)
            N2_TRY(scan_after_quote(c, row_ended));
    }
    return N2CE_OK;
}

/* The row without a newline at the end of the file. */
static n2ce_status end_of_file(n2_csv *c) {
    if (c->place == IN_QUOTES)
        return n2_fail(c->ctx, N2CE_EDATA,
                       "%s, line %zu: a quote opens here and is not closed before the end of the "
                       "file.",
                       c->in->label, c->quote_line);
    end_field(c);
    return N2CE_OK;
}

static n2ce_status begin_row(n2_csv *c) {
    c->row = c->at;
    c->row_line = c->line;
    c->n = 0;
    c->doubled = false;
    return add_field(c);
}

/* Scans the row at `at`. */
static n2ce_status read_row(n2_csv *c) {
    bool row_ended = false;
    N2_TRY(begin_row(c));
    for (;;) {
        N2_TRY(scan(c, &row_ended));
        if (row_ended) return N2CE_OK;
        if (c->ended) return end_of_file(c);
        N2_TRY(refill(c));
    }
}

/* Whether the row is of a piece whose quotes nobody has counted, and has some. Its header is not of
 * the piece. */
static bool has_new_quotes(const n2_csv *c) {
    if (c->in->stop == 0 || c->checked || c->origin + c->row < c->in->gap) return false;
    return memchr(c->buffer + c->row, '"', c->at - c->row);
}

/* Of a piece quotes are looked at when they are met, and before anything is said about them. */
static n2ce_status read_row_of_piece(n2_csv *c) {
    const n2ce_status status = read_row(c);
    if ((status != N2CE_OK && status != N2CE_EDATA) || !has_new_quotes(c)) return status;
    N2_TRY(n2_input_check_quotes(c->in));
    c->checked = true;
    return status;
}

static bool is_blank_row(const n2_csv *c) {
    return c->n == 1 && c->fields[0].n == 0 && !c->fields[0].quoted;
}

/* Makes one quote of two, in place. */
static void halve_quotes(n2_csv_field *f) {
    char *to = (char *)(uintptr_t)f->text; /* it is our buffer */
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        to[n++] = f->text[i];
        i += f->text[i] == '"';
    }
    f->n = n;
}

static n2ce_status check_count(n2_csv *c) {
    if (c->expected == 0) {
        c->expected = c->n;
        c->first_line = c->row_line;
    }
    if (c->n == c->expected) return N2CE_OK;
    return n2_fail(c->ctx, N2CE_EDATA,
                   "%s, line %zu: %zu field%s found, and %zu expected as in line %zu. Check for "
                   "separators that are missing, or that need quotes.",
                   c->in->label, c->row_line, c->n, c->n == 1 ? "" : "s", c->expected,
                   c->first_line);
}

n2ce_status n2_csv_next(n2_csv *c, const n2_csv_field **fields, size_t *n) {
    *fields = NULL;
    *n = 0;
    if (!c->started) N2_TRY(start(c));
    bool blank = true;
    while (blank) {
        N2_TRY(read_row_of_piece(c));
        blank = is_blank_row(c);
        if (blank && c->ended && c->at == c->end) return N2CE_OK;
    }
    N2_TRY(check_count(c));
    for (size_t i = 0; c->doubled && i < c->n; i++)
        if (c->fields[i].doubled) halve_quotes(&c->fields[i]);
    *fields = c->fields;
    *n = c->n;
    return N2CE_OK;
}

/* ---- plain rows ------------------------------------------------------------------------- */

char n2_csv_separator(const n2_csv *csv) { return csv->separator; }

/* From byte *at of the buffer on, of whole lines alone. */
static size_t read_plain(const n2_csv *c, size_t *at, size_t stop, const n2_plain_lines *lines,
                         size_t max_rows, double *x) {
    const char *p = c->buffer + *at;
    const size_t rows = n2_plain_rows(lines, &p, c->buffer + stop, max_rows, x);
    *at = (size_t)(p - c->buffer);
    return rows;
}

size_t n2_csv_plain_rows(n2_csv *c, const n2_plain_lines *lines, size_t max_rows, double *x) {
    const size_t rows = read_plain(c, &c->at, c->end, lines, max_rows, x);
    c->line += rows;
    return rows;
}

size_t n2_csv_plain_part(const n2_csv *c, n2_csv_part *part, const n2_plain_lines *lines,
                         size_t max_rows, double *x) {
    size_t at = part->at - c->origin;
    const size_t rows = read_plain(c, &at, part->end - c->origin, lines, max_rows, x);
    part->at = c->origin + at;
    part->line += rows;
    return rows;
}

double n2_csv_counts_from(const n2_csv_field *fields, size_t n) {
    double from = -1;
    for (size_t i = 0; i < n; i++) {
        double number = 0;
        if (fields[i].n == 0 || fields[i].n > 9) return -1;
        for (size_t k = 0; k < fields[i].n; k++) {
            const char c = fields[i].text[k];
            if (c < '0' || c > '9' || (c == '0' && k == 0 && fields[i].n > 1)) return -1;
            number = 10 * number + (c - '0');
        }
        if (i == 0) from = number;
        if (number != from + (double)i) return -1;
    }
    return from;
}

bool n2_csv_is_header(const n2_csv_field *fields, size_t n, n2_header header) {
    if (header != N2_HEADER_AUTO) return header == N2_HEADER_YES;
    if (n >= 3 && n2_csv_counts_from(fields, n) == 0) return true;
    const n2_c_locale scope = n2_c_locale_enter();
    size_t counts[N2_VALUE_TEXT + 1] = {0};
    double number;
    for (size_t i = 0; i < n; i++) counts[n2_value_parse(fields[i].text, fields[i].n, &number)]++;
    n2_c_locale_leave(scope);
    return counts[N2_VALUE_TEXT] > 0 && counts[N2_VALUE_NUMBER] == 0;
}

/* ---- parts ------------------------------------------------------------------------------ */

/* The bytes from `at` to the last newline of about so many rows, going by the lines so far. */
static size_t bytes_of_rows(const n2_csv *c, size_t rows) {
    const size_t line = (c->origin + c->at) / c->line + 1;
    size_t n = c->end - c->at;
    if (rows < n / line) n = (rows + rows / 16) * line;
    if (n > c->end - c->at) n = c->end - c->at;
    while (n > 0 && c->buffer[c->at + n - 1] != '\n') n--;
    return n;
}

/* Sums that fit a byte are made of many bytes at once. */
static size_t count_newlines(const char *text, size_t n) {
    enum { BLOCK = 128 };
    size_t count = 0;
    for (; n >= BLOCK; n -= BLOCK, text += BLOCK) {
        uint8_t found = 0;
        for (int i = 0; i < BLOCK; i++) found = (uint8_t)(found + (text[i] == '\n'));
        count += found;
    }
    for (size_t i = 0; i < n; i++) count += text[i] == '\n';
    return count;
}

/* Bytes that are cut into equal slices, and what is known of each. */
typedef struct slicing {
    const n2_csv *c;
    size_t n, size; /* bytes of all, and of a slice */
    n2_csv_part *slices;
} slicing;

/* Where a slice's first row begins, if one does, and its newlines. */
static void look_at_slice(void *arg, size_t item, int worker) {
    (void)worker;
    const slicing *s = arg;
    const n2_csv *c = s->c;
    const size_t from = item * s->size, left = s->n - from, n = left < s->size ? left : s->size;
    const char *text = c->buffer + c->at + from, *newline = memchr(text, '\n', n);
    s->slices[item] = (n2_csv_part){.begin = c->origin + c->at};
    if (item > 0 && newline) s->slices[item].begin += from + (size_t)(newline - text) + 1;
    s->slices[item].rows = count_newlines(text, n);
}

static void end_part(n2_csv_part *part, size_t end, size_t row) {
    part->end = end;
    part->rows = row - part->row;
}

/* Makes parts of n slices, in their place: a part is what begins in a slice. Returns how many
 * begin before max_rows. */
static size_t join_slices(const slicing *s, size_t n, size_t max_rows) {
    n2_csv_part *part = s->slices;
    size_t newlines = 0, n_parts = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = s->slices[i].begin, found = s->slices[i].rows;
        const size_t row = newlines + (i > 0), line = s->c->line + row;
        newlines += found;
        if (i > 0 && found == 0) continue;
        if (i > 0) end_part(part++, begin, row < max_rows ? row : max_rows);
        if (row >= max_rows) return n_parts;
        *part = (n2_csv_part){.begin = begin, .at = begin, .line = line, .row = row};
        n_parts++;
    }
    end_part(part, s->c->origin + s->c->at + s->n, newlines < max_rows ? newlines : max_rows);
    return n_parts;
}

static n2ce_status make_part_fields(n2_csv *c) {
    if (c->part_fields) return N2CE_OK;
    const size_t n = (size_t)n2_ctx_threads(c->ctx) * c->expected;
    c->part_fields = n2_alloc(c->ctx, n, sizeof *c->part_fields);
    return c->part_fields ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_csv_split(n2_csv *c, size_t max_rows, n2_csv_part *parts, size_t *n) {
    *n = 0;
    const size_t threads = (size_t)n2_ctx_threads(c->ctx);
    if (threads == 1 || c->end - c->at < 2 * c->part) return N2CE_OK;
    if (c->expected == 0 || c->expected > PART_FIELDS / threads) return N2CE_OK;
    slicing s = {.c = c, .n = bytes_of_rows(c, max_rows), .slices = parts};
    if (s.n < 2 * c->part) return N2CE_OK;
    N2_TRY(make_part_fields(c));
    s.size = (s.n + N2_CSV_PARTS - 1) / N2_CSV_PARTS;
    if (s.size < c->part) s.size = c->part;
    const size_t slices = (s.n + s.size - 1) / s.size;
    N2_TRY(n2_parallel_for(c->ctx, slices, look_at_slice, &s));
    *n = join_slices(&s, slices, max_rows);
    return N2CE_OK;
}

/* Scans the row at `at` if there is nothing to be said about it, or done to its bytes. */
static bool scan_whole_row(n2_csv *c) {
    bool row_ended = false;
    if (begin_row(c) != N2CE_OK || scan(c, &row_ended) != N2CE_OK || !row_ended) return false;
    return !c->doubled && !has_new_quotes(c) && (c->n == c->expected || is_blank_row(c));
}

void n2_csv_read_part(const n2_csv *csv, n2_csv_part *part, int worker, n2_csv_row_fn *fn,
                      void *arg) {
    n2_csv c = *csv; /* with a place and fields of its own, and no context to complain to */
    c.ctx = NULL;
    c.fields = csv->part_fields + (size_t)worker * csv->expected;
    c.fields_room = csv->expected;
    c.at = part->at - c.origin;
    c.end = part->end - c.origin;
    c.line = part->line;
    size_t at = c.at, line = c.line;
    while (c.at < c.end && scan_whole_row(&c) && (is_blank_row(&c) || fn(arg, c.fields))) {
        at = c.at;
        line = c.line;
    }
    part->at = c.origin + at;
    part->line = line;
}

bool n2_csv_join(n2_csv *c, const n2_csv_part *part) {
    if (c->origin + c->at != part->begin) return false;
    c->at = part->at - c->origin;
    c->line = part->line;
    return true;
}

bool n2_csv_is_before(const n2_csv *c, size_t byte) { return c->origin + c->at < byte; }
