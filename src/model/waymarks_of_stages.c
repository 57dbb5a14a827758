/* Where the stages of a ratio begin and end. */
#include "ratio_loss.h"

#include <math.h>

/* The noise of a diffusion whose 1000 steps grow from 1e-4 to 0.02: a stage is a share of the steps
 * 1 to 500, the last one all that follow. Rounded as the paper prints them, these are its lists for
 * K = 3 and K = 6, but for the ends, which are exact here. */
void n2_waymarks_of_stages(size_t stages, double *variances) {
    enum { STEPS = 1000, HALF = 500 };
    size_t step = 1;
    variances[0] = 0;
    variances[stages] = 1;
    for (size_t k = 1; k < stages; k++) {
        const size_t end = 1 + (2 * HALF * k + stages - 1) / (2 * (stages - 1));
        double kept = 0;
        for (; step < end; step++)
            kept += log1p(-(1e-4 + (0.02 - 1e-4) * (double)step / (STEPS - 1)));
        variances[k] = floor(1e4 * sqrt(1 - exp(kept)) + 0.5) / 1e4;
    }
}
