#include "table.h"

#include "base/random.h"
#include "table_ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table -------------------------------------------------------------------------- */

/* Names are one block: the pointers, then the texts. */
static n2ce_status copy_names(n2_table *t, const n2_reader *r) {
    size_t bytes = t->cols * sizeof *t->names;
    for (size_t c = 0; c < t->cols; c++) bytes += strlen(n2_reader_name(r, c)) + 1;
    t->names = n2_alloc(t->ctx, bytes, 1);
    t->categorical = n2_alloc(t->ctx, t->cols, sizeof *t->categorical);
    if (!t->names || !t->categorical) return N2CE_ENOMEM;
    char *text = (char *)(t->names + t->cols);
    for (size_t c = 0; c < t->cols; c++) {
        t->names[c] = strcpy(text, n2_reader_name(r, c));
        text += strlen(text) + 1;
    }
    return N2CE_OK;
}

void n2_table_free(n2_table *t) {
    if (!t) return;
    n2_free(t->ctx, t->x);
    n2_free(t->ctx, t->names);
    n2_free(t->ctx, t->categorical);
    n2_free(t->ctx, t->origin);
    n2_free(t->ctx, t);
}

/* ---- filling it ------------------------------------------------------------------------- */

/* What is first allocated, and what is read at once later: most tables are small. */
enum { FIRST_VALUES = 1 << 12, BLOCK_VALUES = 1 << 16 };

/* A row of the sample: which it is among the rows that were not dropped, and where it is. */
typedef struct kept {
    size_t origin, slot;
} kept;

typedef struct filler {
    n2_table *t;
    n2_reader *r;
    size_t limit; /* rows to keep, SIZE_MAX: all */
    uint64_t seed;
    size_t room;   /* rows */
    double *block; /* what may enter the sample */
    kept *kept;    /* of each row, once the sample is full */
} filler;

static size_t rows_of(const n2_table *t, size_t values) {
    return t->cols < values ? values / t->cols : 1;
}

static size_t block_rows(const n2_table *t) { return rows_of(t, BLOCK_VALUES); }

static n2ce_status resize(filler *f, size_t rows) {
    double *x = n2_realloc(f->t->ctx, f->t->x, rows, f->t->cols * sizeof *x);
    if (!x) return N2CE_ENOMEM;
    f->t->x = x;
    f->room = rows;
    return N2CE_OK;
}

static n2ce_status grow(filler *f) {
    const size_t wanted = f->room ? 2 * f->room : rows_of(f->t, FIRST_VALUES);
    return resize(f, wanted < f->limit ? wanted : f->limit);
}

/* Rows as they come, until there are enough or no more. */
static n2ce_status fill(filler *f, bool *ended) {
    n2_table *t = f->t;
    for (size_t n = 1; t->rows < f->limit; t->rows += n) {
        if (t->rows == f->room) N2_TRY(grow(f));
        N2_TRY(n2_reader_next(f->r, t->x + t->rows * t->cols, f->room - t->rows, &n));
        *ended = n == 0;
        if (*ended) break;
    }
    return N2CE_OK;
}

enum { STREAM = 0x7461626c }; /* nobody else's */

/* Every later row replaces a row of the sample with the probability that keeps the sample uniform
 * (Vitter 1985, algorithm R). */
static size_t slot_of(const filler *f, size_t origin) {
    return n2_random_below((n2_stream){f->seed, STREAM, 0}, origin, origin + 1);
}

static void offer(filler *f, const double *row, size_t origin) {
    const n2_table *t = f->t;
    const size_t slot = slot_of(f, origin);
    if (slot >= t->rows) return;
    memcpy(t->x + slot * t->cols, row, t->cols * sizeof *row);
    f->kept[slot].origin = origin;
}

/* The sample is full: from now on its rows have numbers. */
static n2ce_status begin_replacing(filler *f) {
    const n2_table *t = f->t;
    f->block = n2_alloc(t->ctx, block_rows(t), t->cols * sizeof *f->block);
    f->kept = n2_alloc(t->ctx, t->rows, sizeof *f->kept);
    if (!f->block || !f->kept) return N2CE_ENOMEM;
    for (size_t i = 0; i < t->rows; i++) f->kept[i].origin = i;
    return N2CE_OK;
}

