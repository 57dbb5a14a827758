#include "device_options.h"

#include "base/options.h"
#include "cuda/cuda.h"

#include <signal.h>
#include <string.h>
#include <time.h>

bool n2_wants_all_devices(const n2ce_options *o) {
    return strcmp(n2ce_options_get(o, "device"), "all") == 0;
}

n2_precision n2_precision_of_options(const n2ce_options *o) {
    n2_precision p;
    n2_precision_of_word(n2ce_options_get(o, "precision"), &p);
    return p;
}

n2ce_status n2_choice_of_options(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *out) {
    return n2_choice_of_word(ctx, n2ce_options_get(o, "device"), n2_precision_of_options(o), out);
}

/* ---- beside what comes first ------------------------------------------------------------- */

/* What goes wrong is told when the choice is settled, which tries again. */
static void *open_beside(void *arg) {
    n2_opening *opening = arg;
    const n2_cuda_options options = {.device = opening->device,
                                     .strict = opening->precision.strict,
                                     .narrow = opening->precision.narrow};
    n2_cuda_warm_up(&options);
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
n2ce_status n2_choice_of_options_beside(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *out,
                                        n2_opening *opening) {
    enum { MOMENT = 2000000 };
    *opening = (n2_opening){.device = n2_gpu_number(n2ce_options_get(o, "device")),
                            .precision = n2_precision_of_options(o)};
    if (opening->device < 0 || !start_opening(opening) || is_over(opening, MOMENT))
        return n2_choice_of_options(ctx, o, out);
    *out = n2_choice_of_gpu(opening->device, opening->precision);
    return N2CE_OK;
}

n2ce_status n2_opening_look(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *choice,
                            n2_opening *opening) {
    const bool open = opening->running && choice->open && is_over(opening, 0);
    return open ? n2_choice_of_options(ctx, o, choice) : N2CE_OK;
}

void n2_opening_end(n2_opening *opening) {
    if (!opening->running) return;
    pthread_join(opening->thread, NULL);
    pthread_cond_destroy(&opening->done);
    pthread_mutex_destroy(&opening->lock);
    opening->running = false;
}
