#include "design_rules.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "design_space.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts --------------------------------------------------------------- */

/* The next piece up to a separator; *text goes behind it. NULL at the end. */
static char *next_piece(n2_arena *arena, const char **text, char separator) {
    if (!**text) return NULL;
    const char *end = n2_item_end(*text, separator);
    char *piece = n2_arena_trimmed(arena, *text, end);
    *text = *end ? end + 1 : end;
    return piece;
}

/* LEFT = RIGHT, at the last equals sign that is not in quotes. */
static bool split_at_equals(char *piece, char **right) {
    char *at = NULL;
    bool quoted = false;
    for (char *p = piece; *p; p++) {
        quoted ^= *p == '"';
        if (*p == '=' && !quoted) at = p;
    }
    if (!at) return false;
    *at = '\0';
    *right = at + 1;
    while (isspace((unsigned char)**right)) (*right)++;
    while (at > piece && isspace((unsigned char)at[-1])) *--at = '\0';
    return *piece && **right;
}

/* A text in quotes without them. */
static void unquote(char *text) {
    char *to = text;
    if (*text != '"') return;
    for (const char *from = text + 1; *from && (*from != '"' || from[1] == '"'); from++) {
        from += *from == '"';
        *to++ = *from;
    }
    *to = '\0';
}

static bool read_number(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return *text && !*end && isfinite(*out);
}

/* ---- fixed columns ------------------------------------------------------- */

static n2ce_status find_column(const n2_design_table *t, const char *name, size_t *at) {
    size_t *found = NULL, n = 0;
    N2_TRY(n2_columns_parse(t->ctx, name, (char *const *)(uintptr_t)t->names, t->designs.space.n,
                            &found, &n));
    *at = n == 1 ? found[0] : 0;
    n2_free(t->ctx, found);
    return n == 1 ? N2CE_OK
                  : n2_fail(t->ctx, N2CE_EINVAL, "\"%s\" is %zu columns; one is meant.", name, n);
}

static n2ce_status fix_level(const n2_design_table *t, size_t j, const char *text, double *value) {
    const size_t n = n2_levels_count(t->levels, t->names[j]);
    for (size_t k = 0; k < n; k++)
        if (strcmp(n2_levels_text(t->levels, t->names[j], k), text) == 0) {
            *value = (double)k;
            return N2CE_OK;
        }
    return n2_fail(t->ctx, N2CE_EINVAL,
                   "--fix %s=%s: no design has this level; the first of %zu known ones is \"%s\".",
                   t->names[j], text, n, n > 0 ? n2_levels_text(t->levels, t->names[j], 0) : "");
}

static n2ce_status fix_number(const n2_design_table *t, size_t j, const char *text, double *value) {
    const n2_factor *f = &t->designs.space.factor[j];
    if (!read_number(text, value))
        return n2_fail(t->ctx, N2CE_EINVAL, "--fix %s=%s: that is not a number.", t->names[j],
                       text);
    if (*value < f->low || *value > f->high)
        return n2_fail(t->ctx, N2CE_EINVAL,
                       "--fix %s=%s: the bounds of \"%s\", %.6g to %.6g, exclude it. Widen them "
                       "with --bounds.",
                       t->names[j], text, t->names[j], f->low, f->high);
    if (f->kind == N2_WHOLE && *value != floor(*value))
        return n2_fail(t->ctx, N2CE_EINVAL,
                       "--fix %s=%s: \"%s\" has whole numbers only. --continuous %s allows "
                       "fractions.",
                       t->names[j], text, t->names[j], t->names[j]);
    return N2CE_OK;
}

static n2ce_status read_fixed(const n2_design_table *t, const char *text, n2_design_rules *r) {
    char *piece;
    while ((piece = next_piece(&r->arena, &text, ','))) {
        char *value;
        size_t j;
        if (!split_at_equals(piece, &value))
            return n2_fail(t->ctx, N2CE_EINVAL, "--fix takes COLUMN=VALUE, not \"%s\".", piece);
        N2_TRY(find_column(t, piece, &j));
        unquote(value);
        if (!isnan(r->fixed[j]))
            return n2_fail(t->ctx, N2CE_EINVAL,
                           "--fix %s=%s: \"%s\" is fixed already. Give it one value.", t->names[j],
                           value, t->names[j]);
        N2_TRY(t->designs.space.factor[j].kind == N2_CATEGORY
                   ? fix_level(t, j, value, &r->fixed[j])
                   : fix_number(t, j, value, &r->fixed[j]));
        r->n_fixed++;
    }
    return N2CE_OK;
}

