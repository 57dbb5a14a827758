#include "device_choice.h"
#include "cpu/cpu.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "cuda/cuda.h"
#include "engine/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* About a fifth of a second for one core. */
static const double LEAST_WORK = 1e10;

bool n2_choice_is_timed(const n2_device_choice *choice) {
    return choice && choice->open && !choice->asked_for;
}

const n2_backend *n2_choice_backend(const n2_device_choice *choice) {
    return choice && choice->backend ? choice->backend : n2_cpu_backend();
}

const char *n2_choice_name(const n2_device_choice *choice) {
    return n2_backend_device(n2_choice_backend(choice));
}

static void say(n2_device_choice *choice, const char *reason) {
    snprintf(choice->reason, sizeof choice->reason, "%s", reason);
}

/* The first sentence of the last error: what follows is advice to who asked for the device. */
static void say_error(n2_device_choice *choice, const n2ce_ctx *ctx) {
    say(choice, n2ce_errmsg(ctx));
    char *end = strstr(choice->reason, ". ");
    if (end) end[1] = '\0';
}

/* ---- words ----------------------------------------------------------------- */

/* A number that ends with one of the letters `after`. */
static int number_in(const char *word, const char *after) {
    if (strcmp(word, "cuda") == 0) return 0;
    if (strncmp(word, "cuda:", 5) != 0 || !word[5]) return -1;
    char *end;
    const long n = strtol(word + 5, &end, 10);
    return strchr(after, *end) && n >= 0 && n < 1000 ? (int)n : -1;
}

int n2_gpu_number(const char *word) { return number_in(word, ""); }

static n2ce_status open_gpu(const n2_device_choice *choice, n2ce_ctx *ctx, const n2_backend **out) {
    const n2_cuda_options options = {
        .device = choice->device, .strict = choice->strict, .narrow = choice->narrow};
    return n2_cuda_backend(ctx, &options, out);
}

n2_device_choice n2_choice_of_gpu(int number, n2_precision precision) {
    return (n2_device_choice){.open = open_gpu,
                              .asked_for = true,
                              .device = number,
                              .strict = precision.strict,
                              .narrow = precision.narrow,
                              .reason = "as asked for"};
}

void n2_choice_explain(n2_device_choice *choice) {
    if (choice->asked_for && choice->backend) say(choice, n2_cuda_name(choice->backend));
}

n2ce_status n2_choice_of_word(n2ce_ctx *ctx, const char *word, n2_precision precision,
                              n2_device_choice *out) {
    *out = (n2_device_choice){
        .strict = precision.strict, .narrow = precision.narrow, .reason = "as asked for"};
    if (strcmp(word, "cpu") == 0) return N2CE_OK;
    if (strcmp(word, "auto") == 0) {
        say(out, "nothing to be measured");
        out->open = open_gpu;
        out->optional = true;
        return N2CE_OK;
    }
    out->device = n2_gpu_number(word);
    if (out->device < 0)
        return n2_fail(ctx, N2CE_EINVAL,
                       "--device is \"%s\"; it is auto, cpu, cuda or cuda:N (N from 0).", word);
    N2_TRY(open_gpu(out, ctx, &out->backend));
    say(out, n2_cuda_name(out->backend));
    return N2CE_OK;
}

n2ce_status n2_choice_again(n2ce_ctx *ctx, const char *name, n2_device_choice *choice) {
    choice->open = NULL;
    say(choice, "where this run began");
    if (strcmp(name, "cpu") == 0) return N2CE_OK;
    choice->device = number_in(name, ","); /* "cuda:0, tf32" */
    n2_precision precision = {0};
    const char *comma = strstr(name, ", ");
    if (comma) n2_precision_of_word(comma + 2, &precision);
    choice->strict = precision.strict;
    choice->narrow = precision.narrow;
    const n2ce_status status = open_gpu(choice, ctx, &choice->backend);
    if (status != N2CE_EDEVICE) return status;
    say(choice, n2ce_errmsg(ctx));
    return N2CE_OK;
}

/* ---- measuring ------------------------------------------------------------- */

static void compare(n2_device_choice *choice, const n2_backend *device, double here, double there) {
    const bool faster = there < here;
    if (faster) choice->backend = device;
    snprintf(choice->reason, sizeof choice->reason, "measured: %.3g ms %s, against %.3g ms on %s",
             1e3 * (faster ? there : here), choice->per ? choice->per : "a step",
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

n2ce_status n2_time_plan(n2_plan *plan, double limit, double *seconds) {
    enum { AT_ONCE = 16 };
    N2_TRY(n2_plan_run(plan));
    N2_TRY(time_for(plan, 1, 0, seconds));
    const bool several = n2_plan_backend(plan)->device && *seconds * AT_ONCE < limit / 2;
    if (several) N2_TRY(n2_plan_run_many(plan, AT_ONCE));
    return time_for(plan, several ? AT_ONCE : 1, limit, seconds);
}

n2ce_status n2_choice_settle(n2_device_choice *choice, n2ce_ctx *ctx, double flops,
                             n2_device_timer *timer, void *user) {
    double here = 0, there = 0;
    const n2_backend *device = NULL;
    if (!choice || !choice->open) return N2CE_OK;
    n2_device_open *const open = choice->open;
    choice->open = NULL;
    if (choice->asked_for) return open(choice, ctx, &choice->backend);
    if (flops < LEAST_WORK) {
        say(choice, "too little work to look for a GPU");
        return N2CE_OK;
    }
    n2ce_status status = open(choice, ctx, &device);
    if (status == N2CE_EDEVICE) {
        say_error(choice, ctx);
        return N2CE_OK;
    }
    N2_TRY(status);
    n2_comm_alone(ctx); /* each rank measures as long as it takes; rank 0's times count */
    status = timer(user, n2_choice_backend(NULL), &here);
    const bool timed = status == N2CE_OK;
    if (timed) status = timer(user, device, &there);
    n2_comm_together(ctx);
    if (!timed) return status;
    if (status == N2CE_OK) status = n2_comm_broadcast(ctx, 0, &here, sizeof here);
    if (status == N2CE_OK) status = n2_comm_broadcast(ctx, 0, &there, sizeof there);
    if (status == N2CE_OK) {
        compare(choice, device, here, there);
        return N2CE_OK;
    }
    choice->backend = device; /* to retreat from */
    return n2_choice_retreat(choice, ctx, status) ? N2CE_OK : status;
}

bool n2_choice_retreat(n2_device_choice *choice, n2ce_ctx *ctx, n2ce_status status) {
    const bool on_device = choice && choice->backend && choice->backend->device;
    if (status != N2CE_EDEVICE || !on_device || !choice->optional) return false;
    say(choice, n2ce_errmsg(ctx));
    choice->backend = NULL;
    n2_log(ctx, N2CE_LOG_WARNING, "%s The processor goes on instead.", choice->reason);
    return true;
}
