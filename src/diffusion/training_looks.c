#include "training_looks.h"

#include "base/numerics.h"
#include "io/own_file.h"
#include "picture_tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A row of the history: is there, step, distance (below 0: not measured), numbers. */
enum { DONE, STEP, DISTANCE, NUMBERS, ROW = NUMBERS + N2_LOOK_NUMBERS };

enum { SHEET = 64 };

static size_t count_names(const n2_looks *l) {
    size_t n = 0;
    while (n < N2_LOOK_NUMBERS && l->names[n]) n++;
    return n;
}

n2ce_status n2_looks_begin(n2_looks *l) {
    const size_t most = N2_CURVE_POINTS - 2;
    const size_t looks = l->run->looks < 1 ? 1 : l->run->looks < most ? l->run->looks : most;
    l->every = (l->steps + looks - 1) / looks + (l->steps == 0);
    l->history = n2_store_add(l->source.store, "looks.history", n2_dims(N2_CURVE_POINTS, ROW));
    l->running = n2_running_new(l->source.store, "looks.running", count_names(l));
    return l->history && l->running ? N2CE_OK : N2CE_ENOMEM;
}

void n2_looks_end(n2_looks *l) {
    n2_chains_close(l->chains);
    l->chains = NULL;
}

void n2_looks_move(n2_looks *l, const n2_backend *backend) {
    n2_looks_end(l);
    l->source.backend = backend;
}

void n2_looks_note(n2_graph *g, const n2_looks *l, const n2_node *numbers) {
    n2_running_note(g, l->running, numbers, count_names(l));
}

/* ---- samples ---- */

static n2ce_status make_samples(n2_looks *l, size_t n, n2_images **out) {
    const n2_denoiser_spec *s = l->source.spec;
    if (!l->chains) N2_TRY(n2_chains_open(&l->source, &l->how, 0, -1, &l->chains));
    N2_TRY(n2_images_new(n2_store_ctx(l->source.store), n, (size_t)s->height, (size_t)s->width,
                         (size_t)s->net.channels, out));
    const n2ce_status status = n2_chains_make(l->chains, 1, 0, n, *out, 0);
    if (status == N2CE_OK) return N2CE_OK;
    n2_images_free(*out);
    *out = NULL;
    return status;
}

/* A sheet that cannot be written is no reason to end a training. */
static void write_sheet(const n2_looks *l, const n2_images *made) {
    n2ce_ctx *ctx = n2_store_ctx(l->source.store);
    if (l->run->sheet &&
        n2_images_write_sheet(made, SHEET, 0, l->run->sheet, n2_own_file_write) != N2CE_OK)
        n2_log(ctx, N2CE_LOG_WARNING, "%s", n2ce_errmsg(ctx));
}

static n2ce_status measure(n2_looks *l, double *distance) {
    const size_t n = l->run->watch ? l->run->watched : l->run->sheet ? SHEET : 0;
    n2_images *made;
    *distance = -1;
    if (n == 0) return N2CE_OK;
    N2_TRY(make_samples(l, n < SHEET ? SHEET : n, &made));
    write_sheet(l, made);
    const n2ce_status status =
        l->run->watch ? n2_watch_distance(l->run->watch, made, distance) : N2CE_OK;
    n2_images_free(made);
    return status;
}

/* ---- looks ---- */

static void tell(const n2_looks *l, uint64_t step, double distance, const double *numbers) {
    char text[256] = "";
    size_t at = 0;
    for (size_t k = 0; k < count_names(l) && at < sizeof text; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, ", %s %.4g", l->names[k], numbers[k]);
    if (distance >= 0 && at < sizeof text)
        snprintf(text + at, sizeof text - at, "; distance %.4g", distance);
    n2_log(n2_store_ctx(l->source.store), N2CE_LOG_INFO, "%.4g of %.4g million pictures%s",
           (double)step * (double)l->batch / 1e6, (double)l->steps * (double)l->batch / 1e6, text);
}

n2ce_status n2_looks_look(n2_looks *l, uint64_t step) {
    double distance, numbers[N2_LOOK_NUMBERS] = {0};
    const size_t n = count_names(l), row = (size_t)((step + l->every - 1) / l->every);
    N2_TRY(measure(l, &distance));
    if (step) n2_running_read(l->source.store, l->running, n, numbers);
    if (!l->run->quiet && step) tell(l, step, distance, numbers);
    if (row >= N2_CURVE_POINTS) return N2CE_OK;
    float *to = (float *)l->history->data + row * ROW;
    to[DONE] = 1;
    to[STEP] = (float)step;
    to[DISTANCE] = (float)distance;
    for (size_t k = 0; k < n; k++) to[NUMBERS + k] = (float)numbers[k];
    return N2CE_OK;
}

void n2_looks_curve(const n2_looks *l, n2_curve *out) {
    out->n = 0;
    for (size_t row = 0; row < N2_CURVE_POINTS; row++) {
        const float *from = (const float *)l->history->data + row * ROW;
        if (from[DONE] < 1) continue;
        n2_curve_point *p = &out->point[out->n++];
        p->seen = (double)from[STEP] * (double)l->batch;
        p->distance = from[DISTANCE] < 0 ? N2_NAN : (double)from[DISTANCE];
        for (size_t k = 0; k < N2_LOOK_NUMBERS; k++) p->number[k] = (double)from[NUMBERS + k];
    }
}
