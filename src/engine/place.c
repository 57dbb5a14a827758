#include "place.h"

#include "base/clock.h"
#include "plan.h"

#include <stdio.h>
#include <string.h>

/* About a fifth of a second for one core. */
static const double LEAST_WORK = 1e10;

bool n2_place_is_timed(const n2_place *place) { return place && place->open && !place->asked_for; }

const n2_backend *n2_place_backend(const n2_place *place) {
    return place && place->backend ? place->backend : n2_cpu_backend();
}

static void say(n2_place *place, const char *reason) {
    snprintf(place->reason, sizeof place->reason, "%s", reason);
}

/* The first sentence of the last error: what follows is advice to who asked for the device. */
static void say_error(n2_place *place, const n2ce_ctx *ctx) {
    say(place, n2ce_errmsg(ctx));
    char *end = strstr(place->reason, ". ");
    if (end) end[1] = '\0';
}

static void compare(n2_place *place, const n2_backend *device, double here, double there) {
    const bool faster = there < here;
    if (faster) place->backend = device;
    snprintf(place->reason, sizeof place->reason, "measured: %.3g ms %s, against %.3g ms on %s",
             1e3 * (faster ? there : here), place->per ? place->per : "a step",
             1e3 * (faster ? here : there), faster ? "the processor" : device->name);
}

/* Runs `batch` steps at a time for so long. */
static n2ce_status time_for(n2_plan *plan, uint64_t batch, double limit, double *seconds) {
    const double start = n2_seconds();
    uint64_t n = 0;
    do {
        N2_TRY(n2_plan_run_many(plan, batch));
        n += batch;
        *seconds = (n2_seconds() - start) / (double)n;
    } while (*seconds * (double)n < limit);
    return N2CE_OK;
}

n2ce_status n2_place_time(n2_plan *plan, double limit, double *seconds) {
    enum { AT_ONCE = 16 };
    N2_TRY(n2_plan_run(plan));
    N2_TRY(time_for(plan, 1, 0, seconds));
    const bool several = n2_plan_backend(plan)->device && *seconds * AT_ONCE < limit / 2;
    if (several) N2_TRY(n2_plan_run_many(plan, AT_ONCE));
    return time_for(plan, several ? AT_ONCE : 1, limit, seconds);
}

n2ce_status n2_place_settle(n2_place *place, n2ce_ctx *ctx, double flops, n2_place_timer *timer,
                            void *user) {
    double here = 0, there = 0;
    const n2_backend *device = NULL;
    if (!place || !place->open) return N2CE_OK;
    n2_place_open *const open = place->open;
    place->open = NULL;
    if (place->asked_for) return open(place, ctx, &place->backend);
    if (flops < LEAST_WORK) {
        say(place, "too little work to look for a GPU");
        return N2CE_OK;
    }
    n2ce_status status = open(place, ctx, &device);
    if (status == N2CE_EDEVICE) {
        say_error(place, ctx);
        return N2CE_OK;
    }
    N2_TRY(status);
    N2_TRY(timer(user, n2_place_backend(NULL), &here));
    status = timer(user, device, &there);
    if (status == N2CE_OK) {
        compare(place, device, here, there);
        return N2CE_OK;
    }
    place->backend = device; /* to retreat from */
    return n2_place_retreat(place, ctx, status) ? N2CE_OK : status;
}

bool n2_place_retreat(n2_place *place, n2ce_ctx *ctx, n2ce_status status) {
    const bool on_device = place && place->backend && place->backend->device;
    if (status != N2CE_EDEVICE || !on_device || !place->optional) return false;
    say(place, n2ce_errmsg(ctx));
    place->backend = NULL;
    n2_log(ctx, N2CE_LOG_WARNING, "%s The processor goes on instead.", place->reason);
    return true;
}
