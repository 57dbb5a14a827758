#include "small_net.h"

#include "base/arena.h"
#include "base/linalg.h"
#include "base/numerics.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

enum { UNITS = 64, LAYERS = 3, BATCH = 200, EPOCHS = 200, PATIENCE = 10, WEIGHTS = 1, ORDER = 2 };

static const double RATE = 1e-3, DECAY = 1e-4, FIRST = 0.9, SECOND = 0.999, HELD_OUT = 0.1;

/* Weights of a layer are in x out, then its biases; layers follow one another. */
typedef struct net {
    size_t width[LAYERS + 1], n;      /* columns, units, units, 1; numbers in all */
    double *w, *slope, *m, *v, *best; /* n each */
    double *unit[LAYERS + 1];         /* BATCH x width: what goes into a layer, and comes out */
    double *back[LAYERS + 1];         /* the loss's slope in that */
    double *mean, *scale;             /* of columns */
    size_t *order;                    /* of the rows that are learned from, those held out last */
    size_t steps;
} net;

static n2ce_status make_room(n2_arena *arena, size_t rows, size_t cols, net *n) {
    const size_t width[LAYERS + 1] = {cols, UNITS, UNITS, 1};
    bool all = true;
    memcpy(n->width, width, sizeof width);
    for (size_t l = 0; l < LAYERS; l++) n->n += (width[l] + 1) * width[l + 1];
    double **const arrays[] = {&n->w, &n->slope, &n->m, &n->v, &n->best};
    for (size_t k = 0; k < 5; k++)
        all = (*arrays[k] = n2_arena_alloc(arena, n->n, sizeof(double))) && all;
    for (size_t l = 0; l <= LAYERS; l++) {
        all = (n->unit[l] = n2_arena_alloc(arena, BATCH * width[l], sizeof(double))) && all;
        all = (n->back[l] = n2_arena_alloc(arena, BATCH * width[l], sizeof(double))) && all;
    }
    n->mean = n2_arena_alloc(arena, cols, sizeof(double));
    n->scale = n2_arena_alloc(arena, cols, sizeof(double));
    n->order = n2_arena_alloc(arena, rows, sizeof *n->order);
    return all && n->mean && n->scale && n->order ? N2CE_OK : N2CE_ENOMEM;
}

/* Uniform within sqrt(6 / (in + out)), scikit-learn's (Glorot's) choice. */
static void begin(net *n) {
    size_t at = 0;
    for (size_t l = 0; l < LAYERS; l++) {
        const double reach = sqrt(6 / (double)(n->width[l] + n->width[l + 1]));
        for (size_t k = 0; k < (n->width[l] + 1) * n->width[l + 1]; k++, at++) {
            float u;
            n2_fill_uniform((n2_stream){0, WEIGHTS, 0}, at, 1, &u);
            n->w[at] = reach * (2 * (double)u - 1);
        }
    }
}

static void measure_columns(net *n, const double *x, size_t rows) {
    const size_t d = n->width[0];
    for (size_t j = 0; j < d; j++) {
        double sum = 0, square = 0;
        for (size_t i = 0; i < rows; i++) sum += x[i * d + j];
        n->mean[j] = sum / (double)rows;
        for (size_t i = 0; i < rows; i++)
            square += (x[i * d + j] - n->mean[j]) * (x[i * d + j] - n->mean[j]);
        n->scale[j] = square > 0 ? sqrt((double)rows / square) : 0;
    }
}

static void read_row(const net *n, const double *row, size_t r) {
    const size_t d = n->width[0];
    for (size_t j = 0; j < d; j++) n->unit[0][r * d + j] = n->scale[j] * (row[j] - n->mean[j]);
}

static void forward(const net *n, size_t rows) {
    const double *w = n->w;
    for (size_t l = 0; l < LAYERS; l++) {
        const size_t in = n->width[l], out = n->width[l + 1];
        for (size_t r = 0; r < rows; r++) {
            const double *x = n->unit[l] + r * in;
            double *y = n->unit[l + 1] + r * out;
            memcpy(y, w + in * out, out * sizeof *y);
            for (size_t i = 0; i < in; i++)
                for (size_t o = 0; o < out; o++) y[o] += x[i] * w[i * out + o];
            for (size_t o = 0; o < out && l + 1 < LAYERS; o++) y[o] = fmax(y[o], 0);
        }
        w += (in + 1) * out;
    }
}

/* Slopes of a layer's weights, and of what went into it. */
static void step_back(const net *n, size_t l, const double *w, double *slope, size_t rows) {
    const size_t in = n->width[l], out = n->width[l + 1];
    for (size_t r = 0; r < rows; r++) {
        const double *x = n->unit[l] + r * in, *above = n->back[l + 1] + r * out;
        double *below = n->back[l] + r * in;
        for (size_t o = 0; o < out; o++) slope[in * out + o] += above[o];
        for (size_t i = 0; i < in; i++) {
            for (size_t o = 0; o < out; o++) slope[i * out + o] += x[i] * above[o];
            below[i] = l == 0 || x[i] > 0 ? n2_dot(w + i * out, above, out) : 0;
        }
    }
}

