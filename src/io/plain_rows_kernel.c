/* Compiled once per instruction set (base/isa.h).
 *
 * Where fields end is found first, for 64 bytes at once, of some hundred fields: so no field waits
 * for the one before, and a processor has several in hand. Of a field of at most 16 characters, as
 * most are, the bytes in front of its end are looked at together; others are read one by one. */
#include "base/decimal.h"
#include "base/isa.h"
#include "plain_bytes.h"
#include "plain_lines.h"

n2_read_rows_fn N2_ISA(n2_read_rows);
n2_skip_lines_fn N2_ISA(n2_skip_lines);

enum { WORD = 16 };

size_t N2_ISA(n2_skip_lines)(const char *text, size_t n, size_t lines) {
    char block[BLOCK];
    size_t at = 0;
    for (; at < n && lines > 0; at += BLOCK) {
        uint64_t found =
            places_of('\n', n - at < BLOCK ? padded(text + at, n - at, block) : text + at);
        const size_t count = (size_t)__builtin_popcountll(found);
        if (count < lines) {
            lines -= count;
            continue;
        }
        while (--lines > 0) found &= found - 1;
        return at + (size_t)__builtin_ctzll(found) + 1;
    }
    return at < n ? at : n;
}

/* ---- where fields end --------------------------------------------------------------------- */

enum { ENDS = N2_PLAIN_FIELDS_MAX, ENOUGH = 512 };

/* Some lines, all of which have as many fields as they should. */
typedef struct some_lines {
    size_t n;
    uint32_t end[ENDS + BLOCK];   /* of their fields, one line after the other */
    uint32_t begin[ENDS + BLOCK]; /* of the lines, and behind the last one */
} some_lines;

/* Most blocks have eight ends at most: for those there is no branch. */
static inline void note_ends(uint64_t ends, size_t n, uint32_t base, uint32_t *end) {
    enum { MOST = 8 };
    for (size_t i = 0; i < MOST; i++, ends &= ends - 1)
        end[i] = base + (uint32_t)__builtin_ctzll(ends | (uint64_t)1 << (BLOCK - 1));
    for (size_t i = MOST; i < n; i++, ends &= ends - 1)
        end[i] = base + (uint32_t)__builtin_ctzll(ends);
}

/* Lines end where the last of their fields does, or before a carriage return there. `found` fields
 * are before this block. False: a line has another number of fields. */
static inline bool note_lines(some_lines *s, const char *text, size_t fields, uint32_t base,
                              size_t found, uint64_t ends, uint64_t newlines) {
    for (; newlines; newlines &= newlines - 1) {
        const uint64_t before = (newlines & -newlines) - 1;
        const size_t field = found + (size_t)__builtin_popcountll(ends & before);
        const uint32_t at = base + (uint32_t)__builtin_ctzll(newlines);
        if (field + 1 != (s->n + 1) * fields) return false;
        s->end[field] = at - (at > s->begin[s->n] && text[at - 1] == '\r');
        s->begin[++s->n] = at + 1;
    }
    return true;
}

/* n bytes, of a block or fewer, `found` fields into the lines. False: what follows is for others.
 */
static inline bool add_block(some_lines *s, const char *text, uint32_t at, const char *block,
                             const n2_plain_lines *l, size_t *found) {
    const uint64_t quotes = places_of('"', block), plain = (quotes & -quotes) - 1;
    const uint64_t newlines = places_of('\n', block) & plain;
    const uint64_t ends = (places_of(l->separator, block) & plain) | newlines;
    const size_t count = (size_t)__builtin_popcountll(ends);
    note_ends(ends, count, at, s->end + *found);
    const bool alike = note_lines(s, text, l->fields, at, *found, ends, newlines);
    *found += count;
    return alike && !quotes;
}

