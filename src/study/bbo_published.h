/* What the paper prints for offline optimisation: every number of its tables that concerns a
 * method and a task, normalised as there.
 *
 * Known slips of the paper are put right here: the table of medians at Q = 256 has its columns in
 * the order of that at Q = 128 with ChEMBL last, whatever its header says. Tasks that cannot be run
 * here (chembl, ant, dkitty) are listed too. */
#ifndef N2_BBO_PUBLISHED_H
#define N2_BBO_PUBLISHED_H

#include <stddef.h>

typedef struct n2_bbo_published {
    const char *task, *method; /* as the study calls them, where it has them */
    size_t queries;            /* Q */
    int percentile;            /* 100: the largest of Q; 50: their median */
    double value, spread;      /* spread over 5 runs; NaN where none is given */
} n2_bbo_published;

const n2_bbo_published *n2_bbo_published_at(size_t i); /* NULL beyond the last */

/* NULL if there is none. */
const n2_bbo_published *n2_bbo_published_find(const char *task, const char *method, size_t queries,
                                              int percentile);

#endif
