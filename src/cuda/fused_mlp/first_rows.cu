/* Passes over a queue that let layers of a fused MLP find their rows themselves: in a table, or as
 * sums of a few rows, instead of a job that makes them first. */
#include "cuda/runtime/edit.h"
#include "make.h"

#include <string.h>

/* ---- rows of a table ----------------------------------------------------- */

/* The job that gathers x, rows of MLP_WIDTH, for job i alone, from a table that is still the
 * same; SIZE_MAX: none. */
static size_t gather_for(n2_queue *q, size_t i, const float *x, int64_t rows) {
    enum { MOST = 1 << 24 }; /* rows of the table: fused MLPs have 31 bits for its numbers */
    const int64_t floats = rows * MLP_WIDTH;
    const size_t k = n2_writer_of(q, i, x, floats);
    if (k == SIZE_MAX || q->list[k].j.kind != JOB_GATHER || !n2_is_only_reader(q, k, i, x, floats))
        return SIZE_MAX;
    const job *gather = &q->list[k].j;
    const float *table = gather->in[0], *index = gather->in[1];
    const bool fits = gather->m == MLP_WIDTH && gather->k <= MOST && (uintptr_t)table % 16 == 0;
    const bool changed = n2_is_written_between(q, k, i, table, gather->k * MLP_WIDTH) ||
                         n2_is_written_between(q, k, i, index, rows);
    return fits && !changed ? k : SIZE_MAX;
}

/* A layer that adds rows of a table, gathered for it alone, finds them in the table. */
static void add_from_table(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    const float *x = n->j.addend;
    const int64_t rows = n->j.product.m;
    if (!n2_is_mlp_layer(n) || !x || n->j.product.n != MLP_WIDTH) return;
    const size_t k = gather_for(q, i, x, rows);
    if (k == SIZE_MAX) return;
    const job *gather = &q->list[k].j;
    const float *table = gather->in[0], *index = gather->in[1];
    n2_replace_read(n, x, table, gather->k * MLP_WIDTH);
    n2_note_read(n, index, rows);
    n->j.addend = table;
    n->j.index = index;
    n->j.product.addend_rows = (int32_t)gather->k;
    n2_drop(&q->list[k]);
}

/* ---- rows that a fused MLP makes itself --------------------------------------- */

/* Whether a layer multiplies x, so many rows, as job i left it. */
static bool is_multiplied(const n2_queue *q, size_t i, const float *x, int64_t rows) {
    for (size_t k = i + 1; x && k < q->n; k++) {
        const noted *n = &q->list[k];
        if (n2_is_mlp_layer(n) && n->j.in[0] == x && n->j.in[2] && n->j.product.m == rows &&
            n->j.product.k == MLP_WIDTH)
            return true;
        if (n2_noted_touches(n, x, rows * MLP_WIDTH, false)) return false;
    }
    return false;
}

/* The LeakyReLU of n numbers x that job i makes, if it could be there as soon; SIZE_MAX: none. */
static size_t leaky_of(const n2_queue *q, size_t i, const float *x, int64_t n) {
    size_t k = i + 1;
    for (; k < q->n; k++) {
        const job *j = &q->list[k].j;
        if (j->kind == JOB_UNARY && j->op == N2_OP_lrelu && j->in[0] == x && j->n == n) break;
        if (n2_noted_touches(&q->list[k], x, n, false)) return SIZE_MAX;
    }
    if (k == q->n || q->list[k].j.f[0] > 1 || q->list[k].j.add) return SIZE_MAX;
    if (n2_noted_touches(&q->list[k], x, n, false)) return SIZE_MAX;
    for (size_t between = i + 1; between < k; between++)
        if (n2_noted_touches(&q->list[between], q->list[k].j.out, n, true)) return SIZE_MAX;
    return k;
}

/* Whether it writes what it reads, too: other blocks may not have read it yet. */
static bool writes_what_it_reads(const noted *n) {
    for (int s = 0; s < n->n_spans; s++) {
        const float *x = (const float *)n->spans[s].begin;
        if (!n->spans[s].written &&
            n2_noted_touches(n, x, (const float *)n->spans[s].end - x, false))
            return true;
    }
    return false;
}

