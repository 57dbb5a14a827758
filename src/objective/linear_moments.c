/* Kernel file, compiled once per instruction set (base/isa.h).
 *
 * Two thin matrix products with a sigmoid between them: log ratios F = A Z, weights
 * W = weight(F), moments S = W [Z 1]'. Up to four objectives go together, so that a
 * block of samples is loaded once for all of them. */
#include "linear_moments.h"

#include "base/isa.h"
#include "base/lanes.h"

#define INLINE static inline __attribute__((always_inline))

n2_linear_moments_fn N2_ISA(n2_linear_moments);

/* f = a.z + offset for every sample; side g's row of f starts at g n. */
INLINE void log_ratios(const n2_linear_side *sides, int n_sides, const float *z, size_t n_blocks,
                       size_t dim, float *f) {
    for (size_t b = 0; b < n_blocks; b++) {
        n2_vec sum[N2_LINEAR_GROUP][N2_PARTS];
        for (int g = 0; g < n_sides; g++)
            for (int p = 0; p < N2_PARTS; p++) sum[g][p] = (n2_vec){0} + sides[g].offset;
        for (size_t d = 0; d < dim; d++, z += N2_LANES)
            for (int p = 0; p < N2_PARTS; p++) {
                const n2_vec x = n2_load(z, p);
                for (int g = 0; g < n_sides; g++) sum[g][p] += sides[g].a[d] * x;
            }
        for (int g = 0; g < n_sides; g++)
            for (int p = 0; p < N2_PARTS; p++)
                n2_store(f + ((size_t)g * n_blocks + b) * N2_LANES, p, sum[g][p]);
    }
}

/* From log ratios to weights, in place. */
INLINE void weigh(const n2_linear_side *side, size_t n, float *f) {
    const float inv_m = side->inv_m;
    if (side->is_den) {
        for (size_t i = 0; i < n; i++) {
            const float r = n2_lane_exp(f[i]);
            f[i] = r / (1.0f + r * inv_m);
        }
    } else {
        for (size_t i = 0; i < n; i++) f[i] = 1.0f / (1.0f + n2_lane_exp(f[i]) * inv_m);
    }
}

/* sum_i w_i x_i for each side, where x has `stride` numbers from one block to the
 * next. Lanes in float over the chunk, then together in double, always in the same
 * order. */
INLINE void weighted_sums(int n_sides, const float *w, const float *x, size_t stride,
                          size_t n_blocks, double *sums, size_t sums_stride) {
    n2_vec lanes[N2_LINEAR_GROUP][N2_PARTS];
    for (int g = 0; g < n_sides; g++)
        for (int p = 0; p < N2_PARTS; p++) lanes[g][p] = (n2_vec){0};
    for (size_t b = 0; b < n_blocks; b++)
        for (int p = 0; p < N2_PARTS; p++) {
            const n2_vec v = n2_load(x + b * stride, p);
            for (int g = 0; g < n_sides; g++)
                lanes[g][p] += n2_load(w + ((size_t)g * n_blocks + b) * N2_LANES, p) * v;
        }
    for (int g = 0; g < n_sides; g++) {
        double sum = 0;
        for (int l = 0; l < N2_LANES; l++)
            sum += (double)lanes[g][l / N2_PART_LANES][l % N2_PART_LANES];
        sums[(size_t)g * sums_stride] += sum;
    }
}

INLINE void group(const n2_linear_side *sides, int n_sides, const float *z, size_t n, size_t dim,
                  float *weights, double *sums) {
    static const float ones[N2_LANES]
        __attribute__((aligned(64))) = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const size_t n_blocks = (n + N2_LANES - 1) / N2_LANES, padded = n_blocks * N2_LANES;
    log_ratios(sides, n_sides, z, n_blocks, dim, weights);
    for (int g = 0; g < n_sides; g++) {
        weigh(&sides[g], padded, weights + (size_t)g * padded);
        for (size_t i = n; i < padded; i++) weights[(size_t)g * padded + i] = 0;
    }
    for (size_t d = 0; d < dim; d++)
        weighted_sums(n_sides, weights, z + d * N2_LANES, dim * N2_LANES, n_blocks, sums + d,
                      dim + 1);
    weighted_sums(n_sides, weights, ones, 0, n_blocks, sums + dim, dim + 1);
}

/* The group sizes are constants where group() is inlined: its loops over sides
 * disappear and the sums stay in registers. */
void N2_ISA(n2_linear_moments)(const n2_linear_side *sides, size_t n_sides, const float *z,
                               size_t n, size_t dim, float *weights, double *sums) {
    size_t i = 0;
    for (; i + N2_LINEAR_GROUP <= n_sides; i += N2_LINEAR_GROUP)
        group(sides + i, N2_LINEAR_GROUP, z, n, dim, weights, sums + i * (dim + 1));
    for (; i < n_sides; i++) group(sides + i, 1, z, n, dim, weights, sums + i * (dim + 1));
}
