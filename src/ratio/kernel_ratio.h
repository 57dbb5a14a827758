/* Density ratios from Gaussian kernels: the baselines of the field.
 *
 *     ratio(x) = sum_l alpha_l exp(-|x - c_l|^2 / (2 sigma^2)),   alpha_l >= 0,
 *
 * with centres c_l drawn from the numerator without replacement.
 *
 *   uLSIF  least squares: alpha = max(0, (H + lambda I)^-1 h), H_lm = mean_den k_l k_m and
 *          h_l = mean_num k_l (Kanamori, Hido and Sugiyama, JMLR 10, 2009). Cheap, but the
 *          ratio's mean over the denominator is only about 1.
 *   KLIEP  maximum of mean_num ln ratio under mean_den ratio = 1 (Sugiyama et al., Annals of
 *          the Institute of Statistical Mathematics 60, 2008).
 *
 * Both choose sigma among 9 multiples, 1/4 to 4, of the median distance between centres and
 * samples, and uLSIF also lambda in 1e-3 .. 10, by 5-fold cross-validation. A held-out row is
 * never scored by a kernel centred at a held-out row: otherwise narrow kernels, which are high
 * at their own centre only, would look good. KLIEP's score of held-out rows is mean_num ln ratio
 * - mean_den ratio: without the second term narrow kernels win in small samples. */
#ifndef N2_KERNEL_RATIO_H
#define N2_KERNEL_RATIO_H

#include "base/ctx.h"

enum {
    N2_KERNEL_CENTRES = 100,    /* unless asked otherwise */
    N2_KERNEL_MAX_ROWS = 10000, /* a side; of more, evenly spaced rows are used for the fit */
};

/* No ratio is reported below this: far from all centres it is 0, and ln 0 is no score. */
#define N2_KERNEL_RATIO_FLOOR 1e-12

typedef enum n2_kernel_method { N2_ULSIF, N2_KLIEP } n2_kernel_method;

typedef struct n2_kernel_ratio {
    n2ce_ctx *ctx;
    n2_kernel_method method;
    size_t centres, cols;
    double *centre; /* centres x cols */
    double *alpha;  /* centres */
    double sigma;   /* standard deviation of the kernels, in units of x */
    double lambda;  /* uLSIF; 0 for KLIEP */
} n2_kernel_ratio;

/* Fits the ratio of the density of x_num (n_num x cols) to that of x_den (n_den x cols).
 * Columns count as they are: standardise them first. centres = 0 asks for N2_KERNEL_CENTRES,
 * and there are never more than numerator rows. The result is a function of the arguments,
 * not of the number of threads. Uses the context's threads: not to be called from inside an
 * item.
 *
 * N2CE_EINVAL    fewer than 2 rows on a side, or no columns
 * N2CE_ENAN      an entry is not finite; the message says which
 * N2CE_ERANGE    squared distances overflow
 * N2CE_ECANCELED, N2CE_ENOMEM
 * *out is NULL after a failure. */
n2ce_status n2_kernel_ratio_fit(n2ce_ctx *ctx, n2_kernel_method method, const double *x_num,
                                size_t n_num, const double *x_den, size_t n_den, size_t cols,
                                size_t centres, uint64_t seed, n2_kernel_ratio **out);
void n2_kernel_ratio_free(n2_kernel_ratio *r); /* NULL is fine */

/* ln max(ratio, N2_KERNEL_RATIO_FLOOR) at the n rows of x (n x cols), whatever rows they are;
 * a row with NaN scores NaN. On all threads: not to be called from inside an item. */
void n2_kernel_ratio_score(const n2_kernel_ratio *r, const double *x, size_t n, double *log_ratio);

#endif
