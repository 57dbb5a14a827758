#include "permutation.h"

#include "base/random.h"

#include <math.h>

n2_null n2_null_of(const double *score, size_t n, size_t all) {
    double sum = 0, square = 0, observed = 0;
    for (size_t i = 0; i < n; i++) observed += score[i];
    for (size_t i = 0; i < all; i++) sum += score[i];
    const double mean = sum / (double)all;
    for (size_t i = 0; i < all; i++) square += (score[i] - mean) * (score[i] - mean);
    const double left = (double)(all - n) / (double)(all - 1);
    return (n2_null){observed / (double)n, mean, sqrt(square / (double)all / (double)n * left)};
}

/* Sum of n of the scores, drawn without replacement: a partial shuffle in place. */
static double draw_sum(double *score, size_t n, size_t all, uint64_t seed, uint64_t *at) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t j = i + n2_random_below((n2_stream){seed, 3, 0}, (*at)++, all - i);
        const double x = score[j];
        score[j] = score[i];
        score[i] = x;
        sum += x;
    }
    return sum;
}

double n2_permutation_p(double *score, size_t n, size_t all, size_t permutations, uint64_t seed,
                        n2_permutation_fn *tell, void *user) {
    double observed = 0, size = 0;
    for (size_t i = 0; i < n; i++) observed += score[i];
    for (size_t i = 0; i < all; i++) size += fabs(score[i]);
    size_t as_large = 1;
    uint64_t at = 0;
    for (size_t k = 0; k < permutations; k++) {
        const double sum = draw_sum(score, n, all, seed, &at);
        as_large += sum >= observed - 1e-12 * size;
        if (tell) tell(user, sum / (double)n);
    }
    return (double)as_large / (double)(permutations + 1);
}

double n2_balanced_accuracy(const double *log_ratio, size_t n, size_t all) {
    double right[2] = {0, 0};
    for (size_t i = 0; i < all; i++) {
        const double vote = log_ratio[i] > 0 ? 1 : log_ratio[i] < 0 ? 0 : 0.5;
        right[i >= n] += i < n ? vote : 1 - vote;
    }
    return 0.5 * (right[0] / (double)n + right[1] / (double)(all - n));
}
