#include "latent_code.h"

#include "design/design_space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ATOM_SHARE = 0.1;
static const double EVEN = 0.25; /* shares of rows and of the range that may lie apart */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The most frequent value of n sorted ones, and how often it occurs. */
static size_t mode_of(const double *x, size_t n, double *value) {
    size_t most = 0, run = 0;
    for (size_t i = 0; i < n; i++) {
        run = i > 0 && x[i] == x[i - 1] ? run + 1 : 1;
        if (run > most) {
            most = run;
            *value = x[i];
        }
    }
    return most;
}

static double quantile(const double *x, size_t n, double p) {
    const double at = p * (double)(n - 1);
    const size_t i = (size_t)at < n - 1 ? (size_t)at : n - 1, j = i + 1 < n ? i + 1 : i;
    return x[i] + (at - (double)i) * (x[j] - x[i]);
}

static void add_knot(n2_latent_code_column *c, double u, double x) {
    c->u[c->knots] = u;
    c->x[c->knots++] = x;
}

/* Bounds beyond the data get a share of the scale, but not so much that the data lose theirs. */
static double beyond(double gap, double range) {
    const double share = range > 0 ? gap / range : 0;
    return share > 0.25 ? 0.25 : share;
}

/* Whether n sorted values are spread evenly enough to be taken as they are. Quantiles of few rows
 * are rough, and where the best rows are not among them they leave out just what is sought. */
static bool is_even(const double *x, size_t n) {
    const double first = x[0], range = x[n - 1] - first;
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((x[i] - first) / range - (double)i / (double)(n - 1)));
    return range > 0 && most < EVEN;
}

static void make_knots(n2_latent_code_column *c, const double *x, size_t n) {
    const size_t most = n / 4 + 2 < N2_CODE_KNOTS ? n / 4 + 2 : N2_CODE_KNOTS;
    const size_t knots = is_even(x, n) ? 2 : most;
    const double first = x[0], last = x[n - 1], range = last - first;
    const double below = beyond(first - c->factor.low, range);
    const double above = beyond(c->factor.high - last, range), all = below + 1 + above;
    c->knots = 0;
    if (below > 0) add_knot(c, 0, c->factor.low);
    for (size_t k = 0; k < knots; k++) {
        const double p = (double)k / (double)(knots - 1);
        add_knot(c, (below + p) / all, quantile(x, n, p));
    }
    if (above > 0) add_knot(c, 1, c->factor.high);
}

static void describe_numbers(n2_latent_code_column *c, double *x, size_t n) {
    double mode = 0;
    qsort(x, n, sizeof *x, by_size);
    c->constant = x[0] == x[n - 1];
    c->value = x[0];
    if (c->constant) return;
    c->unit = c->factor.kind == N2_WHOLE ? 1 : n2_decimals(x, n);
    if (c->factor.kind != N2_WHOLE && c->unit == 1) c->unit = 0; /* fractions were asked for */
    c->has_atom = (double)mode_of(x, n, &mode) >= ATOM_SHARE * (double)n && n >= 20;
    if (c->has_atom) {
        size_t rest = 0;
        c->value = mode;
        for (size_t i = 0; i < n; i++)
            if (x[i] != mode) x[rest++] = x[i];
        n = rest;
    }
    make_knots(c, x, n);
}

static void describe_levels(n2_latent_code_column *c, const double *x, size_t n) {
    c->constant = true;
    c->value = x[0];
    for (size_t i = 1; i < n && c->constant; i++) c->constant = x[i] == x[0];
    if (c->factor.levels > 1) c->constant = false; /* a level that was never tried may be */
}

