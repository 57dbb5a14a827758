/* Designs on thin sets: tasks made here, in which all but a vanishing share of what the columns
 * allow is worth nothing, so that whoever proposes has to know what a design looks like. They need
 * no data. Offline are valid designs only, drawn by the seed, up to a percentile of their values;
 * what is not valid has the least value.
 *
 *   rna      32 bases; value: how strongly the strand folds onto itself. All are valid
 *   hairpin  20 bases of which the first eight pair with the last eight; value: what the stem's
 *            stacked pairs are worth, and a loop of the kind GNRA, less repeated bases
 *   grammar  15 tokens that are a formula in x; value: -ln(1 + mean squared error) against
 *            1/3 + x + sin(x x) over [-10, 10] (Kusner et al. 2017)
 *   recipe   8 amounts that add up to 100, hardener two fifths of resin, one filler of four; value:
 *            smooth in the amounts, each filler with its own best */
#include "design_space.h"
#include "forest_oracle.h"
#include "rna_fold.h"

#include <math.h>
#include <string.h>

enum { STREAM = 0x54480000 };

typedef struct thin_set {
    size_t columns, rows;
    n2_factor factor;
    double percentile;
    void (*draw)(n2_stream stream, double *x); /* a valid design */
    bool (*value)(const double *x, double *y); /* false: it is none */
} thin_set;

/* ---- strands --------------------------------------------------------------------------------- */

enum { STRAND = 32, STEM = 8, HAIRPIN = 20 };

static void draw_strand(n2_stream stream, double *x) {
    for (size_t i = 0; i < STRAND; i++) x[i] = (double)n2_random_below(stream, i, 4);
}

static bool strand_value(const double *x, double *y) {
    int base[STRAND];
    for (size_t i = 0; i < STRAND; i++) base[i] = (int)x[i];
    *y = -n2_rna_energy(base, STRAND);
    return true;
}

static void draw_hairpin(n2_stream stream, double *x) {
    static const int pairs[][2] = {{0, 3}, {3, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 2}};
    for (size_t i = 0; i < STEM; i++) {
        const int *pair = pairs[n2_random_below(stream, i, 6)];
        x[i] = pair[0];
        x[HAIRPIN - 1 - i] = pair[1];
    }
    for (size_t i = STEM; i < HAIRPIN - STEM; i++) x[i] = (double)n2_random_below(stream, i, 4);
}

static bool hairpin_value(const double *x, double *y) {
    int b[HAIRPIN];
    const int *loop = b + STEM;
    double sum = 0;
    for (size_t i = 0; i < HAIRPIN; i++) b[i] = (int)x[i];
    for (size_t i = 0; i < STEM; i++)
        if (!n2_rna_pairs(b[i], b[HAIRPIN - 1 - i])) return false;
    for (size_t i = 0; i + 1 < STEM; i++)
        sum -= n2_rna_stack(b[i], b[HAIRPIN - 1 - i], b[i + 1], b[HAIRPIN - 2 - i]);
    for (size_t i = 1; i < HAIRPIN; i++) sum -= b[i] == b[i - 1];
    if (loop[0] == 2 && (loop[2] == 0 || loop[2] == 2) && loop[3] == 0) sum += 3;
    *y = sum;
    return true;
}

/* ---- formulas -------------------------------------------------------------------------------- */

enum { FORMULA = 15, POINTS = 100, DRAWS = 64 };
enum { END, X, ONE, TWO, THREE, PLUS, TIMES, OVER, OPEN, CLOSE, SIN, EXP, WORDS };
static const double MOST_ERROR = 1e6;

typedef struct formula {
    const double *token;
    size_t at;
    double x;
    bool wrong;
} formula;

static int next_token(const formula *f) { return f->at < FORMULA ? (int)f->token[f->at] : END; }

static double sum_of(formula *f, int depth);

static double in_brackets(formula *f, int depth) {
    if (next_token(f) != OPEN) f->wrong = true;
    f->at++;
    const double v = f->wrong ? 0 : sum_of(f, depth + 1);
    if (next_token(f) != CLOSE) f->wrong = true;
    f->at++;
    return v;
}

