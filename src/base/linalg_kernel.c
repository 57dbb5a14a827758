/* Kernel file, compiled once per instruction set (isa.h). */
#include "linalg_kernel.h"
#include "isa.h"
#include "linalg.h"

#include <string.h>

n2_tile_fn N2_ISA(n2_tile);
n2_dot_fn N2_ISA(n2_dot_rows);
n2_quadratic_fn N2_ISA(n2_quadratic_rows);
n2_subtract_rows_fn N2_ISA(n2_subtract_rows);
n2_subtract_two_fn N2_ISA(n2_subtract_two);
n2_rotate_fn N2_ISA(n2_rotate);

typedef double vec8 __attribute__((vector_size(64), aligned(8), may_alias));

/* Sums are in registers, each in the order of k whatever the instruction set. Compilers break eight
 * rows of eight into what sixteen registers hold, and do it well, but for AVX2: there a quarter
 * comes after the other. */
#if defined(__AVX2__) && !defined(__AVX512F__)
typedef double vec4 __attribute__((vector_size(32), aligned(8), may_alias));

/* Four rows and four columns. */
static void quarter(const double *a, size_t a_row, size_t a_step, const double *b, size_t b_step,
                    size_t n, double *out) {
    vec4 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (size_t k = 0; k < n; k++, a += a_step, b += b_step) {
        const vec4 x = *(const vec4 *)(const void *)b;
        s0 += a[0] * x;
        s1 += a[a_row] * x;
        s2 += a[2 * a_row] * x;
        s3 += a[3 * a_row] * x;
    }
    memcpy(out, &s0, sizeof s0);
    memcpy(out + N2_TILE, &s1, sizeof s1);
    memcpy(out + 2 * N2_TILE, &s2, sizeof s2);
    memcpy(out + 3 * N2_TILE, &s3, sizeof s3);
}

void N2_ISA(n2_tile)(const double *a, size_t a_row, size_t a_step, const double *b, size_t b_step,
                     size_t n, double *out) {
    for (size_t r = 0; r < N2_TILE; r += 4)
        for (size_t c = 0; c < N2_TILE; c += 4)
            quarter(a + r * a_row, a_row, a_step, b + c, b_step, n, out + r * N2_TILE + c);
}
#else
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
#endif

/* Eight partial sums, so that the compiler may use vectors without reordering. */
double N2_ISA(n2_dot_rows)(const double *restrict x, const double *restrict y, size_t n) {
    double part[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++) part[k] += x[i + k] * y[i + k];
    for (size_t k = 0; i < n; i++, k++) part[k] += x[i] * y[i];
    return ((part[0] + part[4]) + (part[1] + part[5])) +
           ((part[2] + part[6]) + (part[3] + part[7]));
}

double N2_ISA(n2_quadratic_rows)(const double *restrict a, const double *restrict b,
                                 const double *restrict x, size_t n) {
    double part[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++) part[k] += (a[i + k] * x[i + k] + b[i + k]) * x[i + k];
    for (size_t k = 0; i < n; i++, k++) part[k] += (a[i] * x[i] + b[i]) * x[i];
    return ((part[0] + part[4]) + (part[1] + part[5])) +
           ((part[2] + part[6]) + (part[3] + part[7]));
}

/* Four rows at a time: one load and one store of `row` for four products. */
void N2_ISA(n2_subtract_rows)(double *restrict row, size_t n, const double *restrict m,
                              size_t stride, size_t rows, const double *c, size_t step) {
    size_t k = 0;
    for (; k + 4 <= rows; k += 4) {
        const double *m0 = m + k * stride, *m1 = m0 + stride, *m2 = m1 + stride, *m3 = m2 + stride;
        const double c0 = c[k * step], c1 = c[(k + 1) * step];
        const double c2 = c[(k + 2) * step], c3 = c[(k + 3) * step];
        for (size_t j = 0; j < n; j++)
            row[j] -= (c0 * m0[j] + c1 * m1[j]) + (c2 * m2[j] + c3 * m3[j]);
    }
    for (; k < rows; k++) {
        const double *last = m + k * stride, ck = c[k * step];
        for (size_t j = 0; j < n; j++) row[j] -= ck * last[j];
    }
}

void N2_ISA(n2_subtract_two)(double *restrict row, size_t n, double a, const double *restrict x,
                             double b, const double *restrict y) {
    for (size_t j = 0; j < n; j++) row[j] -= a * x[j] + b * y[j];
}

/* Columns one after the other, 32 or 8 at a time: the row that the next rotation turns too stays in
 * registers. */
void N2_ISA(n2_rotate)(double *x, size_t stride, size_t columns, size_t n, const double *c,
                       const double *s) {
    size_t j = 0;
    for (; j + 32 <= columns; j += 32) {
        vec8 *row = (vec8 *)(void *)(x + j);
        vec8 a0 = row[0], a1 = row[1], a2 = row[2], a3 = row[3];
        for (size_t k = 0; k < n; k++) {
            vec8 *next = (vec8 *)(void *)(x + (k + 1) * stride + j);
            const vec8 b0 = next[0], b1 = next[1], b2 = next[2], b3 = next[3];
            row[0] = c[k] * a0 + s[k] * b0;
            row[1] = c[k] * a1 + s[k] * b1;
            row[2] = c[k] * a2 + s[k] * b2;
            row[3] = c[k] * a3 + s[k] * b3;
            a0 = c[k] * b0 - s[k] * a0;
            a1 = c[k] * b1 - s[k] * a1;
            a2 = c[k] * b2 - s[k] * a2;
            a3 = c[k] * b3 - s[k] * a3;
            row = next;
        }
        row[0] = a0;
        row[1] = a1;
        row[2] = a2;
        row[3] = a3;
    }
    for (; j < columns; j++) {
        double *row = x + j, kept = *row;
        for (size_t k = 0; k < n; k++, row += stride) {
            const double next = row[stride];
            *row = c[k] * kept + s[k] * next;
            kept = c[k] * next - s[k] * kept;
        }
        *row = kept;
    }
}
