#include "design_code.h"

#include "base/numerics.h"
#include "design/design_space.h"

#include <math.h>

static size_t numbers_of(const n2_factor *f, n2_code_kind kind) {
    if (f->kind != N2_CATEGORY) return 1;
    return kind == N2_CODE_LOGITS ? f->levels - 1 : f->levels;
}

bool n2_space_is_sequence(const n2_space *space) {
    for (size_t c = 0; c < space->n; c++)
        if (space->factor[c].kind != N2_CATEGORY ||
            space->factor[c].levels != space->factor[0].levels)
            return false;
    return space->n > 0;
}

/* ---- there ----------------------------------------------------------------------------------- */

/* Before standardising. */
static void encode_category(const n2_factor *f, n2_code_kind kind, size_t level, double *to) {
    const double even = 0.4 / (double)f->levels;
    const size_t n = numbers_of(f, kind), first = f->levels - n;
    for (size_t k = 0; k < n; k++) {
        const bool own = first + k == level;
        if (kind == N2_CODE_ONE_HOT)
            to[k] = own;
        else
            to[k] = log(even + (own ? 0.6 : 0)) - log(even + (level == 0 ? 0.6 : 0));
    }
}

static void encode_raw(const n2_code *code, const double *design, double *to) {
    for (size_t c = 0; c < code->space->n; c++) {
        const n2_factor *f = &code->space->factor[c];
        if (f->kind == N2_CATEGORY)
            encode_category(f, code->kind, (size_t)design[c], to);
        else
            *to = design[c];
        to += numbers_of(f, code->kind);
    }
}

void n2_code_encode(const n2_code *code, const double *design, double *coded) {
    encode_raw(code, design, coded);
    for (size_t k = 0; k < code->width; k++)
        coded[k] = (coded[k] - code->mean[k]) / code->deviation[k];
}

/* ---- and back -------------------------------------------------------------------------------- */

static double decode_category(const n2_code *code, const n2_factor *f, const double *coded,
                              size_t at) {
    const size_t n = numbers_of(f, code->kind), first = f->levels - n;
    double most = first ? 0 : -N2_INFINITY;
    size_t level = 0;
    for (size_t k = 0; k < n; k++) {
        const double value = coded[k] * code->deviation[at + k] + code->mean[at + k];
        if (!(value > most)) continue;
        most = value;
        level = first + k;
    }
    return (double)level;
}

void n2_code_decode(const n2_code *code, const double *coded, double *design) {
    size_t at = 0;
    for (size_t c = 0; c < code->space->n; c++) {
        const n2_factor *f = &code->space->factor[c];
        if (f->kind == N2_CATEGORY)
            design[c] = decode_category(code, f, coded + at, at);
        else
            design[c] = coded[at] * code->deviation[at] + code->mean[at];
        at += numbers_of(f, code->kind);
    }
}

void n2_code_propose(const n2_code *code, const double *coded, n2_proposals *out) {
    for (size_t i = 0; i < out->rows; i++)
        n2_code_decode(code, coded + i * code->width, out->x + i * code->space->n);
    n2_proposals_settle(code->space, out);
}

/* ---- standardising --------------------------------------------------------------------------- */

/* Of column k of x; the deviation of a constant column is 1. */
static void measure(const double *x, size_t rows, size_t width, size_t k, double *mean,
                    double *deviation) {
    n2_sum sum = {0, 0}, squares = {0, 0};
    for (size_t i = 0; i < rows; i++) n2_sum_add(&sum, x[i * width + k]);
    *mean = n2_sum_value(&sum) / (double)rows;
    for (size_t i = 0; i < rows; i++) {
        const double away = x[i * width + k] - *mean;
        n2_sum_add(&squares, away * away);
    }
    *deviation = sqrt(n2_sum_value(&squares) / (double)rows);
    if (!(*deviation > 1e-12 * fabs(*mean))) *deviation = 1;
}

static void standardise(n2_code *code, const n2_designs *offline) {
    for (size_t k = 0; k < code->width; k++) {
        code->mean[k] = 0;
        code->deviation[k] = 1;
    }
    for (size_t i = 0; i < offline->rows; i++)
        encode_raw(code, offline->x + i * code->space->n, code->x + i * code->width);
    for (size_t c = 0, k = 0; c < code->space->n; c++) {
        const n2_factor *f = &code->space->factor[c];
        const size_t end = k + numbers_of(f, code->kind);
        for (; k < end; k++)
            if (f->kind != N2_CATEGORY || code->kind == N2_CODE_LOGITS)
                measure(code->x, code->rows, code->width, k, &code->mean[k], &code->deviation[k]);
    }
}

n2ce_status n2_code_new(n2_arena *arena, const n2_designs *offline, n2_code_kind kind,
                        n2_code *out) {
    *out = (n2_code){.space = &offline->space, .kind = kind, .rows = offline->rows};
    for (size_t c = 0; c < offline->space.n; c++)
        out->width += numbers_of(&offline->space.factor[c], kind);
    out->mean = n2_arena_alloc(arena, out->width, sizeof *out->mean);
    out->deviation = n2_arena_alloc(arena, out->width, sizeof *out->deviation);
    out->x = n2_arena_alloc(arena, out->rows * out->width, sizeof *out->x);
    out->y = n2_arena_alloc(arena, out->rows, sizeof *out->y);
    if (!out->mean || !out->deviation || !out->x || !out->y) return N2CE_ENOMEM;
    standardise(out, offline);
    measure(offline->y, offline->rows, 1, 0, &out->y_mean, &out->y_deviation);
    for (size_t i = 0; i < out->rows; i++) {
        n2_code_encode(out, offline->x + i * offline->space.n, out->x + i * out->width);
        out->y[i] = (offline->y[i] - out->y_mean) / out->y_deviation;
    }
    return N2CE_OK;
}

n2ce_status n2_code_best(n2_arena *arena, const n2_designs *offline, const n2_code *code, size_t k,
                         double **out) {
    size_t *row = n2_arena_alloc(arena, k, sizeof *row);
    *out = n2_arena_alloc(arena, k * code->width, sizeof **out);
    if (!row || !*out) return N2CE_ENOMEM;
    N2_TRY(n2_designs_best(arena->ctx, offline, k, row));
    for (size_t i = 0; i < k; i++)
        n2_code_encode(code, offline->x + row[i] * offline->space.n, *out + i * code->width);
    return N2CE_OK;
}