static double term_of(formula *f, int depth) {
    const int token = next_token(f);
    if (token == OPEN) return in_brackets(f, depth);
    f->at++;
    switch (token) {
    case X:
        return f->x;
    case ONE:
    case TWO:
    case THREE:
        return token - ONE + 1;
    case SIN:
        return sin(in_brackets(f, depth));
    case EXP:
        return exp(in_brackets(f, depth));
    default:
        f->wrong = true;
        return 0;
    }
}

/* Products before sums. */
static double product_of(formula *f, int depth) {
    double v = term_of(f, depth);
    while (!f->wrong && (next_token(f) == TIMES || next_token(f) == OVER)) {
        const bool times = next_token(f) == TIMES;
        f->at++;
        const double by = term_of(f, depth);
        v = times ? v * by : v / by;
    }
    return v;
}

static double sum_of(formula *f, int depth) {
    double v = product_of(f, depth);
    while (!f->wrong && next_token(f) == PLUS) {
        f->at++;
        v += product_of(f, depth);
    }
    return v;
}

/* After the first END there is nothing else. */
static bool formula_value(const double *x, double *y) {
    double error = 0;
    for (size_t i = 0; i < POINTS; i++) {
        formula f = {.token = x, .x = -10 + 20 * ((double)i + 0.5) / POINTS};
        const double v = sum_of(&f, 0);
        for (size_t k = f.at; k < FORMULA; k++) f.wrong |= (int)x[k] != END;
        if (f.wrong) return false;
        const double off = v - (1.0 / 3 + f.x + sin(f.x * f.x));
        error += off * off / POINTS;
    }
    *y = -log(1 + (error < MOST_ERROR ? error : MOST_ERROR));
    return true;
}

/* A formula that is written as it is drawn: what is open has to be closed. */
typedef struct writer {
    n2_stream stream;
    uint64_t draws;
    double *token;
    size_t n;
} writer;

static size_t choose(writer *w, size_t n) { return n2_random_below(w->stream, w->draws++, n); }

static void put(writer *w, int token) {
    if (w->n < FORMULA) w->token[w->n] = token;
    w->n++;
}

static void write_sum(writer *w, int depth);

static void write_term(writer *w, int depth) {
    const size_t pick = choose(w, depth < 3 ? 8 : 5);
    if (pick < 5) {
        put(w, pick < 2 ? X : ONE + (int)pick - 2);
        return;
    }
    if (pick > 5) put(w, pick == 6 ? SIN : EXP);
    put(w, OPEN);
    write_sum(w, depth + 1);
    put(w, CLOSE);
}

static void write_sum(writer *w, int depth) {
    write_term(w, depth);
    while (choose(w, 5) < 2 && w->n < FORMULA) {
        put(w, PLUS + (int)choose(w, 3));
        write_term(w, depth);
    }
}

static void draw_formula(n2_stream stream, double *x) {
    writer w = {.stream = stream, .token = x};
    for (size_t draw = 0; draw < DRAWS; draw++) {
        w.n = 0;
        for (size_t i = 0; i < FORMULA; i++) x[i] = END;
        write_sum(&w, 0);
        if (w.n >= 5 && w.n <= FORMULA) return;
    }
    for (size_t i = 0; i < FORMULA; i++) x[i] = i ? END : X;
}

/* ---- recipes --------------------------------------------------------------------------------- */

enum { RESIN, HARDENER, WATER, SALT, FILLERS, INGREDIENTS = FILLERS + 4 };
static const double TOTAL = 100, HARDENER_SHARE = 0.4, SLACK = 0.5;