static n2ce_status replace(filler *f) {
    const n2_table *t = f->t;
    const size_t rows = block_rows(t);
    N2_TRY(begin_replacing(f));
    size_t origin = t->rows;
    for (size_t n = 1; n > 0;) {
        N2_TRY(n2_reader_next(f->r, f->block, rows, &n));
        for (size_t i = 0; i < n; i++) offer(f, f->block + i * t->cols, origin++);
    }
    return N2CE_OK;
}

static int by_origin(const void *a, const void *b) {
    const kept *x = a, *y = b;
    return (x->origin > y->origin) - (x->origin < y->origin);
}

/* Puts row kept[i].slot to place i, for all i: cycle by cycle, with one row in hand. */
static void permute(n2_table *t, kept *order, double *hand) {
    const size_t bytes = t->cols * sizeof *t->x;
    for (size_t i = 0; i < t->rows; i++) {
        if (order[i].slot == i) continue;
        memcpy(hand, t->x + i * t->cols, bytes);
        size_t to = i;
        for (size_t from; (from = order[to].slot) != i; to = from) {
            memcpy(t->x + to * t->cols, t->x + from * t->cols, bytes);
            order[to].slot = to;
        }
        memcpy(t->x + to * t->cols, hand, bytes);
        order[to].slot = to;
    }
}

static void restore_order(filler *f) {
    for (size_t i = 0; i < f->t->rows; i++) f->kept[i].slot = i;
    qsort(f->kept, f->t->rows, sizeof *f->kept, by_origin);
    permute(f->t, f->kept, f->block);
}

static n2ce_status note_origins(filler *f) {
    f->t->origin = n2_alloc(f->t->ctx, f->t->rows, sizeof *f->t->origin);
    if (!f->t->origin) return N2CE_ENOMEM;
    for (size_t i = 0; i < f->t->rows; i++) f->t->origin[i] = f->kept[i].origin;
    return N2CE_OK;
}

/* ---- by several ranks ---- */

/* bits % n < limit. Where n is not small a quotient of doubles is off by less than one. */
static bool is_rest_below(uint64_t bits, uint64_t n, uint64_t limit) {
    enum { SMALL = 1 << 14 };
    if (n < SMALL) return bits % n < limit;
    const double share = (double)(int64_t)(bits >> 11) * 2048 / (double)(int64_t)n;
    int64_t rest = (int64_t)(bits - (uint64_t)(int64_t)share * n);
    if (rest < 0) rest += (int64_t)n;
    if (rest >= (int64_t)n) rest -= (int64_t)n;
    return (uint64_t)rest < limit;
}

/* As slot_of has it, for many rows at once. */
static size_t choose(void *user, uint64_t first, size_t n, uint64_t *wanted) {
    enum { SOME = 256 };
    const filler *f = user;
    const uint64_t end = first + n;
    uint64_t bits[SOME];
    size_t found = 0;
    for (; first < end && first < f->limit; first++) wanted[found++] = first;
    for (; first < end; first += SOME) {
        const size_t some = end - first < SOME ? (size_t)(end - first) : SOME;
        n2_random_bits((n2_stream){f->seed, STREAM, 0}, first, some, bits);
        for (size_t i = 0; i < some; i++)
            if (is_rest_below(bits[i], first + i + 1, f->limit)) wanted[found++] = first + i;
    }
    return found;
}

static n2ce_status take(void *user, const double *row, size_t origin) {
    filler *f = user;
    n2_table *t = f->t;
    if (origin >= f->limit) {
        if (!f->kept) N2_TRY(begin_replacing(f));
        offer(f, row, origin);
        return N2CE_OK;
    }
    if (t->rows == f->room) N2_TRY(grow(f));
    memcpy(t->x + t->rows++ * t->cols, row, t->cols * sizeof *row);
    return N2CE_OK;
}

static n2ce_status fill_together(filler *f, const char *path, const n2_table_options *o,
                                 bool *done) {
    const n2_row_taker taker = {f, choose, take};
    n2_table *t = f->t;
    *done = false;
    if (!path) return N2CE_OK;
    N2_TRY(n2_table_read_together(f->r, path, o, &taker, &t->seen, &t->dropped, done));
    if (*done) return N2CE_OK;
    n2_free(t->ctx, f->kept);
    n2_free(t->ctx, f->block);
    f->kept = NULL;
    f->block = NULL;
    t->rows = 0;
    return N2CE_OK;
}

