/* What a training looks at on its way: running means of what is learnt, samples, and how near they
 * are to the pictures. Looks are rows of a tensor, so that a checkpoint keeps them. */
#ifndef N2_TRAINING_LOOKS_H
#define N2_TRAINING_LOOKS_H

#include "denoiser.h"

enum { N2_LOOK_NUMBERS = 4 };

typedef struct n2_looks {
    const n2_denoiser_run *run;
    n2_chain_source source; /* of samples: the average of weights */
    n2_sampling how;
    int64_t batch;
    uint64_t steps, every;              /* steps of the training; between two looks */
    const char *names[N2_LOOK_NUMBERS]; /* of the numbers; NULL after the last */
    n2_tensor *history, *running;
    n2_chains *chains;
} n2_looks;

/* Makes the tensors, of names that begin with "looks.". The members above them are set. */
n2ce_status n2_looks_begin(n2_looks *l);
void n2_looks_end(n2_looks *l);

/* Plans run on this backend from now on. */
void n2_looks_move(n2_looks *l, const n2_backend *backend);

/* Adds to a step's graph: the running means of as many numbers as have names. */
void n2_looks_note(n2_graph *g, const n2_looks *l, const n2_node *numbers);

/* After so many steps of the training; told as a log line unless it is quiet. */
n2ce_status n2_looks_look(n2_looks *l, uint64_t step);

void n2_looks_curve(const n2_looks *l, n2_curve *out);

#endif