static void draw_recipe(n2_stream stream, double *x) {
    double sum = 0, part[4];
    float u[4];
    n2_fill_uniform(stream, 0, 4, u);
    for (size_t i = 0; i < 4; i++) sum += part[i] = 1e-9 - log((double)u[i]);
    for (size_t i = 0; i < INGREDIENTS; i++) x[i] = 0;
    for (size_t i = 0; i < 4; i++) part[i] *= TOTAL / sum;
    x[RESIN] = part[0] / (1 + HARDENER_SHARE);
    x[HARDENER] = x[RESIN] * HARDENER_SHARE;
    x[WATER] = part[1];
    x[SALT] = part[2];
    x[FILLERS + n2_random_below(stream, 9, 4)] = part[3];
}

static double hill(double x, double top, double width) {
    return exp(-0.5 * (x - top) * (x - top) / (width * width));
}

static bool recipe_value(const double *x, double *y) {
    double sum = 0;
    size_t fillers = 0, filler = FILLERS;
    for (size_t i = 0; i < INGREDIENTS; i++) {
        sum += x[i];
        if (i >= FILLERS && x[i] > SLACK) fillers++, filler = i;
    }
    if (fabs(sum - TOTAL) > SLACK || fillers > 1) return false;
    if (fabs(x[HARDENER] - HARDENER_SHARE * x[RESIN]) > SLACK) return false;
    const double best = 8 + 6 * (double)(filler - FILLERS);
    *y = 4 * hill(x[RESIN], 38, 12) + 2 * hill(x[SALT], 6, 5) + 3 * hill(x[filler], best, 6) +
         0.02 * x[WATER];
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* By n2_design_task.setting. */
static const thin_set sets[] = {
    {STRAND, 5000, {N2_CATEGORY, 0, 0, 4}, 50, draw_strand, strand_value},
    {HAIRPIN, 5000, {N2_CATEGORY, 0, 0, 4}, 60, draw_hairpin, hairpin_value},
    {FORMULA, 5000, {N2_CATEGORY, 0, 0, WORDS}, 60, draw_formula, formula_value},
    {INGREDIENTS, 3000, {N2_CONTINUOUS, 0, 100, 0}, 70, draw_recipe, recipe_value},
};

static const thin_set *set_of(const n2_design_bench *b) { return &sets[(size_t)b->task->setting]; }

static n2ce_status begin(n2_design_bench *b, uint64_t seed) {
    const thin_set *s = set_of(b);
    double *x = n2_arena_alloc(&b->by_seed, s->rows * (s->columns + 1), sizeof *x);
    b->offline.space = n2_space_of(&b->by_seed, s->columns, s->factor);
    if (!x || !b->offline.space.factor) return N2CE_ENOMEM;
    double *y = x + s->rows * s->columns;
    for (size_t i = 0; i < s->rows; i++) {
        s->draw((n2_stream){seed, STREAM + (uint32_t)b->task->setting, (uint32_t)i},
                x + i * s->columns);
        s->value(x + i * s->columns, &y[i]);
    }
    return n2_offline_up_to(b, x, y, s->rows, s->percentile, 0, STREAM);
}

static n2ce_status score(const n2_design_bench *b, const double *x, size_t rows, double *y) {
    const thin_set *s = set_of(b);
    for (size_t i = 0; i < rows; i++)
        if (!s->value(x + i * s->columns, &y[i])) y[i] = b->task->low;
    return N2CE_OK;
}

#define THIN(title, about, which, least, most)                                       \
    {                                                                                \
        .name = title, .summary = about, .low = least, .high = most, .queries = 256, \
        .setting = which, .further = true, .begin = begin, .score = score            \
    }

const n2_design_task n2_rna_task =
    THIN("rna", "32 bases of RNA that fold onto themselves strongly", 0, 0, 30);
const n2_design_task n2_hairpin_task =
    THIN("hairpin", "20 bases whose ends must pair, for a strong stem and a good loop", 1, -20, 20);
const n2_design_task n2_grammar_task =
    THIN("grammar", "15 tokens that must be a formula, for one near a function", 2,
         -13.815511557963774, 0);
const n2_design_task n2_recipe_task =
    THIN("recipe", "8 amounts that must add up and match, for a good mixture", 3, 0, 10);