/* Up to a quote, which is left to others; `enough` fields, at least those of a line. */
static void find_lines(some_lines *s, const char *text, size_t n, const n2_plain_lines *l,
                       size_t max_rows, size_t enough) {
    size_t at = 0, found = 0;
    bool more = true;
    s->n = s->begin[0] = 0;
    for (; n - at >= BLOCK && more && found < enough && s->n < max_rows; at += BLOCK)
        more = add_block(s, text, (uint32_t)at, text + at, l, &found);
    if (n > at && n - at < BLOCK && more && found < enough && s->n < max_rows) {
        char block[BLOCK];
        add_block(s, text, (uint32_t)at, padded(text + at, n - at, block), l, &found);
    }
    if (s->n > max_rows) s->n = max_rows;
}

/* ---- sixteen characters ------------------------------------------------------------------- */

/* Two numbers of eight digits each. Whatever the compiler makes of them is exact: products of the
 * first and 10^8 have few bits, so that there is one rounding, in the sum, if any. */
#ifdef __AVX2__
typedef __m128i word;

static inline __m128i sixteen(const void *at) { return _mm_loadu_si128(at); }

static inline double number_of(word w) {
    const __m128d x = _mm_mul_pd(_mm_cvtepi32_pd(w), _mm_setr_pd(1e8, 1));
    return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
}

static inline uint64_t digits_of(word w) {
    const uint64_t halves = (uint64_t)_mm_cvtsi128_si64(w);
    return (halves & UINT32_MAX) * 100000000 + (halves >> 32);
}

/* The digits in the n characters before `end`, 1 to WORD of them; *after is how many of them are
 * behind a point, WORD: there is none. False if there is anything else. Whatever n is, WORD
 * characters can be read. */
static inline bool read_word(const char *end, size_t n, word *w, size_t *after) {
    static const int8_t before[2 * WORD + 1] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                -1, -1, -1, -1, -1, -1, -1, -1};
    const __m128i places = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i foreign = sixteen(before + n);
    __m128i x =
        _mm_andnot_si128(foreign, _mm_sub_epi8(sixteen(end - WORD), sixteen(n2_plain_marks[0])));
    const unsigned points =
        (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, sixteen(n2_plain_marks[1])));
    *after = (size_t)__builtin_clz(points << 1 | 1) - (WORD - 1);
    /* what is before the point goes to where that is */
    x = _mm_shuffle_epi8(x, _mm_add_epi8(places, sixteen(before + *after)));
    const __m128i beyond = _mm_subs_epu8(x, sixteen(n2_plain_marks[2]));
    /* pairs of digits, of pairs, and of those */
    x = _mm_maddubs_epi16(x, _mm_set1_epi16(0x010a));
    x = _mm_madd_epi16(x, _mm_set1_epi32(0x00010064));
    x = _mm_packus_epi32(x, x);
    *w = _mm_madd_epi16(x, _mm_set1_epi32(0x00012710));
    return _mm_testz_si128(beyond, beyond) && n + *after > 1; /* not a point alone */
}
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
__extension__ typedef unsigned __int128 uint128;
static const uint64_t ONES = UINT64_MAX / 255; /* a one in each byte */

typedef struct word {
    uint64_t first, last;
} word;

static inline uint64_t digits_of(word w) { return w.first * 100000000 + w.last; }
static inline double number_of(word w) { return (double)(int64_t)digits_of(w); }

/* The highest bit of each byte that is 0, and perhaps of some above the lowest of them. */
static inline uint64_t zero_bytes(uint64_t x) { return (x - ONES) & ~x & ONES << 7; }

/* The number of eight digits, the first of them lowest: of pairs, of pairs of them, of both. */
static inline uint64_t eight_digits(uint64_t x) {
    const uint64_t mask = 0x000000ff000000ff;
    x = x * 10 + (x >> 8);
    return ((x & mask) * (100 + (UINT64_C(1000000) << 32)) +
            ((x >> 16) & mask) * (1 + (UINT64_C(10000) << 32))) >>
           32;
}

