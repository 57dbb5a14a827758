#include "plain_lines.h"

#include "base/decimal.h"
#include "base/isa.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- looking ---------------------------------------------------------------------------- */

N2_ISA_TABLE(n2_look_fn, n2_look_at_bytes);
N2_ISA_TABLE(n2_skip_lines_fn, n2_skip_lines);
N2_ISA_TABLE(n2_read_rows_fn, n2_read_rows);

/* A byte is looked at with the two before it, which are what is kept of the bytes before. */
void n2_plain_see(n2_plain_sight *v, const char *text, size_t n) {
    enum { BEFORE = 2 };
    n2_look_fn *look = n2_look_at_bytes_table[n2_isa_current()];
    const unsigned char separator = (unsigned char)v->as->separator;
    const size_t begin = n < BEFORE ? n : BEFORE;
    unsigned char first[2 * BEFORE] = {'\n', '\n'};
    if (v->n > 0) memcpy(first, v->last, BEFORE);
    memcpy(first + BEFORE, text, begin);
    look(first + BEFORE, begin, separator, &v->found);
    look((const unsigned char *)text + begin, n - begin, separator, &v->found);
    v->n += n;
    if (n >= BEFORE)
        memcpy(v->last, text + n - BEFORE, BEFORE);
    else
        memcpy(v->last, first + n, BEFORE);
}

bool n2_plain_seen(const n2_plain_sight *v, size_t *lines) {
    n2_plain_sight all = *v;
    if (v->n > 0 && v->last[1] != '\n') n2_plain_see(&all, "\n", 1); /* as if it had its end */
    *lines = all.found.lines;
    return !all.found.odd && all.found.separators == *lines * (v->as->fields - 1);
}

const char *n2_plain_skip(const char *at, const char *end, size_t lines) {
    return at + n2_skip_lines_table[n2_isa_current()](at, (size_t)(end - at), lines);
}

/* ---- numbers ---------------------------------------------------------------------------- */

static const uint64_t ONES = UINT64_MAX / 255; /* a one in each byte */

/* The number of eight digits, the first of them lowest: of pairs, of pairs of them, of both. */
static uint64_t number_of(uint64_t word) {
    const uint64_t mask = 0x000000ff000000ff;
    word = word * 10 + (word >> 8);
    return ((word & mask) * (100 + (UINT64_C(1000000) << 32)) +
            ((word >> 16) & mask) * (1 + (UINT64_C(10000) << 32))) >>
           32;
}

static bool is_digit(char c) { return (unsigned char)(c - '0') <= 9; }

/* The digits at p, behind those that *digits has; eight at a time, without a branch for each: how
 * many there are is what a processor cannot guess. */
static inline const char *read_digits(const char *p, const char *end, uint64_t *digits) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    for (uint64_t word; end - p >= 8;) {
        memcpy(&word, p, sizeof word);
        word ^= '0' * ONES;
        const uint64_t others = ((word + 0x76 * ONES) | word) & 0x80 * ONES;
        const unsigned n = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
        *digits = *digits * tens[n] + number_of(n ? word << (64 - 8 * n) : 0);
        p += n;
        if (n < 8) return p;
    }
#endif
    for (; p < end && is_digit(*p); p++) *digits = *digits * 10 + (uint64_t)(*p - '0');
    return p;
}

/* Of at most three digits: there are no larger ones. */
static const char *read_exponent(const char *p, const char *end, int *exponent) {
    const bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    const char *first = p;
    uint64_t value = 0;
    p = read_digits(p, end, &value);
    if (p == first || p - first > 3) return NULL;
    *exponent += negative ? -(int)value : (int)value;
    return p;
}

#define SIXTEEN(c) \
    { c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c }
const unsigned char n2_plain_marks[3][16] = {SIXTEEN('0'), SIXTEEN(256 + '.' - '0'), SIXTEEN(9)};

/* Of digits at p, with or without a point, those that are no zeros in front of the others. */
static ptrdiff_t without_zeros(const char *p, ptrdiff_t n) {
    for (; n > 0 && (*p == '0' || *p == '.'); p++) n -= *p == '0';
    return n;
}

const char *n2_plain_number(const char *p, const char *end, double *x) {
    if (p == end) return NULL;
    const bool negative = *p == '-';
    n2_decimal d = {0, 0};
    p += negative | (*p == '+');
    const char *first = p;
    p = read_digits(p, end, &d.digits);
    ptrdiff_t n = p - first;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        p = read_digits(p, end, &d.digits);
        n += p - fraction;
        d.exponent = (int)(fraction - p);
    }
    if (n == 0 || (n > 19 && without_zeros(first, n) > 19)) return NULL;
    if (p < end && (*p | 32) == 'e') p = read_exponent(p + 1, end, &d.exponent);
    double size;
    if (!p || (!n2_decimal_easy(d, &size) && !n2_decimal_nearest(d, &size))) return NULL;
    *x = size * (1 - 2 * negative); /* a sign is as hard to guess as a coin */
    return p;
}

/* Behind what is not kept: the next delimiter. */
static const char *skip_field(const char *p, const char *end, char separator) {
    while (p < end && *p != separator && *p != '\n' && *p != '"') p++;
    return p;
}

const char *n2_plain_read(const n2_plain_lines *l, const char *at, const char *end, double *x) {
    for (size_t f = 0; f < l->fields; f++) {
        const size_t place = l->place[f];
        at = place ? n2_plain_number(at, end, &x[place - 1]) : skip_field(at, end, l->separator);
        if (!at) return NULL;
        if (f + 1 == l->fields) break;
        if (at == end || *at != l->separator) return NULL;
        at++;
    }
    if (at < end && *at == '\r') at++;
    if (at == end) return at;
    return *at == '\n' ? at + 1 : NULL;
}

/* Lines with very many fields, one by one. */
static size_t read_wide(const n2_plain_lines *l, const char **at, const char *end, size_t max_rows,
                        double *x) {
    size_t rows = 0;
    while (end > *at && end[-1] != '\n') end--;
    for (; rows < max_rows && *at < end; rows++, x += l->cols) {
        const char *next = n2_plain_read(l, *at, end, x);
        if (!next) break;
        *at = next;
    }
    return rows;
}

size_t n2_plain_rows(const n2_plain_lines *l, const char **at, const char *end, size_t max_rows,
                     double *x) {
    n2_read_rows_fn *read = n2_read_rows_table[n2_isa_current()];
    size_t used = 0;
    if (l->fields > N2_PLAIN_FIELDS_MAX) return read_wide(l, at, end, max_rows, x);
    const size_t rows = read(l, *at, (size_t)(end - *at), max_rows, x, &used);
    *at += used;
    return rows;
}
