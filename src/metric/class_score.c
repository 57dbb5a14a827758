/* The class score: how sure a classifier is of each picture, and how many classes there are. */
#include "metric.h"

#include "base/numerics.h"

/* exp of the mean divergence of rows first .. end-1 from their mean. sum p ln p - sum q ln q is
 * that, q being the mean. */
static double split_score(const double *p, size_t first, size_t end, size_t c) {
    const double n = (double)(end - first);
    double divergence = 0;
    for (size_t k = 0; k < c; k++) {
        double mean = 0, entropy = 0;
        for (size_t i = first; i < end; i++) {
            const double v = p[i * c + k];
            mean += v / n;
            if (v > 0) entropy += v * log(v) / n;
        }
        divergence += entropy - (mean > 0 ? mean * log(mean) : 0);
    }
    return exp(divergence);
}

n2_class_score n2_class_score_of(const double *p, size_t n, size_t c) {
    enum { ROWS = 10 }; /* of a split, at least */
    size_t splits = n / ROWS < N2_CLASS_SPLITS ? n / ROWS : N2_CLASS_SPLITS;
    if (splits == 0) splits = 1;
    n2_tally t = {0};
    for (size_t s = 0; s < splits; s++)
        n2_tally_add(&t, split_score(p, s * n / splits, (s + 1) * n / splits, c));
    return (n2_class_score){n2_tally_mean(&t), n2_tally_spread(&t), splits};
}