/* ---- sums ---------------------------------------------------------------- */

static bool is_fixed(const n2_design_rules *r, size_t j) { return !isnan(r->fixed[j]); }

static double rounded(double x, double unit) {
    if (!(unit > 0)) return x;
    const double per = floor(1 / unit + 0.5);
    return floor(x * per + 0.5) / per;
}

static double sum_of(const n2_design_sum *s, const double *x) {
    double sum = 0;
    for (size_t k = 0; k < s->n; k++) sum += x[s->column[k]];
    return sum;
}

/* The unit of the summand with the most decimals; 0: any number will do. */
static double finest(const n2_design_rules *r, const n2_design_sum *s) {
    double unit = N2_INFINITY;
    for (size_t k = 0; k < s->n; k++) unit = fmin(unit, r->unit[s->column[k]]);
    return unit;
}

/* The least and the most that the columns can add up to; whether the total is between them. */
static bool reach(const n2_design_rules *r, const n2_design_sum *s, double *least, double *most) {
    *least = *most = 0;
    for (size_t k = 0; k < s->n; k++) {
        const size_t j = s->column[k];
        const n2_factor *f = &r->space->factor[j];
        *least += is_fixed(r, j) ? r->fixed[j] : f->low;
        *most += is_fixed(r, j) ? r->fixed[j] : f->high;
    }
    const double slack = 1e-9 * fmax(fabs(*least), fabs(*most));
    return s->total >= *least - slack && s->total <= *most + slack;
}

static n2ce_status check_sum(const n2_design_table *t, const n2_design_rules *r,
                             const n2_design_sum *s, const char *text) {
    double least, most;
    for (size_t k = 0; k < s->n; k++)
        if (r->space->factor[s->column[k]].kind == N2_CATEGORY)
            return n2_fail(t->ctx, N2CE_EINVAL, "--sum \"%s\": \"%s\" is a category.", text,
                           t->names[s->column[k]]);
    if (!reach(r, s, &least, &most))
        return n2_fail(
            t->ctx, N2CE_EINVAL,
            "--sum \"%s\": within their bounds%s these columns add up to %.6g to %.6g, so "
            "never to %.6g.",
            text, r->n_fixed ? " and as --fix says" : "", least, most, s->total);
    return N2CE_OK;
}

/* The numbers next to the total, from below and above, that the free columns can add up to with the
 * decimals that they have; both are the total if it is one. */
static void next_totals(const n2_design_rules *r, const n2_design_sum *s, double *below,
                        double *above) {
    double unit = N2_INFINITY, fixed = 0;
    for (size_t k = 0; k < s->n; k++) {
        const size_t j = s->column[k];
        if (is_fixed(r, j))
            fixed += r->fixed[j];
        else
            unit = fmin(unit, r->unit[j]);
    }
    const double steps = (s->total - fixed) / unit;
    *below = *above = s->total;
    if (!(unit > 0) || !isfinite(unit) || fabs(steps - floor(steps + 0.5)) <= 1e-6) return;
    *below = fixed + unit * floor(steps);
    *above = fixed + unit * ceil(steps);
}

static n2ce_status check_decimals(const n2_design_table *t, const n2_design_rules *r,
                                  const n2_design_sum *s, const char *text) {
    double below, above;
    next_totals(r, s, &below, &above);
    if (below == above) return N2CE_OK;
    return n2_fail(t->ctx, N2CE_EINVAL,
                   "--sum \"%s\": with the decimals that these columns have in the data they "
                   "add up to %.9g or %.9g, not to %.9g. Ask for one of these.",
                   text, below, above, s->total);
}

