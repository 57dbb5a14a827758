/* Compiled once per instruction set (base/isa.h). */
#include "plain_kernel.h"

#include "base/isa.h"

#include <stdint.h>

enum { BLOCK = 128 }; /* sums that fit a byte are made of many bytes at once */

/* Signs, points and commas are next to one another, as they and digits are but for a slash. */
static inline void look_at_some(const unsigned char *text, size_t n, unsigned char separator,
                                n2_line_findings *f) {
    uint8_t lines = 0, separators = 0, odd = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t c = text[i], b = text[i - 1], a = text[i - 2];
        const uint8_t is_line = c == '\n', is_separator = c == separator;
        const uint8_t ends = (uint8_t)(is_line | is_separator | (c == '\r'));
        const uint8_t sign = (uint8_t)(b - '+') <= '.' - '+';
        const uint8_t ended = (uint8_t)((b == '\n') | (b == separator));
        const uint8_t bare = (uint8_t)(sign & ((a == '\n') | (a == separator)));
        const uint8_t digit = (uint8_t)(((uint8_t)(c - '+') <= '9' - '+') & (c != '/'));
        const uint8_t known = (uint8_t)(digit | ends | ((c | 32) == 'e'));
        odd |= (uint8_t)((known ^ 1) | (ends & (ended | bare)));
        lines = (uint8_t)(lines + is_line);
        separators = (uint8_t)(separators + is_separator);
    }
    f->lines += lines;
    f->separators += separators;
    f->odd |= odd != 0;
}

n2_look_fn N2_ISA(n2_look_at_bytes);

void N2_ISA(n2_look_at_bytes)(const unsigned char *text, size_t n, unsigned char separator,
                              n2_line_findings *f) {
    for (; n >= BLOCK && !f->odd; n -= BLOCK, text += BLOCK)
        look_at_some(text, BLOCK, separator, f);
    if (!f->odd) look_at_some(text, n, separator, f);
}
