/* Numbers that others have published for the problems of ratio_problems.h, with their sources.
 *
 * Only numbers that were read in a paper's own text or in its authors' own files are here; what is
 * known from figures or from memory is not. */
#ifndef N2_PUBLISHED_H
#define N2_PUBLISHED_H

#include <stddef.h>

typedef enum n2_published_kind {
    N2_PUBLISHED_ESTIMATE, /* nats */
    N2_PUBLISHED_ERROR,    /* mean over repetitions of |estimate - truth|, nats */
    N2_PUBLISHED_MSE       /* mean squared error of the log ratio at rows of the numerator */
} n2_published_kind;

typedef struct n2_published {
    const char *problem, *method; /* the method as the study calls it, where the study has it */
    n2_published_kind kind;
    double value, spread; /* spread: standard deviation over repetitions, NaN if not given */
    const char *source;
} n2_published;

const n2_published *n2_published_at(size_t i); /* NULL beyond the last */

/* NULL if there is none. */
const n2_published *n2_published_find(const char *problem, const char *method,
                                      n2_published_kind kind);

/* How many ratios the authors of TRE, or those who compared with it, used; 0 if unknown. */
size_t n2_published_tre_ratios(const char *problem);

const char *n2_published_kind_name(n2_published_kind kind); /* "estimate", "error", "mse" */

#endif
