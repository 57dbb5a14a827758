/* Kernel file, compiled once per instruction set (isa.h). */
#include "isa.h"
#include "linalg.h"

#include <string.h>

n2_tile_fn N2_ISA(n2_tile);

typedef double vec8 __attribute__((vector_size(64), aligned(8), may_alias));

/* Eight rows of eight sums in registers, each in the order of k whatever the instruction set. */
void N2_ISA(n2_tile)(const double *a, size_t a_row, size_t a_step, const double *b, size_t b_step,
                     size_t n, double *out) {
    vec8 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
    for (size_t k = 0; k < n; k++, a += a_step, b += b_step) {
        const vec8 x = *(const vec8 *)(const void *)b;
        s0 += a[0] * x;
        s1 += a[a_row] * x;
        s2 += a[2 * a_row] * x;
        s3 += a[3 * a_row] * x;
        s4 += a[4 * a_row] * x;
        s5 += a[5 * a_row] * x;
        s6 += a[6 * a_row] * x;
        s7 += a[7 * a_row] * x;
    }
    const vec8 sums[N2_TILE] = {s0, s1, s2, s3, s4, s5, s6, s7};
    memcpy(out, sums, sizeof sums);
}