/* Rows [rows x MLP_WIDTH] at `out`, as a layer. */
static job layer_of_rows(float *out, int64_t rows) {
    job j;
    memset(&j, 0, sizeof j);
    j.kind = JOB_FIRST_ROWS;
    j.n_blocks = 1;
    j.out = out;
    j.n = rows * MLP_WIDTH;
    j.product.m = rows;
    j.product.n = MLP_WIDTH;
    j.product.batches = j.product.slices = 1;
    j.product.tiles_n.by = 1;
    j.product.mlp_layer = true;
    return j;
}

/* Job i becomes this layer, with the LeakyReLU of it, if a fused MLP begins with one of them. */
static bool become_rows(n2_queue *q, size_t i, job *j) {
    const int64_t rows = j->product.m;
    const size_t leaky = leaky_of(q, i, j->out, j->n);
    noted made = {};
    made.kept = q->list[i].kept;
    if (leaky != SIZE_MAX) {
        j->more[0] = q->list[leaky].j.out;
        j->slope_more = (float)q->list[leaky].j.f[0];
        made.kept |= q->list[leaky].kept;
    }
    made.j = *j;
    n2_note_read(&made, j->in[0], j->product.k * MLP_WIDTH);
    n2_note_read(&made, j->in[1], rows);
    n2_note_read(&made, j->addend, (int64_t)j->product.addend_rows * MLP_WIDTH);
    n2_note_read(&made, j->index, rows);
    n2_note_write(&made, j->out, j->n);
    n2_note_write(&made, j->more[0], j->n);
    if (!is_multiplied(q, i, j->out, rows) && !is_multiplied(q, leaky, j->more[0], rows))
        return false;
    if (writes_what_it_reads(&made)) return false;
    q->list[i] = made;
    if (leaky != SIZE_MAX) n2_drop(&q->list[leaky]);
    return true;
}

/* The sum of rows of two tables, if a fused MLP of few rows begins with it, is made there. */
static void begin_with_tables(n2_queue *q, size_t i) {
    const job *sum = &q->list[i].j;
    const int64_t rows = sum->n / MLP_WIDTH;
    if (!n2_is_sum_of_two(sum) || sum->n % MLP_WIDTH != 0 || rows > n2_few_rows_most(q)) return;
    const size_t a = gather_for(q, i, sum->in[0], rows), b = gather_for(q, i, sum->in[1], rows);
    if (a == SIZE_MAX || b == SIZE_MAX || a == b) return;
    job j = layer_of_rows(sum->out, rows);
    j.in[0] = q->list[a].j.in[0];
    j.in[1] = q->list[a].j.in[1];
    j.product.k = q->list[a].j.k;
    j.addend = q->list[b].j.in[0];
    j.index = q->list[b].j.in[1];
    j.product.addend_rows = (int32_t)q->list[b].j.k;
    if (!become_rows(q, i, &j)) return;
    n2_drop(&q->list[a]);
    n2_drop(&q->list[b]);
}

/* And so is the sum of a few rows on end. */
static void begin_with_sums(n2_queue *q, size_t i) {
    const job *sum = &q->list[i].j;
    const int64_t rows = sum->n_blocks / (MLP_WIDTH / 32);
    if (sum->kind != JOB_SUM_COLUMNS || sum->add || sum->m != MLP_WIDTH || sum->k != 1 ||
        sum->n < 1 || sum->n > MOST_SUMMED || rows > n2_few_rows_most(q) ||
        (uintptr_t)sum->in[0] % 16 != 0)
        return;
    job j = layer_of_rows(sum->out, rows);
    j.in[0] = sum->in[0];
    j.product.k = rows * sum->n;
    j.m = sum->n;
    become_rows(q, i, &j);
}

void n2_fused_mlp_simplify(n2_queue *q) {
    for (size_t i = 0; i < q->n; i++) add_from_table(q, i);
    for (size_t i = 0; i < q->n; i++) begin_with_tables(q, i);
    for (size_t i = 0; i < q->n; i++) begin_with_sums(q, i);
}