static inline unsigned place_of_point(uint64_t low, uint64_t high) {
    const uint64_t point = ('.' ^ '0') * ONES;
    const uint64_t in_low = zero_bytes(low ^ point), in_high = zero_bytes(high ^ point);
    if (in_low) return (unsigned)__builtin_ctzll(in_low) / 8;
    return in_high ? (unsigned)__builtin_ctzll(in_high) / 8 + WORD / 2 : WORD;
}

static inline bool read_word(const char *end, size_t n, word *w, size_t *after) {
    uint64_t half[2];
    memcpy(half, end - WORD, sizeof half);
    uint128 x = (uint128)(half[1] ^ '0' * ONES) << 64 | (half[0] ^ '0' * ONES);
    x = x >> (8 * (WORD - n)) << (8 * (WORD - n));
    const unsigned point = place_of_point((uint64_t)x, (uint64_t)(x >> 64));
    *after = point < WORD ? WORD - 1 - point : WORD;
    if (point < WORD) { /* what is before the point goes to where that is */
        const uint128 behind = ~(uint128)0 << (8 * point) << 8;
        x = (x & behind) | (x << 8 & ~behind);
    }
    const uint64_t low = (uint64_t)x, high = (uint64_t)(x >> 64);
    const uint64_t beyond = (low + 0x76 * ONES) | low | (high + 0x76 * ONES) | high;
    *w = (word){eight_digits(low), eight_digits(high)};
    return !(beyond & 0x80 * ONES) && n + *after > 1; /* not a point alone */
}
#else
typedef struct word {
    uint64_t first, last;
} word;

static inline uint64_t digits_of(word w) { return w.first; }
static inline double number_of(word w) { return (double)w.first; }
static inline bool read_word(const char *end, size_t n, word *w, size_t *after) {
    (void)end, (void)n, (void)w, (void)after;
    return false;
}
#endif

/* ---- numbers ------------------------------------------------------------------------------ */

/* Divided by, with the sign of the number; behind the last is what there is without a point. */
static const double TENS[2][WORD + 1] = {
    {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1},
    {-1e0, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7, -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14,
     -1e15, -1}};

/* Of at most 15 digits behind a point both parts are doubles, and one operation rounds once; so do
 * 16 digits without a point. */
static inline bool read_short(const char *p, const char *end, double *x) {
    const bool negative = *p == '-';
    const size_t n = (size_t)(end - p) - negative;
    size_t after;
    word w;
    if (n - 1 >= WORD || !read_word(end, n, &w, &after)) return false;
    *x = number_of(w) / TENS[negative][after];
    return true;
}

/* The digits of a word, or of two with a point in one of them at most; 19 of them if there are
 * more than one word has. */
static inline bool read_digits(const char *p, const char *end, n2_decimal *d) {
    const size_t n = (size_t)(end - p);
    size_t before, after;
    word first, last;
    if (n - 1 < WORD) {
        if (!read_word(end, n, &last, &after)) return false;
        *d = (n2_decimal){digits_of(last), after < WORD ? -(int)after : 0};
        return true;
    }
    if (n - 1 >= 2 * WORD || !read_word(end, WORD, &last, &after) ||
        !read_word(end - WORD, n - WORD, &first, &before))
        return false;
    const bool whole = after == WORD; /* the last word is */
    const uint64_t more = digits_of(first);
    if (more > (whole ? 999 : 9999) || (!whole && before < WORD)) return false;
    d->digits = more * (whole ? 10000000000000000 : 1000000000000000) + digits_of(last);
    d->exponent = -(int)after;
    if (whole) d->exponent = before < WORD ? -(int)(before + WORD) : 0;
    return true;
}

/* In front of e+05 or the like, which *exponent is; the end if there is none. */
static inline const char *before_power(const char *p, const char *end, int *exponent) {
    const unsigned tens = (unsigned char)end[-2] - '0', ones = (unsigned char)end[-1] - '0';
    const bool minus = end[-3] == '-';
    *exponent = 0;
    if (end - p < 5 || (end[-4] | 32) != 'e' || !(minus || end[-3] == '+')) return end;
    if (tens > 9 || ones > 9) return end;
    *exponent = (int)(10 * tens + ones) * (minus ? -1 : 1);
    return end - 4;
}

