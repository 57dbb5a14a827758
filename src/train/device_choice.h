/* Where plans run: on the processor, on a device, or on whichever of the two turns out to be
 * faster. This is the one file that decides it. */
#ifndef N2_DEVICE_CHOICE_H
#define N2_DEVICE_CHOICE_H

#include "base/ctx.h"
#include "base/narrow.h"

typedef struct n2_backend n2_backend; /* engine/kernel.h */
typedef struct n2_plan n2_plan;       /* engine/plan.h */
typedef struct n2_device_choice n2_device_choice;

/* Opens the device that may be the faster one. N2CE_EDEVICE, with a sentence: there is none. */
typedef n2ce_status n2_device_open(const n2_device_choice *choice, n2ce_ctx *ctx,
                                   const n2_backend **out);

/* Zeroed: the processor. */
struct n2_device_choice {
    const n2_backend *backend; /* that is used; NULL: the processor's */
    n2_device_open *open;      /* of what is still to be compared with it; NULL: settled */
    bool optional;             /* nobody asked for a device: the processor will do if it fails */
    bool asked_for;            /* what is to be opened is to be used, without comparing */
    int device;                /* for `open`: its number, and the precision of its products */
    bool strict;
    n2_dtype narrow;
    const char *per;  /* what the timer's seconds are of, for the sentence; NULL: "a step" */
    char reason[256]; /* a sentence, once it is settled */
};

/* The choice that a word names: "cpu", "cuda", "cuda:N", or "auto", which is the processor until it
 * is settled by measuring; the precision is that of a GPU. Fails with N2CE_EINVAL for another word,
 * N2CE_EDEVICE for a GPU that there is not. */
n2ce_status n2_choice_of_word(n2ce_ctx *ctx, const char *word, n2_precision precision,
                              n2_device_choice *out);

/* The same for a GPU, N as in "cuda:N", that is not opened before it is needed: settling does. */
n2_device_choice n2_choice_of_gpu(int number, n2_precision precision);

/* N of "cuda:N", 0 of "cuda"; -1: something else. */
int n2_gpu_number(const char *word);

/* "auto" for what goes on: it settles on the device of that name, or else on the processor. */
n2ce_status n2_choice_again(n2ce_ctx *ctx, const char *name, n2_device_choice *choice);

/* Whether n2_choice_settle may have to time both. */
bool n2_choice_is_timed(const n2_device_choice *choice);

/* NULL is the processor. */
const n2_backend *n2_choice_backend(const n2_device_choice *choice);

/* "cpu", or the name of a GPU's backend. */
const char *n2_choice_name(const n2_device_choice *choice);

/* After it was settled: the reason says which GPU it is, if that was not opened at once. */
void n2_choice_explain(n2_device_choice *choice);

/* Seconds that a step of the work at hand takes on a backend; it should measure for about
 * N2_TRIAL_SECONDS, building aside. */
typedef n2ce_status n2_device_timer(void *user, const n2_backend *backend, double *seconds);
#define N2_TRIAL_SECONDS 0.1

/* Seconds of a run of a plan, by running it for about `limit`. What is done once is done before
 * time counts. For timers. */
n2ce_status n2_time_plan(n2_plan *plan, double limit, double *seconds);

/* Settles by measuring, if it is not settled and the device was not asked for. `flops` is a guess
 * at the whole work: a little of it stays on the processor without a look at the device, whose
 * opening alone takes longer. A device that is not there, or fails, loses. Fails as the timer does
 * on the processor, or as the opening of a device that was asked for. */
n2ce_status n2_choice_settle(n2_device_choice *choice, n2ce_ctx *ctx, double flops,
                             n2_device_timer *timer, void *user);

/* After a failure with `status`: true if the work should be begun again, on the processor, which
 * is the choice now; the context has told why as a warning. choice may be NULL. */
bool n2_choice_retreat(n2_device_choice *choice, n2ce_ctx *ctx, n2ce_status status);

#endif
