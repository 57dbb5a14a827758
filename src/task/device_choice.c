#include "device_choice.h"

#include "base/options.h"
#include "cuda/cuda.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* "cuda" and "cuda:N", up to one of the letters `after`; -1: something else. */
static int gpu_number(const char *word, const char *after) {
    if (strcmp(word, "cuda") == 0) return 0;
    if (strncmp(word, "cuda:", 5) != 0 || !word[5]) return -1;
    char *end;
    const long n = strtol(word + 5, &end, 10);
    return strchr(after, *end) && n >= 0 && n < 1000 ? (int)n : -1;
}

static n2ce_status open_gpu(const n2_place *place, n2ce_ctx *ctx, const n2_backend **out) {
    const n2_cuda_options options = {.device = place->device, .strict = place->strict};
    return n2_cuda_backend(ctx, &options, out);
}

bool n2_wants_all_devices(const n2ce_options *o) {
    return strcmp(n2ce_options_get(o, "device"), "all") == 0;
}

const char *n2_place_name(const n2_place *place) {
    return n2_backend_device(n2_place_backend(place));
}

n2ce_status n2_place_of_options(n2ce_ctx *ctx, const n2ce_options *o, n2_place *out) {
    const char *word = n2ce_options_get(o, "device");
    *out = (n2_place){.reason = "as asked for"};
    out->strict = n2_options_has_word(o, "precision", "float32");
    if (strcmp(word, "cpu") == 0) return N2CE_OK;
    if (strcmp(word, "auto") == 0) {
        snprintf(out->reason, sizeof out->reason, "nothing to be measured");
        out->open = open_gpu;
        out->optional = true;
        return N2CE_OK;
    }
    out->device = gpu_number(word, "");
    if (out->device < 0)
        return n2_fail(ctx, N2CE_EINVAL,
                       "--device is \"%s\"; it is auto, cpu, cuda or cuda:N (N from 0).", word);
    N2_TRY(open_gpu(out, ctx, &out->backend));
    snprintf(out->reason, sizeof out->reason, "%s", n2_cuda_name(out->backend));
    return N2CE_OK;
}

/* ---- beside what comes first ------------------------------------------------------------- */

/* What goes wrong is told when the place is settled, which tries again. */
static void *open_beside(void *arg) {
    n2_opening *opening = arg;
    const n2_cuda_options options = {.device = opening->device, .strict = opening->strict};
    const n2_backend *backend;
    n2_cuda_backend(NULL, &options, &backend);
    pthread_mutex_lock(&opening->lock);
    opening->finished = true;
    pthread_cond_signal(&opening->done);
    pthread_mutex_unlock(&opening->lock);
    return NULL;
}

/* Signals belong to the host program's threads, not to ours. */
static bool start_opening(n2_opening *opening) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_mutex_init(&opening->lock, NULL);
    pthread_cond_init(&opening->done, NULL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    opening->running = pthread_create(&opening->thread, NULL, open_beside, opening) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return opening->running;
}

/* Whether it is over, be it after so many nanoseconds. */
static bool is_over(n2_opening *opening, long moment) {
    enum { SECOND = 1000000000 };
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += moment;
    until.tv_sec += until.tv_nsec / SECOND;
    until.tv_nsec %= SECOND;
    pthread_mutex_lock(&opening->lock);
    while (!opening->finished)
        if (pthread_cond_timedwait(&opening->done, &opening->lock, &until) != 0) break;
    const bool over = opening->finished;
    pthread_mutex_unlock(&opening->lock);
    return over;
}

/* Where there is no driver that is known at once, and told before anything is read. */
n2ce_status n2_place_of_options_beside(n2ce_ctx *ctx, const n2ce_options *o, n2_place *out,
                                       n2_opening *opening) {
    enum { MOMENT = 2000000 };
    *opening = (n2_opening){.device = gpu_number(n2ce_options_get(o, "device"), ""),
                            .strict = n2_options_has_word(o, "precision", "float32")};
    if (opening->device < 0 || !start_opening(opening) || is_over(opening, MOMENT))
        return n2_place_of_options(ctx, o, out);
    *out = (n2_place){.open = open_gpu,
                      .asked_for = true,
                      .device = opening->device,
                      .strict = opening->strict,
                      .reason = "as asked for"};
    return N2CE_OK;
}

n2ce_status n2_opening_look(n2ce_ctx *ctx, const n2ce_options *o, n2_place *place,
                            n2_opening *opening) {
    const bool open = opening->running && place->open && is_over(opening, 0);
    return open ? n2_place_of_options(ctx, o, place) : N2CE_OK;
}

void n2_opening_end(n2_opening *opening) {
    if (!opening->running) return;
    pthread_join(opening->thread, NULL);
    pthread_cond_destroy(&opening->done);
    pthread_mutex_destroy(&opening->lock);
    opening->running = false;
}

void n2_place_explain(n2_place *place) {
    if (place->asked_for && place->backend)
        snprintf(place->reason, sizeof place->reason, "%s", n2_cuda_name(place->backend));
}

n2ce_status n2_place_again(n2ce_ctx *ctx, const char *name, n2_place *place) {
    place->open = NULL;
    snprintf(place->reason, sizeof place->reason, "where this run began");
    if (strcmp(name, "cpu") == 0) return N2CE_OK;
    place->device = gpu_number(name, ","); /* "cuda:0, tf32" */
    place->strict = strstr(name, "float32") != NULL;
    const n2ce_status status = open_gpu(place, ctx, &place->backend);
    if (status != N2CE_EDEVICE) return status;
    snprintf(place->reason, sizeof place->reason, "%s", n2ce_errmsg(ctx));
    return N2CE_OK;
}
