/* The scale on which values are learnt. Which one, a Gaussian process says: on the right scale the
 * rows are most likely. */
#include "base/numerics.h"
#include "base/random.h"
#include "latent_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TAIL = 3; /* scales above the median where values count as far out */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- there and back ------------------------------------------------------ */

static double warp(const n2_latent_scale *s, double y) {
    return s->log ? log(fmax(y - s->floor, 1e-9 * s->range)) : y;
}

static double top_of(const n2_latent_scale *s) {
    return s->bend_high ? s->middle + TAIL * s->width : N2_INFINITY;
}

static double bend(const n2_latent_scale *s, double v) {
    const double w = s->width, top = top_of(s);
    if (!(w > 0)) return v;
    if (v > top) return top + w * log1p((v - top) / w);
    return s->bend_low && v < s->middle ? s->middle - w * log1p((s->middle - v) / w) : v;
}

static double unbend(const n2_latent_scale *s, double v) {
    const double w = s->width, top = top_of(s);
    if (!(w > 0)) return v;
    if (v > top) return top + w * expm1((v - top) / w);
    return s->bend_low && v < s->middle ? s->middle - w * expm1((s->middle - v) / w) : v;
}

double n2_latent_scaled(const n2_latent *m, double y) {
    const n2_latent_scale *s = &m->scale;
    return (bend(s, warp(s, y)) - s->mean) / s->deviation;
}

double n2_latent_unscaled(const n2_latent *m, double v) {
    const n2_latent_scale *s = &m->scale;
    const double w = unbend(s, s->mean + s->deviation * v);
    return s->log ? s->floor + exp(w) : w;
}

/* ln |d scaled / d y|. */
static double log_slope(const n2_latent_scale *s, double y) {
    const double v = warp(s, y), w = s->width, top = top_of(s);
    double slope = -log(s->deviation);
    if (s->log) slope -= log(fmax(y - s->floor, 1e-9 * s->range));
    if (w > 0 && v > top) slope -= log1p((v - top) / w);
    if (w > 0 && s->bend_low && v < s->middle) slope -= log1p((s->middle - v) / w);
    return slope;
}

/* ---- a scale from values ------------------------------------------------- */

/* Everything but the kind, from n sorted values; `room` is for n numbers. */
static void describe(n2_latent_scale *s, const double *sorted, size_t n, double *room) {
    n2_sum sum = {0, 0}, squares = {0, 0};
    s->range = fmax(sorted[n * 9 / 10] - sorted[0], 1e-300);
    s->floor = sorted[0] - s->margin * s->range;
    s->middle = warp(s, sorted[n / 2]);
    s->width = warp(s, sorted[n * 9 / 10]) - s->middle;
    s->bend_high = warp(s, sorted[n - 1 - n / 500]) > s->middle + TAIL * s->width;
    for (size_t i = 0; i < n; i++) {
        room[i] = bend(s, warp(s, sorted[i]));
        n2_sum_add(&sum, room[i]);
    }
    s->mean = n2_sum_value(&sum) / (double)n;
    for (size_t i = 0; i < n; i++) n2_sum_add(&squares, (room[i] - s->mean) * (room[i] - s->mean));
    s->deviation = fmax(sqrt(n2_sum_value(&squares) / (double)n), 1e-300);
}

/* ---- the choice ---------------------------------------------------------- */

/* Some rows of the designs, coded. */
typedef struct sample {
    float *x, *y;
    size_t *row;
    size_t n;
} sample;

static void draw(const n2_latent *m, sample *s) {
    const n2_designs *d = m->designs;
    const n2_stream chance = {m->o.seed, 79, 0};
    for (size_t i = 0; i < s->n; i++) {
        s->row[i] = s->n == d->rows ? i : n2_random_below(chance, i, d->rows);
        n2_latent_code_write(m->code, d->x + s->row[i] * d->space.n, s->x + i * m->code->width);
    }
}

/* ln p of the sample's values, as they were given, if they are learnt on this scale. */
static n2ce_status weigh(n2_latent *m, const sample *s, double *evidence) {
    double slopes = 0;
    for (size_t i = 0; i < s->n; i++) {
        const double y = m->designs->y[s->row[i]];
        s->y[i] = (float)n2_latent_scaled(m, y);
        slopes += log_slope(&m->scale, y);
    }
    N2_TRY(n2_gauss_process_evidence(m->ctx, s->x, s->y, s->n, m->code->width, evidence));
    *evidence += slopes;
    return N2CE_OK;
}

/* The usual scale is first, and kept unless another is clearly better. */
static const n2_latent_scale kinds[] = {{.bend_low = true},
                                        {.bend_low = false},
                                        {.log = true, .margin = 0.05},
                                        {.log = true, .margin = 0.5},
                                        {.log = true, .margin = 0.05, .bend_low = true}};
static const double CLEARLY = 2; /* nats */

static n2ce_status choose(n2_latent *m, const double *sorted, double *room, const sample *s) {
    n2_latent_scale best = m->scale;
    double most = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        double evidence;
        m->scale = kinds[k];
        describe(&m->scale, sorted, m->designs->rows, room);
        N2_TRY(weigh(m, s, &evidence));
        if (k == 0) evidence += CLEARLY;
        if (k > 0 && !(evidence > most)) continue;
        most = evidence;
        best = m->scale;
    }
    m->scale = best;
    return N2CE_OK;
}

static n2ce_status choose_by_sample(n2_latent *m, const double *sorted, double *room) {
    enum { SAMPLE = 200, FEWEST = 60, WIDEST = 128 };
    const size_t rows = m->designs->rows, width = m->code->width;
    sample s = {.n = rows < SAMPLE ? rows : SAMPLE};
    if (rows < FEWEST || width > WIDEST) return N2CE_OK;
    s.x = n2_alloc(m->ctx, s.n * (width + 1), sizeof *s.x);
    s.row = n2_alloc(m->ctx, s.n, sizeof *s.row);
    n2ce_status status = s.x && s.row ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) {
        s.y = s.x + s.n * width;
        draw(m, &s);
        status = choose(m, sorted, room, &s);
    }
    n2_free(m->ctx, s.x);
    n2_free(m->ctx, s.row);
    return status;
}

n2ce_status n2_latent_choose_scale(n2_latent *m) {
    const size_t n = m->designs->rows;
    double *sorted = n2_alloc(m->ctx, 2 * n, sizeof *sorted);
    if (!sorted) return N2CE_ENOMEM;
    memcpy(sorted, m->designs->y, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_size);
    m->scale = m->o.like ? m->o.like->scale : kinds[0];
    describe(&m->scale, sorted, n, sorted + n);
    const n2ce_status status = m->o.like ? N2CE_OK : choose_by_sample(m, sorted, sorted + n);
    m->record.y_log = m->scale.log;
    n2_free(m->ctx, sorted);
    return status;
}