static n2ce_status check_apart(const n2_design_table *t, const n2_design_rules *r,
                               const n2_design_sum *s) {
    for (size_t i = 0; i < r->n_sums; i++)
        for (size_t a = 0; a < r->sums[i].n; a++)
            for (size_t b = 0; b < s->n; b++)
                if (r->sums[i].column[a] == s->column[b])
                    return n2_fail(t->ctx, N2CE_EINVAL,
                                   "\"%s\" is in two sums of --sum; it may be in one.",
                                   t->names[s->column[b]]);
    return N2CE_OK;
}

static n2ce_status read_sum(const n2_design_table *t, char *piece, n2_design_rules *r) {
    n2_design_sum s = {0};
    char *total, *whole = n2_arena_strdup(&r->arena, piece);
    size_t *columns = NULL;
    if (!whole) return N2CE_ENOMEM;
    if (!split_at_equals(piece, &total) || !read_number(total, &s.total))
        return n2_fail(t->ctx, N2CE_EINVAL, "--sum takes \"COLUMNS = TOTAL\", not \"%s\".", whole);
    N2_TRY(n2_columns_parse(t->ctx, piece, (char *const *)(uintptr_t)t->names, r->space->n,
                            &columns, &s.n));
    s.column = n2_arena_alloc(&r->arena, s.n, sizeof *s.column);
    if (s.column) memcpy(s.column, columns, s.n * sizeof *s.column);
    n2_free(t->ctx, columns);
    if (!s.column) return N2CE_ENOMEM;
    N2_TRY(check_sum(t, r, &s, whole));
    N2_TRY(check_decimals(t, r, &s, whole));
    N2_TRY(check_apart(t, r, &s));
    r->sums[r->n_sums++] = s;
    return N2CE_OK;
}

/* ---- a sum that nobody declared ------------------------------------------ */

enum { MOST_COLUMNS = 128 };
static const double NOTHING = 1e-3, SECOND = 1e-9, ALIKE = 0.2;

/* Correlations of the columns, and their standard deviations behind them; NULL: out of memory. */
static double *correlations(n2_design_rules *r, const n2_designs *d, const size_t *column,
                            size_t n) {
    double *c = n2_arena_alloc(&r->arena, n * n + 2 * n, sizeof *c);
    if (!c) return NULL;
    double *sd = c + n * n, *mean = sd + n;
    for (size_t i = 0; i < d->rows; i++)
        for (size_t a = 0; a < n; a++)
            mean[a] += d->x[i * d->space.n + column[a]] / (double)d->rows;
    for (size_t i = 0; i < d->rows; i++)
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b <= a; b++)
                c[a * n + b] += (d->x[i * d->space.n + column[a]] - mean[a]) *
                                (d->x[i * d->space.n + column[b]] - mean[b]) / (double)d->rows;
    for (size_t a = 0; a < n; a++) sd[a] = c[a * n + a] > 0 ? sqrt(c[a * n + a]) : 1;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < a; b++) c[a * n + b] /= sd[a] * sd[b];
        c[a * n + a] = 1;
    }
    return c;
}

/* The columns that have a factor in common in a direction of next to no variance, as summands have.
 * What the others have is noise, if these are a sum at all; so is what varies less than the sum. */
static size_t keep_summands(const double *direction, size_t stride, const double *sd,
                            double variance, size_t *column, size_t n) {
    const double noise = sqrt(fmax(variance, 0));
    size_t most = 0, kept = 0;
    for (size_t a = 1; a < n; a++)
        if (fabs(direction[a * stride]) > fabs(direction[most * stride])) most = a;
    const double factor = direction[most * stride] / sd[most];
    for (size_t a = 0; a < n; a++) {
        const double share = direction[a * stride] / sd[a] / factor;
        if (fabs(share - 1) <= ALIKE && fabs(direction[a * stride]) > noise)
            column[kept++] = column[a];
    }
    return kept;
}

static double sum_in_row(const n2_designs *d, const n2_design_sum *s, size_t row) {
    return sum_of(s, d->x + row * d->space.n);
}

static double mean_sum(const n2_design_rules *r, const n2_designs *d, const n2_design_sum *s) {
    double sum = 0;
    for (size_t i = 0; i < d->rows; i++) sum += sum_in_row(d, s, i);
    const double mean = sum / (double)d->rows, round_one = floor(mean + 0.5);
    return fabs(mean - round_one) < 1e-3 * fabs(mean) ? round_one : rounded(mean, finest(r, s));
}