static void backward(const net *n, size_t rows) {
    size_t at = n->n;
    memset(n->slope, 0, n->n * sizeof *n->slope);
    for (size_t l = LAYERS; l-- > 0;) {
        at -= (n->width[l] + 1) * n->width[l + 1];
        step_back(n, l, n->w + at, n->slope + at, rows);
    }
}

static void move(net *n) {
    const double t = (double)++n->steps;
    const double rate = RATE * sqrt(1 - pow(SECOND, t)) / (1 - pow(FIRST, t));
    for (size_t k = 0; k < n->n; k++) {
        const double g = n->slope[k];
        n->m[k] = FIRST * n->m[k] + (1 - FIRST) * g;
        n->v[k] = SECOND * n->v[k] + (1 - SECOND) * g * g;
        n->w[k] -= rate * n->m[k] / (sqrt(n->v[k]) + 1e-8);
    }
}

typedef struct lesson {
    const double *x, *label;
    size_t learned, rows; /* rows of the order that are learned from; all */
} lesson;

/* A batch from a place of the order on; its labels' slopes are ready for the way back. */
static double read_batch(const net *n, const lesson *of, size_t first, size_t rows) {
    double loss = 0;
    for (size_t r = 0; r < rows; r++) read_row(n, of->x + n->order[first + r] * n->width[0], r);
    forward(n, rows);
    for (size_t r = 0; r < rows; r++) {
        const double y = of->label[n->order[first + r]], f = n->unit[LAYERS][r];
        loss += n2_softplus(y > 0 ? -f : f);
        n->back[LAYERS][r] = (n2_sigmoid(f) - y) / (double)rows;
    }
    return loss;
}

static void shuffle(const net *n, size_t rows, uint32_t epoch) {
    for (size_t i = rows; i > 1; i--) {
        const size_t j = n2_random_below((n2_stream){0, ORDER, epoch}, i, i), kept = n->order[j];
        n->order[j] = n->order[i - 1];
        n->order[i - 1] = kept;
    }
}

static void learn(net *n, const lesson *of, uint32_t epoch) {
    shuffle(n, of->learned, epoch);
    for (size_t i = 0; i < of->learned; i += BATCH) {
        const size_t left = of->learned - i, rows = left < BATCH ? left : BATCH;
        read_batch(n, of, i, rows);
        backward(n, rows);
        for (size_t k = 0; k < n->n; k++) n->slope[k] += DECAY / (double)rows * n->w[k];
        move(n);
    }
}

static double held_loss(const net *n, const lesson *of) {
    double loss = 0;
    for (size_t i = of->learned; i < of->rows; i += BATCH) {
        const size_t left = of->rows - i;
        loss += read_batch(n, of, i, left < BATCH ? left : BATCH);
    }
    return loss;
}

static n2ce_status train(n2ce_ctx *ctx, net *n, const lesson *of) {
    double least = N2_INFINITY;
    for (size_t i = 0; i < of->rows; i++) n->order[i] = i;
    shuffle(n, of->rows, 0);
    for (uint32_t epoch = 1, since = 0; epoch <= EPOCHS && since < PATIENCE; epoch++, since++) {
        if (n2_cancelled(ctx)) return N2CE_ECANCELED;
        learn(n, of, epoch);
        const double loss = held_loss(n, of);
        if (!(loss < least)) continue;
        least = loss;
        since = 0;
        memcpy(n->best, n->w, n->n * sizeof *n->w);
    }
    memcpy(n->w, n->best, n->n * sizeof *n->w);
    return N2CE_OK;
}

static void answer(const net *n, const double *at, size_t rows, double *odds) {
    for (size_t i = 0; i < rows; i += BATCH) {
        const size_t left = rows - i, some = left < BATCH ? left : BATCH;
        for (size_t r = 0; r < some; r++) read_row(n, at + (i + r) * n->width[0], r);
        forward(n, some);
        memcpy(odds + i, n->unit[LAYERS], some * sizeof *odds);
    }
}

n2ce_status n2_small_net_odds(n2ce_ctx *ctx, const double *x, const double *label, size_t rows,
                              size_t cols, const double *at, size_t n_at, double *odds) {
    n2_arena arena = n2_arena_new(ctx);
    const lesson of = {x, label, rows - (size_t)(HELD_OUT * (double)rows), rows};
    net n = {0};
    n2ce_status status = make_room(&arena, rows, cols, &n);
    if (status == N2CE_OK) {
        begin(&n);
        measure_columns(&n, x, rows);
        status = train(ctx, &n, &of);
    }
    if (status == N2CE_OK) answer(&n, at, n_at, odds);
    n2_arena_free(&arena);
    return status;
}
