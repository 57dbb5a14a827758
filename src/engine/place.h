/* Where a task's plans run: on the processor, on a device, or on whichever of the two turns
 * out to be faster. */
#ifndef N2_PLACE_H
#define N2_PLACE_H

#include "base/ctx.h"

typedef struct n2_backend n2_backend; /* kernel.h */
typedef struct n2_plan n2_plan;       /* plan.h */
typedef struct n2_place n2_place;

/* Opens the device that may be the faster one. N2CE_EDEVICE, with a sentence: there is none. */
typedef n2ce_status n2_place_open(const n2_place *place, n2ce_ctx *ctx, const n2_backend **out);

/* Zeroed: the processor. */
struct n2_place {
    const n2_backend *backend; /* that is used; NULL: the processor's */
    n2_place_open *open;       /* of what is still to be compared with it; NULL: settled */
    bool optional;             /* nobody asked for a device: the processor will do if it fails */
    bool asked_for;            /* what is to be opened is to be used, without comparing */
    int device;                /* for `open`: its number, and the precision of its products */
    bool strict;
    const char *per;  /* what the timer's seconds are of, for the sentence; NULL: "a step" */
    char reason[256]; /* a sentence, once it is settled */
};

/* Whether n2_place_settle may have to time both. */
bool n2_place_is_timed(const n2_place *place);

/* NULL is the processor. */
const n2_backend *n2_place_backend(const n2_place *place);

/* Seconds that a step of the work at hand takes on a backend; it should measure for about
 * N2_PLACE_SECONDS, building aside. */
typedef n2ce_status n2_place_timer(void *user, const n2_backend *backend, double *seconds);
#define N2_PLACE_SECONDS 0.1

/* Seconds of a run of a plan, by running it for about `limit`. What is done once is done before
 * time counts. For timers. */
n2ce_status n2_place_time(n2_plan *plan, double limit, double *seconds);

/* Settles by measuring, if it is not settled and the device was not asked for. `flops` is a guess
 * at the whole work: a little of it stays on the processor without a look at the device, whose
 * opening alone takes longer. A device that is not there, or fails, loses. Fails as the timer does
 * on the processor, or as the opening of a device that was asked for. */
n2ce_status n2_place_settle(n2_place *place, n2ce_ctx *ctx, double flops, n2_place_timer *timer,
                            void *user);

/* After a failure with `status`: true if the work should be begun again, on the processor, which
 * the place now is; the context has told why as a warning. place may be NULL. */
bool n2_place_retreat(n2_place *place, n2ce_ctx *ctx, n2ce_status status);

#endif