/* Whether no row is further from the total than rounding can put it: to the summands' decimals, or
 * to four digits, where these are many. */
static bool holds_in_all_rows(const n2_design_rules *r, const n2_designs *d,
                              const n2_design_sum *s) {
    double decimals = 0;
    for (size_t k = 0; k < s->n; k++) decimals += r->unit[s->column[k]] / 2;
    const double slack = fmax(1.001 * decimals, 2e-4 * fabs(s->total));
    for (size_t i = 0; i < d->rows; i++)
        if (!(fabs(sum_in_row(d, s, i) - s->total) <= slack)) return false;
    return true;
}

/* The direction in which number columns vary least, in their own scales, if they hardly do: *n of
 * them are its summands; 0: there is none. */
static n2ce_status find_summands(const n2_design_table *t, n2_design_rules *r, size_t *column,
                                 size_t *n) {
    const n2_designs *d = &t->designs;
    double values[MOST_COLUMNS];
    size_t m = 0;
    *n = 0;
    for (size_t j = 0; j < d->space.n; j++) {
        const n2_factor *f = &d->space.factor[j];
        if (f->kind != N2_CATEGORY && f->high > f->low) column[m++] = j;
    }
    if (m < 2 || m > MOST_COLUMNS || d->rows < 4 * m) return N2CE_OK;
    double *c = correlations(r, d, column, m);
    double *v = n2_arena_alloc(&r->arena, m * m, sizeof *v);
    if (!c || !v) return N2CE_ENOMEM;
    if (!n2_symmetric_eigen(c, m, values, v)) return N2CE_OK;
    if (values[0] < NOTHING && values[1] > SECOND)
        *n = keep_summands(v, m, c + m * m, values[0], column, m);
    return N2CE_OK;
}

/* A sum that --fix or --bounds exclude is let go, and that is said. */
static void take_found(const n2_design_table *t, n2_design_rules *r, const n2_design_sum *s) {
    double low, high;
    const bool within = reach(r, s, &low, &high);
    if (within) next_totals(r, s, &low, &high);
    if (within && low == high) {
        r->sums[r->n_sums++] = *s;
        return;
    }
    n2_log(
        t->ctx, N2CE_LOG_WARNING,
        "%zu columns, \"%s\" to \"%s\", add up to %.6g in all rows, but to %.9g %s %.9g as "
        "--fix and the bounds have them: the sum cannot hold, and is let go. --sum none says so.",
        s->n, t->names[s->column[0]], t->names[s->column[s->n - 1]], s->total, low,
        within ? "or" : "to", high);
}

static n2ce_status find_sum(const n2_design_table *t, n2_design_rules *r) {
    n2_design_sum s = {.found = true};
    s.column = n2_arena_alloc(&r->arena, t->designs.space.n, sizeof *s.column);
    if (!s.column) return N2CE_ENOMEM;
    N2_TRY(find_summands(t, r, s.column, &s.n));
    if (s.n < 2) return N2CE_OK;
    s.total = mean_sum(r, &t->designs, &s);
    if (holds_in_all_rows(r, &t->designs, &s)) take_found(t, r, &s);
    return N2CE_OK;
}

/* ---- reading ------------------------------------------------------------- */

