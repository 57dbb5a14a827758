/* Kernel file, compiled once per instruction set (base/isa.h). */
#include "gaussian_kernel.h"

#include "base/isa.h"
#include "base/lanes.h"

n2_gaussian_moments_fn N2_ISA(n2_gaussian_moments);

/* f = a.z + offset for every sample. */
static inline void log_ratios(const n2_gaussian_side *side, const float *restrict z,
                              size_t n_blocks, size_t dim, float *restrict f) {
    for (size_t b = 0; b < n_blocks; b++, f += N2_LANES) {
        float sum[N2_LANES];
        for (size_t l = 0; l < N2_LANES; l++) sum[l] = side->offset;
        for (size_t d = 0; d < dim; d++, z += N2_LANES) {
            const float a = side->a[d];
            for (size_t l = 0; l < N2_LANES; l++) sum[l] += a * z[l];
        }
        for (size_t l = 0; l < N2_LANES; l++) f[l] = sum[l];
    }
}

/* From log ratios to weights, in place. */
static inline void weigh(const n2_gaussian_side *side, size_t n, float *f) {
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

/* sum_i w_i x_i, where x has `stride` numbers from one block to the next. Lanes in
 * float over the chunk, then together in double, always in the same order. */
static inline double weighted_sum(const float *restrict w, const float *restrict x, size_t stride,
                                  size_t n_blocks) {
    float lanes[N2_LANES] = {0};
    for (size_t b = 0; b < n_blocks; b++)
        for (size_t l = 0; l < N2_LANES; l++) lanes[l] += w[b * N2_LANES + l] * x[b * stride + l];
    double sum = 0;
    for (size_t l = 0; l < N2_LANES; l++) sum += (double)lanes[l];
    return sum;
}

void N2_ISA(n2_gaussian_moments)(const n2_gaussian_side *side, const float *z, size_t n, size_t dim,
                                 float *weights, double *sums) {
    static const float ones[N2_LANES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const size_t n_blocks = (n + N2_LANES - 1) / N2_LANES;
    log_ratios(side, z, n_blocks, dim, weights);
    weigh(side, n_blocks * N2_LANES, weights);
    for (size_t i = n; i < n_blocks * N2_LANES; i++) weights[i] = 0;
    for (size_t d = 0; d < dim; d++)
        sums[d] += weighted_sum(weights, z + d * N2_LANES, dim * N2_LANES, n_blocks);
    sums[dim] += weighted_sum(weights, ones, 0, n_blocks);
}