/* Numbers with an atom come first, then the others, then atoms, then levels. */
static n2ce_status place(n2_latent_code *code) {
    size_t at = 0, atoms = 0, level = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t j = 0; j < code->columns; j++) {
            n2_latent_code_column *c = &code->column[j];
            const bool number = !c->constant && c->factor.kind != N2_CATEGORY;
            if (number && c->has_atom == (pass == 0)) c->at = at++;
        }
    code->layout.numbers = (int64_t)at;
    for (size_t j = 0; j < code->columns; j++) {
        n2_latent_code_column *c = &code->column[j];
        if (c->constant || !c->has_atom) continue;
        c->atom_at = c->at + (size_t)code->layout.numbers;
        atoms++;
    }
    code->layout.atoms = (int64_t)atoms;
    at += atoms;
    for (size_t j = 0; j < code->columns; j++) {
        n2_latent_code_column *c = &code->column[j];
        if (c->constant || c->factor.kind != N2_CATEGORY) continue;
        c->at = at;
        at += c->factor.levels;
        for (size_t k = 0; k < c->factor.levels; k++) code->block[level++] = j;
    }
    code->layout.categories = (int64_t)level;
    code->layout.block = code->block;
    code->width = at;
    return N2CE_OK;
}

static n2ce_status check_width(n2_latent_code *code) {
    size_t width = 0;
    for (size_t j = 0; j < code->columns; j++) {
        const n2_latent_code_column *c = &code->column[j];
        const bool category = c->factor.kind == N2_CATEGORY;
        if (category && c->factor.levels > N2_CODE_LEVELS_MAX)
            return n2_fail(code->ctx, N2CE_EDATA,
                           "Column %zu is a category with %zu levels; at most %d can be learnt. "
                           "Group them, or leave the column out with --columns.",
                           j + 1, c->factor.levels, N2_CODE_LEVELS_MAX);
        width += c->constant ? 0 : category ? c->factor.levels : 2;
    }
    if (width == 0)
        return n2_fail(code->ctx, N2CE_EDATA,
                       "All designs are the same; there is nothing to vary.");
    if (width > N2_CODE_WIDTH_MAX)
        return n2_fail(code->ctx, N2CE_EDATA,
                       "The columns and levels are %zu numbers a design; at most %d can be learnt. "
                       "Choose fewer with --columns.",
                       width, N2_CODE_WIDTH_MAX);
    code->block = n2_alloc(code->ctx, width, sizeof *code->block);
    return code->block ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status describe(n2_latent_code *code, const n2_designs *d) {
    double *x = n2_alloc(code->ctx, d->rows, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    for (size_t j = 0; j < code->columns; j++) {
        n2_latent_code_column *c = &code->column[j];
        c->factor = d->space.factor[j];
        for (size_t i = 0; i < d->rows; i++) x[i] = d->x[i * code->columns + j];
        if (c->factor.kind == N2_CATEGORY)
            describe_levels(c, x, d->rows);
        else
            describe_numbers(c, x, d->rows);
    }
    n2_free(code->ctx, x);
    return N2CE_OK;
}

n2ce_status n2_latent_code_new(n2ce_ctx *ctx, const n2_designs *d, n2_latent_code **out) {
    *out = NULL;
    n2_latent_code *code = n2_alloc(ctx, 1, sizeof *code);
    if (!code) return N2CE_ENOMEM;
    *code = (n2_latent_code){.ctx = ctx, .columns = d->space.n};
    code->column = n2_alloc(ctx, d->space.n, sizeof *code->column);
    n2ce_status status = code->column ? describe(code, d) : N2CE_ENOMEM;
    if (status == N2CE_OK) status = check_width(code);
    if (status == N2CE_OK) status = place(code);
    if (status == N2CE_OK)
        *out = code;
    else
        n2_latent_code_free(code);
    return status;
}

void n2_latent_code_free(n2_latent_code *code) {
    if (!code) return;
    n2_free(code->ctx, code->column);
    n2_free(code->ctx, code->block);
    n2_free(code->ctx, code);
}

/* The place of a value among the quantiles, -1 to 1; the middle of where it is constant. */
static double place_of(const n2_latent_code_column *c, double x) {
    const size_t n = c->knots;
    size_t i = 0, j = n - 1;
    if (x <= c->x[0] && c->x[0] < c->x[1]) return -1;
    if (x >= c->x[n - 1] && c->x[n - 2] < c->x[n - 1]) return 1;
    while (i + 1 < n && c->x[i + 1] < x) i++;
    while (j > 0 && c->x[j - 1] > x) j--;
    /* x is between knots i and j: either neighbours, or the ends of a run of this value */
    if (c->x[i] < x && i + 1 < n && c->x[i + 1] == x) i++;
    if (c->x[j] > x && j > 0 && c->x[j - 1] == x) j--;
    if (c->x[j] > c->x[i]) {
        const double share = (x - c->x[i]) / (c->x[j] - c->x[i]);
        return 2 * (c->u[i] + share * (c->u[j] - c->u[i])) - 1;
    }
    return c->u[i] + c->u[j] - 1;
}

static double value_at(const n2_latent_code_column *c, double place) {
    const double u = (place + 1) / 2;
    size_t i = 0;
    while (i + 2 < c->knots && c->u[i + 1] < u) i++;
    const double width = c->u[i + 1] - c->u[i];
    const double share = width > 0 ? (u - c->u[i]) / width : 0;
    const double t = share < 0 ? 0 : share > 1 ? 1 : share;
    return c->x[i] + t * (c->x[i + 1] - c->x[i]);
}

void n2_latent_code_write(const n2_latent_code *code, const double *design, float *row) {
    memset(row, 0, code->width * sizeof *row);
    for (size_t j = 0; j < code->columns; j++) {
        const n2_latent_code_column *c = &code->column[j];
        if (c->constant) continue;
        if (c->factor.kind == N2_CATEGORY)
            row[c->at + (size_t)design[j]] = 1;
        else if (c->has_atom && design[j] == c->value)
            row[c->atom_at] = 1;
        else
            row[c->at] = (float)place_of(c, design[j]);
    }
}

static double within(const n2_latent_code_column *c, double x) {
    const n2_factor *f = &c->factor;
    if (c->unit > 0) {
        const double per = floor(1 / c->unit + 0.5);
        x = floor(x * per + 0.5) / per;
    }
    if (x > f->high) x = f->kind == N2_WHOLE ? floor(f->high) : f->high;
    if (x < f->low) x = f->kind == N2_WHOLE ? ceil(f->low) : f->low;
    return x;
}

/* A level with probability exp(odds / temperature) over their sum. */
static size_t pick_level(const double *odds, size_t n, double uniform, double temperature) {
    double sum = 0, run = 0;
    for (size_t k = 0; k < n; k++) sum += exp(odds[k] / temperature);
    for (size_t k = 0; k < n; k++) {
        run += exp(odds[k] / temperature);
        if (run >= uniform * sum) return k;
    }
    return n - 1;
}

/* An atom stays as likely as e^-5 against, unless the decoder has changed its mind. */
static const double LOYALTY = 5, STILL = 0.02;

static double read_number(const n2_latent_code_column *c, const double *o, const double *o_from,
                          double from, const float *uniform) {
    const bool was_atom = c->has_atom && from == c->value;
    if (c->has_atom) {
        const double odds = o[c->atom_at] - o_from[c->atom_at] + (was_atom ? LOYALTY : -LOYALTY);
        if ((double)uniform[1] <= 1 / (1 + exp(-odds))) return c->value;
    }
    if (was_atom) return within(c, value_at(c, o[c->at]));
    const double move = o[c->at] - o_from[c->at];
    if (fabs(move) <= STILL) return within(c, from);
    return within(c, value_at(c, place_of(c, from) + move));
}

void n2_latent_code_read(const n2_latent_code *code, const n2_latent_move *move, double temperature,
                         double *design) {
    for (size_t j = 0; j < code->columns; j++) {
        const n2_latent_code_column *c = &code->column[j];
        const float *uniform = move->uniform + 2 * j;
        if (c->constant)
            design[j] = c->value;
        else if (c->factor.kind == N2_CATEGORY)
            design[j] = (double)pick_level(move->decoded + c->at, c->factor.levels,
                                           (double)uniform[0], temperature);
        else
            design[j] = read_number(c, move->decoded, move->decoded_from, move->from[j], uniform);
    }
}

/* Levels by the change of their log odds; the one there was is ahead by so much that, with no
 * change, one of all the categories is another one on average. */
static size_t change_level(const n2_latent_code_column *c, const n2_latent_move *move, size_t was,
                           size_t categories, double uniform) {
    double odds[N2_CODE_LEVELS_MAX];
    const size_t n = c->factor.levels;
    for (size_t k = 0; k < n; k++)
        odds[k] = move->decoded[c->at + k] - move->decoded_from[c->at + k];
    odds[was] += log((double)(categories * (n - 1)));
    return pick_level(odds, n, uniform, 1);
}

void n2_latent_code_read_part(const n2_latent_code *code, const n2_latent_move *move,
                              double *design) {
    size_t categories = 0;
    for (size_t j = 0; j < code->columns; j++)
        categories += !code->column[j].constant && code->column[j].factor.kind == N2_CATEGORY;
    for (size_t j = 0; j < code->columns; j++) {
        const n2_latent_code_column *c = &code->column[j];
        const float *uniform = move->uniform + 2 * j;
        if (c->constant)
            design[j] = c->value;
        else if (c->factor.kind == N2_CATEGORY)
            design[j] = (double)change_level(c, move, (size_t)move->from[j], categories,
                                             (double)uniform[0]);
        else if (uniform[0] > 0.5f)
            design[j] = within(c, move->from[j]);
        else
            design[j] = read_number(c, move->decoded, move->decoded_from, move->from[j], uniform);
    }
}

/* ---- changes without a decoder ------------------------------------------- */

static bool is_atom(const n2_latent_code_column *c, double x) {
    return c->has_atom && x == c->value;
}

/* Whether a column makes a step of its own. */
static bool steps(const n2_latent_change *h, size_t j) {
    return j == h->always || (double)h->uniform[2 * j] <= h->share;
}

static double change_number(const n2_latent_code_column *c, const n2_latent_change *h, size_t j) {
    const double from = h->from[j], chance = (double)h->uniform[2 * j + 1];
    double move = steps(h, j) ? h->size * (double)h->normal[j] : 0;
    if (h->toward && !is_atom(c, h->toward[j]) && !is_atom(c, h->away[j]))
        move += h->along * (place_of(c, h->toward[j]) - place_of(c, h->away[j]));
    if (c->has_atom && h->toward && chance < 0.25) return h->toward[j];
    if (c->has_atom && steps(h, j) && chance > 0.8)
        return is_atom(c, from) ? within(c, value_at(c, tanh((double)h->normal[j]))) : c->value;
    if (is_atom(c, from) || move == 0) return within(c, from);
    return within(c, value_at(c, place_of(c, from) + move));
}

static double change_level_by_chance(const n2_latent_code_column *c, const n2_latent_change *h,
                                     size_t j) {
    const double chance = (double)h->uniform[2 * j + 1];
    if (h->toward && chance < 0.25) return h->toward[j];
    if (!steps(h, j)) return h->from[j];
    const size_t level = (size_t)(chance * (double)c->factor.levels);
    return (double)(level < c->factor.levels ? level : c->factor.levels - 1);
}

void n2_latent_code_change(const n2_latent_code *code, const n2_latent_change *h, double *design) {
    for (size_t j = 0; j < code->columns; j++) {
        const n2_latent_code_column *c = &code->column[j];
        if (c->constant)
            design[j] = c->value;
        else if (c->factor.kind == N2_CATEGORY)
            design[j] = change_level_by_chance(c, h, j);
        else
            design[j] = change_number(c, h, j);
    }
}

void n2_latent_code_scatter(const n2_latent_code *code, bool ends, const float *uniform,
                            double *design) {
    for (size_t j = 0; j < code->columns; j++) {
        const n2_latent_code_column *c = &code->column[j];
        const double u = (double)uniform[2 * j], n = (double)c->factor.levels;
        const double other = (double)uniform[2 * j + 1];
        const double low = c->factor.low, high = c->factor.high;
        if (c->constant)
            design[j] = c->value;
        else if (c->factor.kind == N2_CATEGORY)
            design[j] = fmin(floor(u * n), n - 1);
        else if (c->has_atom && other < 0.5)
            design[j] = c->value;
        else if (ends && (c->has_atom ? other < 0.75 : other < 0.5))
            design[j] = u < 0.5 ? low : high;
        else
            design[j] = within(c, low + u * (high - low));
    }
}