static n2ce_status find_units(const n2_design_table *t, n2_design_rules *r) {
    const n2_designs *d = &t->designs;
    double *x = n2_alloc(t->ctx, d->rows, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    for (size_t j = 0; j < d->space.n; j++) {
        const n2_factor *f = &d->space.factor[j];
        for (size_t i = 0; i < d->rows; i++) x[i] = d->x[i * d->space.n + j];
        r->unit[j] = f->kind == N2_WHOLE ? 1 : f->kind == N2_CATEGORY ? 0 : n2_decimals(x, d->rows);
        if (f->kind == N2_CONTINUOUS && r->unit[j] == 1) r->unit[j] = 0; /* --continuous */
    }
    n2_free(t->ctx, x);
    return N2CE_OK;
}

/* Rules without any, and room for so many sums. */
static n2ce_status begin(const n2_design_table *t, size_t sums, n2_design_rules *out) {
    const size_t n = t->designs.space.n;
    *out = (n2_design_rules){.ctx = t->ctx, .space = &t->designs.space};
    out->arena = n2_arena_new(t->ctx);
    out->fixed = n2_arena_alloc(&out->arena, n, sizeof *out->fixed);
    out->unit = n2_arena_alloc(&out->arena, n, sizeof *out->unit);
    out->sums = n2_arena_alloc(&out->arena, sums, sizeof *out->sums);
    if (!out->fixed || !out->unit || !out->sums) return N2CE_ENOMEM;
    for (size_t j = 0; j < n; j++) out->fixed[j] = (double)NAN;
    return find_units(t, out);
}

n2ce_status n2_design_rules_read(const n2_design_table *t, const char *fix, const char *sums,
                                 n2_design_rules *out) {
    char *piece;
    N2_TRY(begin(t, strlen(sums) + 1, out)); /* more than semicolons */
    N2_TRY(read_fixed(t, fix, out));
    if (strcmp(sums, "auto") == 0) return find_sum(t, out);
    if (strcmp(sums, "none") == 0) return N2CE_OK;
    while ((piece = next_piece(&out->arena, &sums, ';')))
        if (*piece) N2_TRY(read_sum(t, piece, out));
    return N2CE_OK;
}

void n2_design_rules_free(n2_design_rules *r) {
    if (r->ctx) n2_arena_free(&r->arena);
}

/* ---- as numbers ---------------------------------------------------------- */

size_t n2_design_rules_size(const n2_design_rules *r) { return r->n_sums * (r->space->n + 1); }

void n2_design_rules_write(const n2_design_rules *r, double *fixed, double *sums) {
    const size_t n = r->space->n;
    memcpy(fixed, r->fixed, n * sizeof *fixed);
    memset(sums, 0, n2_design_rules_size(r) * sizeof *sums);
    for (size_t i = 0; i < r->n_sums; i++) {
        double *row = sums + i * (n + 1);
        for (size_t k = 0; k < r->sums[i].n; k++) row[r->sums[i].column[k]] = 1;
        row[n] = r->sums[i].total;
    }
}

/* Whether a column can be fixed at x, or is not. */
static bool can_be_fixed(const n2_factor *f, double x) {
    if (isnan(x)) return true;
    if (f->kind == N2_CATEGORY) return x >= 0 && x < (double)f->levels && x == floor(x);
    return x >= f->low && x <= f->high;
}

static bool can_be_sum(const n2_design_rules *r, const n2_design_sum *s) {
    double least, most;
    for (size_t k = 0; k < s->n; k++)
        if (r->space->factor[s->column[k]].kind == N2_CATEGORY) return false;
    return s->n > 0 && reach(r, s, &least, &most);
}

n2ce_status n2_design_rules_restore(const n2_design_table *t, const double *fixed,
                                    const double *sums, size_t n_sums, n2_design_rules *out) {
    const size_t n = t->designs.space.n;
    N2_TRY(begin(t, n_sums + 1, out));
    for (size_t j = 0; j < n; j++) {
        if (!can_be_fixed(&t->designs.space.factor[j], fixed[j])) return N2CE_EDATA;
        out->fixed[j] = fixed[j];
        out->n_fixed += is_fixed(out, j);
    }
    for (size_t i = 0; i < n_sums; i++) {
        n2_design_sum *s = &out->sums[out->n_sums++];
        s->column = n2_arena_alloc(&out->arena, n, sizeof *s->column);
        if (!s->column) return N2CE_ENOMEM;
        for (size_t j = 0; j < n; j++)
            if (sums[i * (n + 1) + j] > 0) s->column[s->n++] = j;
        s->total = sums[i * (n + 1) + n];
        if (!can_be_sum(out, s)) return N2CE_EDATA;
    }
    return N2CE_OK;
}

/* ---- applying ------------------------------------------------------------ */

/* What the free columns have above their lower bounds, or below their upper ones. */
static double room_of(const n2_design_rules *r, const n2_design_sum *s, const double *x, bool up) {
    double room = 0;
    for (size_t k = 0; k < s->n; k++) {
        const n2_factor *f = &r->space->factor[s->column[k]];
        if (is_fixed(r, s->column[k])) continue;
        room += up ? f->high - x[s->column[k]] : x[s->column[k]] - f->low;
    }
    return room;
}

/* Stretches columns above their lower bounds by one factor, those at their upper bounds aside; what
 * is at its lower bound stays there unless nothing else can grow. */
static void stretch(const n2_design_rules *r, const n2_design_sum *s, double *x) {
    for (size_t pass = 0; pass <= s->n; pass++) {
        double above = 0, off = s->total - sum_of(s, x);
        if (off <= 1e-12 * fabs(s->total)) return;
        for (size_t k = 0; k < s->n; k++) {
            const size_t j = s->column[k];
            const n2_factor *f = &r->space->factor[j];
            if (!is_fixed(r, j) && x[j] < f->high) above += x[j] - f->low;
        }
        const double room = room_of(r, s, x, true);
        for (size_t k = 0; k < s->n; k++) {
            const size_t j = s->column[k];
            const n2_factor *f = &r->space->factor[j];
            if (is_fixed(r, j) || x[j] >= f->high) continue;
            const double more =
                above > 0 ? off * (x[j] - f->low) / above : off * (f->high - x[j]) / room;
            x[j] = fmin(x[j] + more, f->high);
        }
    }
}

static void shrink(const n2_design_rules *r, const n2_design_sum *s, double *x) {
    const double room = room_of(r, s, x, false), off = sum_of(s, x) - s->total;
    for (size_t k = 0; k < s->n && room > 0; k++) {
        const size_t j = s->column[k];
        if (!is_fixed(r, j)) x[j] -= off * (x[j] - r->space->factor[j].low) / room;
    }
}

/* Column j with so much more, as near as its decimals and bounds allow. */
static double moved(const n2_design_rules *r, size_t j, double x, double more) {
    const n2_factor *f = &r->space->factor[j];
    return fmin(fmax(rounded(x + more, r->unit[j]), f->low), f->high);
}

/* Decimals of the columns, and what is lost by them to those with most room for it. */
static void round_sum(const n2_design_rules *r, const n2_design_sum *s, double *x) {
    for (size_t k = 0; k < s->n; k++) {
        const size_t j = s->column[k];
        if (!is_fixed(r, j)) x[j] = rounded(x[j], r->unit[j]);
    }
    for (size_t pass = 0; pass < s->n; pass++) {
        const double off = s->total - sum_of(s, x);
        size_t best = s->column[0];
        double most = 0;
        if (fabs(off) <= 1e-12 * fabs(s->total)) return;
        for (size_t k = 0; k < s->n; k++) {
            const size_t j = s->column[k];
            const n2_factor *f = &r->space->factor[j];
            const double room = off > 0 ? f->high - x[j] : x[j] - f->low;
            const double size = x[j] > f->low ? room : room * 1e-3; /* zeros stay, if they can */
            if (is_fixed(r, j) || !(size > most)) continue;
            if (!(fabs(moved(r, j, x[j], off) - x[j] - off) < fabs(off))) continue; /* too coarse */
            most = size;
            best = j;
        }
        if (!(most > 0)) return;
        x[best] = moved(r, best, x[best], off);
    }
}

void n2_design_rules_apply(const n2_design_rules *r, double *design) {
    for (size_t j = 0; j < r->space->n && r->n_fixed > 0; j++)
        if (is_fixed(r, j)) design[j] = r->fixed[j];
    for (size_t i = 0; i < r->n_sums; i++) {
        const n2_design_sum *s = &r->sums[i];
        if (sum_of(s, design) > s->total)
            shrink(r, s, design);
        else
            stretch(r, s, design);
        round_sum(r, s, design);
    }
}

bool n2_design_rules_hold(const n2_design_rules *r, const double *design) {
    for (size_t j = 0; j < r->space->n; j++)
        if (is_fixed(r, j) && design[j] != r->fixed[j]) return false;
    for (size_t i = 0; i < r->n_sums; i++) {
        const double total = r->sums[i].total;
        if (fabs(sum_of(&r->sums[i], design) - total) > 1e-9 * fmax(fabs(total), 1)) return false;
    }
    return true;
}
