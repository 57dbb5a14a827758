/* The scale on which values are learnt. Which one, the best rows say: on the right scale a Gaussian
 * process that has not seen them is least off about them. */
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

/* A row of the designs, and what others say of it. */
typedef struct ordered_row {
    double said;
    size_t row;
} ordered_row;

/* Some rows of the designs, coded; those are last that are best by what all others say, so that
 * luck does not decide which. */
typedef struct sample {
    float *x, *y; /* y: on the scale that is tried */
    double *said;
    ordered_row *row;
    size_t n;
} sample;

enum { SAMPLE = 320, DEPTHS = 2, GROUP = 8, GROUPS = DEPTHS * (SAMPLE / GROUP + 1) };
static const double HIDDEN[DEPTHS] = {0.35, 0.15}; /* shares of the rows: the best */

/* What a process that has not seen the best rows is off by about them: means over groups, because
 * what single rows are off by is noise mostly. */
typedef struct misses {
    double each[GROUPS];
    size_t n;
} misses;

static int by_what_is_said(const void *a, const void *b) {
    const ordered_row *x = a, *y = b;
    if (x->said != y->said) return x->said < y->said ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static double value_of(const n2_latent *m, const sample *s, size_t i) {
    return m->designs->y[s->row[i].row];
}

/* Rows as they are ordered, with values on the present scale. */
static void take(const n2_latent *m, const sample *s) {
    const n2_designs *d = m->designs;
    for (size_t i = 0; i < s->n; i++) {
        n2_latent_code_write(m->code, d->x + s->row[i].row * d->space.n, s->x + i * m->code->width);
        s->y[i] = (float)n2_latent_scaled(m, value_of(m, s, i));
    }
}

static n2ce_status draw(n2_latent *m, sample *s) {
    const n2_stream chance = {m->o.seed, 79, 0};
    const size_t rows = m->designs->rows;
    n2_gauss_process *p = NULL;
    for (size_t i = 0; i < s->n; i++)
        s->row[i].row = s->n == rows ? i : n2_random_below(chance, i, rows);
    take(m, s);
    N2_TRY(n2_gauss_process_fit(m->ctx, s->x, s->y, s->n, m->code->width, NULL, &p));
    for (size_t i = 0; i < s->n; i++) s->row[i].said = n2_gauss_process_left_out(p)[i];
    n2_gauss_process_free(p);
    qsort(s->row, s->n, sizeof *s->row, by_what_is_said);
    return N2CE_OK;
}

/* What the process said of the rows from `first` on is off by, on the usual scale, which makes
 * little of wild values. */
static void note_misses(n2_latent *m, const n2_latent_scale *usual, const sample *s, size_t first,
                        misses *out) {
    const n2_latent_scale tried = m->scale;
    double sum = 0;
    for (size_t i = first, n = 0; i < s->n; i++) {
        const double said = n2_latent_unscaled(m, s->said[i - first]);
        m->scale = *usual;
        sum += n2_latent_scaled(m, value_of(m, s, i)) - n2_latent_scaled(m, said);
        m->scale = tried;
        if (++n < GROUP && i + 1 < s->n) continue;
        out->each[out->n++] = sum / (double)n;
        sum = 0;
        n = 0;
    }
}

/* Hides the best rows, at each depth, and asks a process of the others about them. It is tuned
 * where most are hidden. */
static n2ce_status extrapolate(n2_latent *m, const n2_latent_scale *usual, const sample *s,
                               misses *out) {
    const size_t width = m->code->width;
    n2_gauss_process *p[DEPTHS] = {NULL};
    n2ce_status status = N2CE_OK;
    out->n = 0;
    take(m, s);
    for (size_t k = 0; k < DEPTHS && status == N2CE_OK; k++) {
        const size_t left = (size_t)((double)s->n * (1 - HIDDEN[k]));
        status = n2_gauss_process_fit(m->ctx, s->x, s->y, left, width, p[0], &p[k]);
        if (status == N2CE_OK)
            status = n2_gauss_process_ask(p[k], s->x + left * width, s->n - left, s->said, NULL);
        if (status == N2CE_OK) note_misses(m, usual, s, left, out);
    }
    for (size_t k = 0; k < DEPTHS; k++) n2_gauss_process_free(p[k]);
    return status;
}

/* Whether b is less off than a, beyond what differs from group to group by chance. */
static bool is_better(const misses *a, const misses *b) {
    static const double CLEARLY = 1.5; /* standard errors */
    double sum = 0, square = 0;
    for (size_t i = 0; i < a->n; i++) {
        const double gain = a->each[i] * a->each[i] - b->each[i] * b->each[i];
        sum += gain;
        square += gain * gain;
    }
    return sum > CLEARLY * sqrt(square);
}

/* The usual scale is first, and each is more curved than the one before: it must be clearly better,
 * since beyond what was seen a curved scale goes far. */
static const n2_latent_scale kinds[] = {
    {.bend_low = true},           {.bend_low = false},
    {.log = true, .margin = 2},   {.log = true, .margin = 0.5},
    {.log = true, .margin = 0.2}, {.log = true, .margin = 0.05, .bend_low = true},
    {.log = true, .margin = 0.05}};

static n2ce_status choose(n2_latent *m, const double *sorted, double *room, const sample *s) {
    const n2_latent_scale usual = m->scale;
    n2_latent_scale best = usual;
    misses least = {.n = 0};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        misses now;
        m->scale = kinds[k];
        describe(&m->scale, sorted, m->designs->rows, room);
        const n2ce_status status = extrapolate(m, &usual, s, &now);
        if (status == N2CE_ENAN) continue; /* no process has learnt on this scale */
        if (status != N2CE_OK) return status;
        if (k > 0 && !is_better(&least, &now)) continue;
        least = now;
        best = m->scale;
    }
    m->scale = best;
    return N2CE_OK;
}

static n2ce_status choose_by_sample(n2_latent *m, const double *sorted, double *room) {
    enum { FEWEST = 60, WIDEST = 128 };
    const size_t rows = m->designs->rows, width = m->code->width;
    sample s = {.n = rows < SAMPLE ? rows : SAMPLE};
    if (rows < FEWEST || width > WIDEST) return N2CE_OK;
    s.x = n2_alloc(m->ctx, s.n * (width + 1), sizeof *s.x);
    s.row = n2_alloc(m->ctx, s.n, sizeof *s.row);
    s.said = n2_alloc(m->ctx, s.n, sizeof *s.said);
    n2ce_status status = s.x && s.row && s.said ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) {
        s.y = s.x + s.n * width;
        status = draw(m, &s);
        if (status == N2CE_OK) status = choose(m, sorted, room, &s);
        if (status == N2CE_ENAN) status = N2CE_OK; /* the usual scale it is */
    }
    n2_free(m->ctx, s.x);
    n2_free(m->ctx, s.row);
    n2_free(m->ctx, s.said);
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
