/* Compiled once per instruction set (base/isa.h). */
#include "plain_kernel.h"

#include "base/isa.h"
#include "plain_bytes.h"

n2_look_fn N2_ISA(n2_look_at_bytes);

/* Bits of a block. */
typedef struct sight {
    uint64_t newlines, separators, ends, signs, foreign;
} sight;

/* Signs, points and commas are next to one another, as they and digits are but for a slash. */
static inline sight look_at(const char *text, char separator) {
    uint64_t newlines = 0, separators = 0, ends = 0, signs = 0, known = 0;
    for (int p = 0; p < BLOCK; p += VECTOR) {
        const bytes b = load(text + p), from_plus = less(b, '+');
        const marks newline = equal(b, '\n'), divides = equal(b, separator);
        const marks end = newline | divides | equal(b, '\r');
        const marks digit = at_most(from_plus, '9' - '+') & ~equal(b, '/');
        newlines |= bits_of(newline) << p;
        separators |= bits_of(divides) << p;
        ends |= bits_of(end) << p;
        signs |= bits_of(at_most(from_plus, '.' - '+')) << p;
        known |= bits_of(digit | end | equal(with_bit(b, 32), 'e')) << p;
    }
    return (sight){newlines, separators, ends, signs, ~known};
}

/* What is odd of a block is a foreign byte, or an end behind an end, or behind a sign that is
 * behind one: newlines and separators, and signs, of the block before. */
static inline uint64_t odd_in(const sight *s, uint64_t earlier_splits, uint64_t earlier_signs) {
    enum { LAST = BLOCK - 1 };
    const uint64_t splits = s->newlines | s->separators;
    const uint64_t behind_split = splits << 1 | earlier_splits >> LAST;
    const uint64_t second = splits << 2 | earlier_splits >> (LAST - 1);
    const uint64_t behind_sign = s->signs << 1 | earlier_signs >> LAST;
    return s->foreign | (s->ends & (behind_split | (behind_sign & second)));
}

/* The two bytes before a text, as if they were the last of a block. */
static sight two_before(const char *text, char separator) {
    char block[BLOCK];
    memset(block, '0', sizeof block);
    memcpy(block + BLOCK - 2, text - 2, 2);
    return look_at(block, separator);
}

void N2_ISA(n2_look_at_bytes)(const unsigned char *first, size_t n, unsigned char separator,
                              n2_line_findings *f) {
    char block[BLOCK];
    const char *text = (const char *)first;
    if (n == 0 || f->odd) return;
    sight s = two_before(text, (char)separator);
    uint64_t odd = 0, splits = s.newlines | s.separators, signs = s.signs;
    size_t lines = 0, separators = 0;
    for (; n > 0 && !odd; n -= n < BLOCK ? n : BLOCK, text += BLOCK) {
        s = look_at(n < BLOCK ? padded(text, n, block) : text, (char)separator);
        odd = odd_in(&s, splits, signs);
        if (n < BLOCK) odd &= ((uint64_t)1 << n) - 1;
        lines += (size_t)__builtin_popcountll(s.newlines);
        separators += (size_t)__builtin_popcountll(s.separators);
        splits = s.newlines | s.separators;
        signs = s.signs;
    }
    f->lines += lines;
    f->separators += separators;
    f->odd = odd != 0;
}