static n2ce_status fill_alone(filler *f) {
    bool ended = false;
    N2_TRY(fill(f, &ended));
    if (!ended) N2_TRY(replace(f));
    f->t->seen = n2_reader_seen(f->r);
    f->t->dropped = n2_reader_dropped(f->r);
    return N2CE_OK;
}

/* ---- the whole ---- */

static void fill_gaps(filler *f, size_t c) {
    const n2_table *t = f->t;
    size_t code;
    if (!n2_reader_gap_level(f->r, c, &code)) return;
    for (size_t i = 0; i < t->rows; i++)
        if (isnan(t->x[i * t->cols + c])) t->x[i * t->cols + c] = (double)code;
}

static n2ce_status fill_table(filler *f, const char *path, const n2_table_options *o) {
    bool done;
    N2_TRY(fill_together(f, path, o, &done));
    if (!done) N2_TRY(fill_alone(f));
    if (f->kept) {
        restore_order(f);
        N2_TRY(note_origins(f));
    }
    for (size_t c = 0; c < f->t->cols; c++) {
        f->t->categorical[c] = n2_reader_categorical(f->r, c); /* the rows may have told */
        fill_gaps(f, c);
    }
    return f->room > f->t->rows ? resize(f, f->t->rows) : N2CE_OK;
}

static size_t row_limit(const n2_table_options *o, size_t cols) {
    if (!o) return SIZE_MAX;
    size_t limit = o->max_bytes ? o->max_bytes / (cols * sizeof(double)) : SIZE_MAX;
    if (limit < N2_TABLE_ROWS) limit = N2_TABLE_ROWS;
    return o->max_rows > 0 ? o->max_rows : limit;
}

/* The table of all that the reader has, of the file at the path if there is one; closes the
 * reader. */
static n2ce_status read_table(n2ce_ctx *ctx, n2_reader *r, const char *path,
                              const n2_table_options *o, n2_table **out) {
    n2_table *t = *out = n2_alloc(ctx, 1, sizeof *t);
    n2ce_status status = t ? N2CE_OK : N2CE_ENOMEM;
    if (t) {
        filler f = {.t = t, .r = r, .seed = o ? o->seed : 0};
        t->ctx = ctx;
        t->cols = n2_reader_cols(r);
        t->first_cols = n2_reader_first_cols(r);
        f.limit = row_limit(o, t->cols);
        status = copy_names(t, r);
        if (status == N2CE_OK) status = fill_table(&f, path, o);
        n2_free(ctx, f.block);
        n2_free(ctx, f.kept);
    }
    n2_reader_close(r);
    if (status == N2CE_OK) return N2CE_OK;
    n2_table_free(t);
    *out = NULL;
    return status;
}

n2ce_status n2_table_read(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                          n2_table **out) {
    n2_reader *r;
    *out = NULL;
    N2_TRY(n2_reader_open(ctx, path, o, &r));
    return read_table(ctx, r, path, o, out);
}

n2ce_status n2_table_of_matrix(n2ce_ctx *ctx, const n2ce_matrix *m, const char *label,
                               const n2_table_options *o, n2_table **out) {
    n2_reader *r;
    *out = NULL;
    N2_TRY(n2_reader_of_matrix(ctx, m, label, o, &r));
    return read_table(ctx, r, NULL, o, out);
}

n2ce_status n2_table_of_matrices(n2ce_ctx *ctx, const n2ce_matrix m[2], const char *const labels[3],
                                 const n2_table_options *o, n2_table **out) {
    const size_t n = m[0].rows, first = m[0].cols, d = first + m[1].cols;
    n2_table *x = NULL, *y = NULL;
    *out = NULL;
    double *both = n2_alloc(ctx, n * d, sizeof *both);
    n2ce_status status = both ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_table_of_matrix(ctx, &m[0], labels[0], NULL, &x);
    if (status == N2CE_OK) status = n2_table_of_matrix(ctx, &m[1], labels[1], NULL, &y);
    for (size_t i = 0; i < n && status == N2CE_OK; i++) {
        memcpy(both + i * d, x->x + i * first, first * sizeof *both);
        memcpy(both + i * d + first, y->x + i * (d - first), (d - first) * sizeof *both);
    }
    n2_table_free(x);
    n2_table_free(y);
    const n2ce_matrix joined = {both, N2CE_F64, n, d, 0, 0};
    if (status == N2CE_OK) status = n2_table_of_matrix(ctx, &joined, labels[2], o, out);
    n2_free(ctx, both);
    return status;
}