/* Whatever it looks like; so many bytes before its end can be read. */
static bool read_any(const char *p, const char *end, size_t readable, double *x) {
    const bool negative = *p == '-';
    n2_decimal d;
    double size;
    int exponent;
    const char *power = before_power(p, end, &exponent);
    if (readable >= 2 * WORD + 4 && read_digits(p + negative, power, &d)) {
        d.exponent += exponent;
        if (n2_decimal_easy(d, &size) || n2_decimal_nearest(d, &size)) {
            *x = size * (1 - 2 * negative); /* a sign is as hard to guess as a coin */
            return true;
        }
    }
    return n2_plain_number(p, end, x) == end;
}

/* ---- lines -------------------------------------------------------------------------------- */

/* A function of its own has the registers for its own. */
#define APART static __attribute__((noinline))

/* Fields of a line that take longer are noted: a call among the others would cost them theirs. */
typedef struct late_fields {
    size_t n;
    size_t before; /* bytes of the text, in front of those that are at hand */
    uint32_t field[ENDS], begin[ENDS], end[ENDS];
} late_fields;

APART bool read_late(const late_fields *late, const char *text, const n2_plain_lines *l,
                     double *x) {
    for (size_t i = 0; i < late->n; i++) {
        const uint32_t end = late->end[i];
        double *to = &x[l->place[late->field[i]] - 1];
        if (!read_any(text + late->begin[i], text + end, late->before + end, to)) return false;
    }
    return true;
}

APART void read_fields(const char *text, uint32_t from, const uint32_t *end,
                       const n2_plain_lines *l, double *x, late_fields *late) {
    late->n = 0;
    for (size_t f = 0; f < l->fields; f++) {
        const size_t place = l->place[f];
        const uint32_t to = end[f];
        if (place > 0 && !read_short(text + from, text + to, &x[place - 1])) {
            late->field[late->n] = (uint32_t)f;
            late->begin[late->n] = from;
            late->end[late->n++] = to;
        }
        from = to + 1;
    }
}

/* How many lines are numbers. Those of whose first field nobody may read a word are read as they
 * come. */
static size_t read_lines(const some_lines *s, const char *text, const n2_plain_lines *l, double *x,
                         late_fields *late) {
    for (size_t i = 0; i < s->n; i++, x += l->cols) {
        const uint32_t *end = s->end + i * l->fields, begin = s->begin[i];
        if (late->before + *end < WORD) {
            if (!n2_plain_read(l, text + begin, text + s->begin[i + 1], x)) return i;
            continue;
        }
        read_fields(text, begin, end, l, x, late);
        if (late->n > 0 && !read_late(late, text, l, x)) return i;
    }
    return s->n;
}

/* At first a line, and twice as many fields whenever they were numbers: where lines are others' to
 * read, little is looked at in vain. */
size_t N2_ISA(n2_read_rows)(const n2_plain_lines *l, const char *text, size_t n, size_t max_rows,
                            double *x, size_t *used) {
    some_lines s;
    late_fields late;
    const size_t most = l->fields < ENOUGH ? ENOUGH : ENDS;
    size_t rows = 0, enough = l->fields;
    *used = 0;
    if (l->fields > ENDS) return 0;
    for (size_t some = 1; some > 0 && rows < max_rows; rows += some) {
        const size_t left = n - *used < UINT32_MAX / 2 ? n - *used : UINT32_MAX / 2;
        const char *at = text + *used;
        late.before = *used;
        find_lines(&s, at, left, l, max_rows - rows, enough);
        some = read_lines(&s, at, l, x + rows * l->cols, &late);
        *used += s.begin[some];
        if (some < s.n) return rows + some;
        enough = 2 * enough < most ? 2 * enough : most;
    }
    return rows;
}
