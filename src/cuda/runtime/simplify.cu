/* Fewer jobs for the same numbers, before they are put into launches: what a GPU waits for is the
 * length of the longest chain of launches, and norms of gradients are the longest there are. */
#include "cuda/fused_mlp/fused_mlp.h"
#include "edit.h"

#include <string.h>

static bool reads(const noted *at, const float *x, int64_t n) {
    for (int s = 0; s < at->n_spans; s++) {
        const span *here = &at->spans[s];
        if (!here->written && here->begin < (uintptr_t)(x + n) && here->end > (uintptr_t)x)
            return true;
    }
    return false;
}

/* ---- gates --------------------------------------------------------------- */

static bool is_gate(const job *j) {
    return j->kind == JOB_BINARY && j->op == N2_OP_lrelu_grad && !j->add && j->loops.rank == 1 &&
           j->loops.step[0][0] == 1 && j->loops.step[1][0] == 1;
}

/* The product that makes x, for job i alone, and could have a gate. */
static size_t gateless_product(n2_queue *q, size_t i, const float *x, int64_t n) {
    const size_t k = n2_writer_of(q, i, x, n);
    if (k == SIZE_MAX) return SIZE_MAX;
    const job *j = &q->list[k].j;
    const bool plain = j->kind == JOB_MATMUL && j->out == x && j->product.slices == 1 && !j->add &&
                       !j->gate && !j->in[3] && !j->more[0];
    return plain && n2_is_only_reader(q, k, i, x, n) ? k : SIZE_MAX;
}

/* A gate lets a number through or a part of it, so that of a sum of products is that of each: they
 * have it, and it is no job of its own. */
static void gate_products(n2_queue *q, size_t i) {
    enum { MOST = 4 };
    const job *j = &q->list[i].j;
    size_t product[MOST] = {}, reader = i;
    int n = 0;
    if (!is_gate(j)) return;
    for (const float *x = j->in[1]; x; x = q->list[reader].j.addend) {
        if (n == MOST) return;
        reader = product[n] = gateless_product(q, reader, x, j->n);
        if (product[n++] == SIZE_MAX) return;
    }
    if (n2_is_written_between(q, reader, i, j->in[0], j->n)) return;
    for (size_t k = product[0]; k < i; k++)
        if (n2_noted_touches(&q->list[k], j->out, j->n, true)) return;
    for (int k = 0; k < n; k++) {
        noted *at = &q->list[product[k]];
        at->j.gate = j->in[0];
        at->j.slope = (float)j->f[0];
        n2_note_read(at, j->in[0], j->n);
    }
    n2_redirect(q, product[0], product[0], j->in[1], j->out, j->n);
    q->list[product[0]].kept = q->list[i].kept;
    n2_drop(&q->list[i]);
}

/* ---- columns side by side ------------------------------------------------ */

/* The job before i that pads something to the n numbers at x for i alone; SIZE_MAX: none. */
static size_t padder_of(n2_queue *q, size_t i, const float *x, int64_t n) {
    const size_t k = n2_writer_of(q, i, x, n);
    if (k == SIZE_MAX || q->list[k].j.kind != JOB_PAD || q->list[k].j.in[1] ||
        !n2_is_only_reader(q, k, i, x, n))
        return SIZE_MAX;
    const job *j = &q->list[k].j;
    const int64_t numbers = n / j->loops.step[1][0] * j->m;
    return n2_is_written_between(q, k, i, j->in[0], numbers) ? SIZE_MAX : k;
}

/* The sum of two matrices with zeros where the other has none: one job. */
static void pad_both(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (!n2_is_sum_of_two(&n->j)) return;
    size_t a = padder_of(q, i, n->j.in[0], n->j.n), b = padder_of(q, i, n->j.in[1], n->j.n);
    if (a == SIZE_MAX || b == SIZE_MAX || a == b) return;
    if (q->list[a].j.k > q->list[b].j.k) {
        const size_t swap = a;
        a = b;
        b = swap;
    }
    job j = q->list[a].j;
    const job *beside = &q->list[b].j;
    const int64_t width = j.loops.step[1][0], rows = j.n / width;
    if (beside->loops.step[1][0] != width || j.k != 0 || beside->k != j.m ||
        j.m + beside->m != width)
        return;
    j.in[1] = beside->in[0];
    j.out = n->j.out;
    j.kept = n->j.kept;
    j.vec4 &= beside->vec4 && (uintptr_t)j.out % 16 == 0;
    n2_drop(&q->list[a]);
    n2_drop(&q->list[b]);
    n2_forget_spans(n);
    n->j = j;
    n2_note_read(n, j.in[0], rows * j.m);
    n2_note_read(n, j.in[1], rows * (width - j.m));
    n2_note_write(n, j.out, j.n);
}

/* What is copied for nobody: weights are packed from the original. */
static void drop_move(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (n->j.kind == JOB_MOVE && n->j.loops.step[1][0] == n->j.m &&
        !n2_is_read_later(q, i, n->j.out, n->j.n))
        n2_drop(n);
}

/* Rows that are gathered only to be copied beside others are copied from their table. */
static void move_from_table(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    const float *x = n->j.in[0];
    if (n->j.kind != JOB_MOVE || n->j.n_blocks == 0 || n->j.loops.step[0][0] != n->j.m) return;
    const size_t k = n2_writer_of(q, i, x, n->j.n);
    if (k == SIZE_MAX || q->list[k].j.kind != JOB_GATHER || q->list[k].j.m != n->j.m ||
        !n2_is_only_reader(q, k, i, x, n->j.n))
        return;
    const job *gather = &q->list[k].j;
    const float *table = gather->in[0], *index = gather->in[1];
    const int64_t rows = n->j.n / n->j.m;
    if (n2_is_written_between(q, k, i + 1, table, gather->k * gather->m) ||
        n2_is_written_between(q, k, i + 1, index, rows))
        return;
    n2_replace_read(n, x, table, gather->k * gather->m);
    n2_note_read(n, index, rows);
    n->j.in[0] = table;
    n->j.index = index;
    n->j.k = gather->k;
    n->j.vec4 &= (uintptr_t)table % 16 == 0;
    n2_drop(&q->list[k]);
}

/* Rows that a job moves. */
static int64_t rows_of(const job *j) { return j->n / j->m; }

/* What it reads, or writes: the first such span. */
static span *span_of(noted *n, bool written) {
    int s = 0;
    while (n->spans[s].written != written) s++;
    return &n->spans[s];
}

/* Whether a job does nothing but move columns to the matrix that `copy` copies. */
static bool moves_columns(const noted *at, const job *copy) {
    const job *j = &at->j;
    const int64_t column = j->out - copy->in[0];
    return j->kind == JOB_MOVE && rows_of(j) == rows_of(copy) && j->loops.step[1][0] == copy->m &&
           column >= 0 && column + j->m <= copy->m && !reads(at, copy->in[0], copy->n);
}

/* The jobs that move columns to the matrix that job i copies and nobody else reads, last first;
 * 0: it is made in another way, too. */
enum { MOST_MOVES = 32 };
static int moves_of(n2_queue *q, size_t i, size_t *list) {
    const job *copy = &q->list[i].j;
    int64_t columns = 0;
    int n = 0;
    for (size_t k = i; k-- > 0 && columns < copy->m;) {
        const noted *at = &q->list[k];
        if (!n2_noted_touches(at, copy->in[0], copy->n, true)) continue;
        if (n == MOST_MOVES || !moves_columns(at, copy)) return 0;
        const int64_t floats = (rows_of(copy) - 1) * copy->m + at->j.m;
        if (!n2_is_only_reader(q, k, i, at->j.out, floats)) return 0;
        columns += at->j.m;
        list[n++] = k;
    }
    return columns == copy->m ? n : 0;
}

/* Whether what job i writes could be there when job `first` is done: until then only other columns
 * of the same matrix are written. */
static bool is_free_since(n2_queue *q, size_t first, size_t i) {
    const span *to = span_of(&q->list[i], true);
    for (size_t k = first; k < i; k++)
        for (int s = 0; s < q->list[k].n_spans; s++) {
            const span *at = &q->list[k].spans[s];
            const bool beside = at->written && n2_are_beside(at, to);
            if (at->begin < to->end && to->begin < at->end && !beside) return false;
        }
    return true;
}

/* A job that moves columns to what `copy` copies moves them to where they are copied to. */
static void move_further(noted *n, noted *copy) {
    const job *j = &copy->j;
    const span *to = span_of(copy, true);
    const int64_t column = n->j.out - j->in[0], pitch = j->loops.step[1][0];
    const rectangle there = {(const float *)to->begin, rows_of(j), pitch, to->column + column,
                             n->j.m};
    *span_of(n, true) = n2_span_of(&there, true);
    n->j.out = j->out + column;
    n->j.loops.step[1][0] = j->loops.step[1][0];
    n->j.vec4 &= (uintptr_t)n->j.out % 16 == 0 && pitch % 4 == 0;
    n->kept = copy->kept;
}

/* Matrices side by side that are copied to be beside another are put there at once. */
static void move_at_once(n2_queue *q, size_t i) {
    size_t list[MOST_MOVES];
    noted *copy = &q->list[i];
    if (copy->j.kind != JOB_MOVE || copy->j.n_blocks == 0 || copy->j.index ||
        copy->j.loops.step[0][0] != copy->j.m)
        return;
    const int n = moves_of(q, i, list);
    if (n == 0 || !is_free_since(q, list[n - 1], i)) return;
    for (int k = 0; k < n; k++) move_further(&q->list[list[k]], copy);
    n2_drop(copy);
}

/* Whether a job reduces each of the rows that lie on end at in[0]. */
static bool reduces_rows(const job *j) {
    return j->kind == JOB_REDUCE && j->loops.rank == 1 && j->inner.rank == 1 &&
           j->inner.step[0][0] == 1 && j->inner.length[0].by == j->k && j->loops.step[0][0] == j->k;
}

/* Columns that are copied only to be reduced are read where they are. */
static void reduce_columns(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (!reduces_rows(&n->j)) return;
    const int64_t numbers = n->j.n * n->j.k;
    const size_t k = n2_writer_of(q, i, n->j.in[0], numbers);
    if (k == SIZE_MAX || q->list[k].j.kind != JOB_MOVE || q->list[k].j.index ||
        q->list[k].j.m != n->j.k || !n2_is_only_reader(q, k, i, n->j.in[0], numbers))
        return;
    const job *move = &q->list[k].j;
    const int64_t step = move->loops.step[0][0], floats = (n->j.n - 1) * step + move->m;
    if (floats > UINT32_MAX || n2_is_written_between(q, k, i + 1, move->in[0], floats)) return;
    n->j.in[0] = move->in[0];
    n->j.loops.step[0][0] = move->loops.step[0][0];
    n2_forget_spans(n);
    n->spans[n->n_spans++] = *span_of(&q->list[k], false);
    n2_note_write(n, n->j.out, n->j.n);
    n2_drop(&q->list[k]);
}

/* ---- tiles side by side -------------------------------------------------- */

/* Whether the numbers at x, the first of n, are read by jobs that would find them elsewhere too. */
static bool can_move(const noted *at, const float *x, int64_t n) {
    const int kind = at->j.kind;
    if (kind != JOB_GATHER && kind != JOB_SCATTER && kind != JOB_UNARY && kind != JOB_BINARY &&
        kind != JOB_MATMUL)
        return false;
    for (int s = 0; s < at->n_spans; s++) {
        const span *here = &at->spans[s];
        if (here->begin >= (uintptr_t)(x + n) || here->end <= (uintptr_t)x) continue;
        if (here->written || here->begin != (uintptr_t)x || here->end > (uintptr_t)(x + n))
            return false;
    }
    return true;
}

/* The job after i that makes x anew, of nothing that is there; SIZE_MAX: what i made cannot lie
 * elsewhere until then. */
static size_t next_life(const n2_queue *q, size_t i, const float *x, int64_t n) {
    size_t k = i + 1;
    for (; k < q->n && !(q->list[k].j.out == x && !q->list[k].j.add); k++)
        if (n2_noted_touches(&q->list[k], x, n, true) && !can_move(&q->list[k], x, n))
            return SIZE_MAX;
    return k < q->n && reads(&q->list[k], x, n) ? SIZE_MAX : k;
}

static void move_numbers(noted *at, const float *from, float *to) {
    job *j = &at->j;
    if (j->out == from) j->out = to;
    if (j->gate == from) j->gate = to;
    if (j->addend == from) j->addend = to;
    for (int k = 0; k < 4; k++)
        if (j->in[k] == from) j->in[k] = to;
    for (int s = 0; s < at->n_spans; s++)
        if (at->spans[s].begin == (uintptr_t)from) {
            at->spans[s].end += (uintptr_t)to - (uintptr_t)from;
            at->spans[s].begin = (uintptr_t)to;
        }
}

/* The job before i that made x in the same way; SIZE_MAX: none. */
static size_t life_before(const n2_queue *q, size_t i, const float *x) {
    const int kind = q->list[i].j.kind;
    while (i-- > 0)
        if (q->list[i].j.kind == kind && q->list[i].j.out == x) return i;
    return SIZE_MAX;
}

static bool is_read_by(const noted *n, const float *x) {
    for (int k = 0; k < 4; k++)
        if (n->j.in[k] == x) return true;
    return false;
}

/* A tile's row numbers and what its fused MLPs begin with are read until its end. Those of each
 * second tile lie elsewhere, so that the next tile's are there when its turn comes. */
static void alternate(n2_queue *q, size_t i) {
    enum { MOST = 1 << 19 };
    const job *j = &q->list[i].j;
    const bool rows = j->kind == JOB_GATHER && j->m == 1, sums = j->kind == JOB_BINARY;
    float *x = j->out;
    if (!(rows || sums) || j->n > MOST || j->add || q->list[i].kept || is_read_by(&q->list[i], x))
        return;
    const size_t before = life_before(q, i, x), end = next_life(q, i, x, j->n);
    if (before == SIZE_MAX || end == SIZE_MAX || q->list[before].j.n < j->n) return;
    float *y = n2_queue_scratch(q, (char *)x + 1, q->list[before].j.n);
    for (size_t k = before + 1; k < i; k++)
        if (q->list[k].j.out == y) return; /* there is the tile before */
    for (size_t k = i; y && k < end; k++) move_numbers(&q->list[k], x, y);
}

/* ---- all rows of a table --------------------------------------------------- */

/* Whether a gather's index are the numbers of all rows of the table, in their order. */
static bool copies_table(const n2_queue *q, size_t i) {
    const job *j = &q->list[i].j;
    if (j->kind != JOB_GATHER || j->add || j->n != j->k * j->m) return false;
    const size_t k = n2_writer_of(q, i, j->in[1], j->k);
    const job *rows = k == SIZE_MAX ? NULL : &q->list[k].j;
    return rows && rows->kind == JOB_ROW_INDEX && !rows->add && rows->k == 1 &&
           rows->m >= rows->n && rows->loops.step[0][0] == 0;
}

/* Who reads what such a gather makes reads the table. */
static void read_table(n2_queue *q, size_t i) {
    const job *j = &q->list[i].j;
    const float *x = j->out;
    float *table = (float *)j->in[0];
    if (!copies_table(q, i) || q->list[i].kept || (uintptr_t)table % 16 != 0) return;
    const size_t end = next_life(q, i, x, j->n);
    if (end == SIZE_MAX) return;
    size_t last = i;
    for (size_t k = i + 1; k < end; k++)
        if (reads(&q->list[k], x, j->n)) last = k;
    if (n2_is_written_between(q, i, last + 1, table, j->n)) return;
    for (size_t k = i + 1; k <= last; k++) move_numbers(&q->list[k], x, table);
    n2_drop(&q->list[i]);
}

static void drop_index(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (n->j.kind == JOB_ROW_INDEX && !n2_is_read_later(q, i, n->j.out, n->j.n)) n2_drop(n);
}

/* ---- numbers of a table ---------------------------------------------------- */

/* The operand of a job that has these n numbers, each for all columns of a row; -1: none, or both
 * have. */
static int operand_by_rows(const job *j, const float *x, int64_t n) {
    const job_loops *l = &j->loops;
    if (j->kind != JOB_BINARY || l->rank != 2 || l->length[1].by != n) return -1;
    const int operand = j->in[0] != x;
    const uint32_t *step = l->step[operand];
    const bool only = j->in[operand] == x && j->in[1 - operand] != x;
    return only && step[0] == 0 && step[1] == 1 ? operand : -1;
}

/* Whether job k could look up what job i gathers: table and index are still the same, and stay it
 * while the job is at work. */
static bool can_look_up(const n2_queue *q, size_t i, size_t k) {
    const job *gather = &q->list[i].j, *j = &q->list[k].j;
    return operand_by_rows(j, gather->out, gather->n) >= 0 && !j->looks_up &&
           !n2_is_written_between(q, i, k + 1, gather->in[0], gather->k) &&
           !n2_is_written_between(q, i, k + 1, gather->in[1], gather->n);
}

/* Single numbers of a table that are gathered to be spread over the columns of rows: whoever wants
 * them looks them up, and need not wait for a launch that gathers them. */
static void look_up(n2_queue *q, size_t i) {
    const job gather = q->list[i].j;
    const float *x = gather.out;
    if (gather.kind != JOB_GATHER || gather.m != 1 || gather.add || q->list[i].kept) return;
    const size_t end = next_life(q, i, x, gather.n);
    if (end == SIZE_MAX) return;
    for (size_t k = i + 1; k < end; k++)
        if (reads(&q->list[k], x, gather.n) && !can_look_up(q, i, k)) return;
    for (size_t k = i + 1; k < end; k++) {
        noted *n = &q->list[k];
        if (!reads(n, x, gather.n)) continue;
        const int operand = operand_by_rows(&n->j, x, gather.n);
        n2_replace_read(n, x, gather.in[0], gather.k);
        n2_note_read(n, gather.in[1], gather.n);
        n->j.in[operand] = gather.in[0];
        n->j.index = gather.in[1];
        n->j.k = gather.k;
        n->j.looks_up = (uint8_t)(1 << operand);
    }
    n2_drop(&q->list[i]);
}

/* ---- one table of two ------------------------------------------------------ */

/* The scatter that makes all of x, in one slice, for job i alone; SIZE_MAX: none. */
static size_t whole_scatter(n2_queue *q, size_t i, const float *x, int64_t n) {
    const size_t k = n2_writer_of(q, i, x, n);
    if (k == SIZE_MAX) return SIZE_MAX;
    const job *j = &q->list[k].j;
    const bool whole = j->kind == JOB_SCATTER && !j->add && j->n <= j->loops.length[0].by;
    return whole && !j->in[2] && n2_is_only_reader(q, k, i, x, n) ? k : SIZE_MAX;
}

/* The scatter, of as many slices as it likes, with which y begins, and how y becomes a sum; of
 * several tiles that of the first. SIZE_MAX: none. */
static size_t first_scatter(n2_queue *q, size_t sum, const float *y, merger *m) {
    const int64_t n = q->list[sum].j.n;
    const size_t last = n2_writer_of(q, sum, y, n);
    if (last == SIZE_MAX || !n2_is_only_reader(q, last, sum, y, n) ||
        !n2_find_merger(q, sum, last, y, m))
        return SIZE_MAX;
    const job *first = &q->list[m->first].j;
    const bool slices = first->kind == JOB_SUM_COLUMNS || first->kind == JOB_SUM_SLICES;
    const size_t k = slices ? n2_maker_of_slices(q, m->first, first->in[0]) : m->first;
    return k != SIZE_MAX && q->list[k].j.kind == JOB_SCATTER ? k : SIZE_MAX;
}

/* The sum of two tables that are scattered to, x and y: the rows of x go to y's last slice. */
static bool scatter_both(n2_queue *q, size_t i, const float *x, const float *y) {
    const int64_t n = q->list[i].j.n;
    merger m;
    const size_t a = whole_scatter(q, i, x, n), b = first_scatter(q, i, y, &m);
    if (a == SIZE_MAX || b == SIZE_MAX || a >= b) return false;
    const job *from = &q->list[a].j;
    noted *to = &q->list[b];
    if (to->j.in[2] || from->k != to->j.k || from->m != to->j.m ||
        n2_is_written_between(q, a, b, from->in[0], from->n * from->m) ||
        n2_is_written_between(q, a, b, from->in[1], from->n))
        return false;
    to->j.in[2] = from->in[0];
    to->j.in[3] = from->in[1];
    to->j.loops.length[1].by = (uint32_t)from->n;
    n2_note_read(to, from->in[0], from->n * from->m);
    n2_note_read(to, from->in[1], from->n);
    n2_drop(&q->list[a]);
    n2_apply_merger(q, &m);
    return true;
}

/* A table that is used twice has two gradients, which are added. */
static void sum_tables(n2_queue *q, size_t i) {
    const job *j = &q->list[i].j;
    if (!n2_is_sum_of_two(j)) return;
    const float *x = j->in[0], *y = j->in[1];
    if (x != y && !scatter_both(q, i, x, y)) scatter_both(q, i, y, x);
}

/* ---- sums of squares ----------------------------------------------------- */

static bool is_square(const job *j) {
    return j->kind == JOB_BINARY && j->op == N2_OP_mul && j->in[0] == j->in[1] &&
           j->loops.rank == 1 && j->loops.step[0][0] == 1 && j->loops.step[1][0] == 1;
}

/* A sum over all of its input. */
static bool is_total(const job *j) {
    if (j->kind == JOB_SUM_CHUNKS) return true;
    return j->kind == JOB_REDUCE && j->op == N2_OP_sum && j->n == 1 && j->inner.rank == 1 &&
           j->inner.step[0][0] == 1;
}

static void as_chunks(job *j) {
    if (j->kind != JOB_REDUCE) return;
    j->kind = JOB_SUM_CHUNKS;
    j->n = j->k;
    j->k = 1;
}

static int64_t numbers_of(const job *j) {
    const int64_t runs = j->kind == JOB_SUM_CHUNKS ? (int64_t)j->n_blocks / j->k : 1;
    return j->kind == JOB_SUM_CHUNKS ? runs * j->n : j->k;
}

/* The product of a number with itself is taken where it is added up. */
static void sum_squares(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (!is_total(&n->j) || n->j.squares) return;
    const float *x = n->j.in[0];
    const int64_t numbers = numbers_of(&n->j);
    const size_t k = n2_writer_of(q, i, x, numbers);
    if (k == SIZE_MAX || !is_square(&q->list[k].j) || !n2_is_only_reader(q, k, i, x, numbers))
        return;
    const float *from = q->list[k].j.in[0];
    if (n2_is_written_between(q, k, i, from, numbers)) return; /* it must still be there */
    as_chunks(&n->j);
    n->j.in[0] = from;
    n->j.squares = true;
    n2_replace_read(n, x, from, numbers);
    n2_drop(&q->list[k]);
}

/* The squares of two matrices side by side are those of both, which are there earlier. */
static void sum_both(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (n->j.kind != JOB_SUM_CHUNKS || !n->j.squares || n->j.n_blocks != n->j.k) return;
    const size_t k = n2_writer_of(q, i, n->j.in[0], n->j.n);
    const int64_t half = n->j.n / 2;
    if (k == SIZE_MAX || q->list[k].j.kind != JOB_PAD || !q->list[k].j.in[1]) return;
    const job *pad = &q->list[k].j;
    if (2 * pad->m != pad->loops.step[1][0] || half % JOB_CHUNK != 0) return;
    for (int f = 0; f < 2; f++)
        if (n2_is_written_between(q, k, i, pad->in[f], half)) return;
    n2_replace_read(n, n->j.in[0], pad->in[0], half);
    n2_note_read(n, pad->in[1], half);
    for (int f = 0; f < 2; f++) n->j.in[f] = pad->in[f];
    n->j.n = half;
    n->j.k = half / JOB_CHUNK;
}

/* ---- sums of sums -------------------------------------------------------- */

/* A total that ends in one number, or a list of them. */
static bool is_last_sum(const noted *n) {
    if (n->j.kind == JOB_SUM_LIST) return true;
    return is_total(&n->j) && n->j.n_blocks == 1 && !n->j.add;
}

static size_t summand_of(n2_queue *q, size_t i, const float *x) {
    const size_t k = n2_writer_of(q, i, x, 1);
    if (k == SIZE_MAX || !is_last_sum(&q->list[k]) || !n2_is_only_reader(q, k, i, x, 1))
        return SIZE_MAX;
    return k;
}

static int take_parts(const noted *from, job_part *to) {
    if (from->j.kind == JOB_SUM_LIST) {
        memcpy(to, from->parts, (size_t)from->j.k * sizeof *to);
        return (int)from->j.k;
    }
    job j = from->j;
    as_chunks(&j);
    to[0].at = j.in[0];
    to[0].n = (uint32_t)j.n;
    to[0].squares = j.squares;
    return 1;
}

static int64_t parts_of(const n2_queue *q, size_t summand) {
    const bool list = summand != SIZE_MAX && q->list[summand].j.kind == JOB_SUM_LIST;
    return list ? q->list[summand].j.k : 1;
}

/* What the total x is made of, which is then done with; x itself, if it is no total. */
static int take_summand(n2_queue *q, size_t summand, const float *x, job_part *to) {
    if (summand == SIZE_MAX) {
        to[0] = job_part{x, 1, false};
        return 1;
    }
    const int taken = take_parts(&q->list[summand], to);
    n2_free(q->ctx, q->list[summand].parts);
    q->list[summand].parts = NULL;
    n2_drop(&q->list[summand]);
    return taken;
}

/* x + y, one of them a total at least, becomes one total of everything that they are made of. */
static void sum_sums(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (n->j.kind != JOB_BINARY || n->j.op != N2_OP_add || n->j.n != 1) return;
    const size_t a = summand_of(q, i, n->j.in[0]), b = summand_of(q, i, n->j.in[1]);
    if (a == b) return;
    const int64_t parts = parts_of(q, a) + parts_of(q, b);
    if (parts > MOST_SPANS - 2) return;
    job_part *list = (job_part *)n2_alloc(q->ctx, (size_t)parts, sizeof *list);
    if (!list) return;
    const int first = take_summand(q, a, n->j.in[0], list);
    take_summand(q, b, n->j.in[1], list + first);
    n->parts = list;
    n->j.kind = JOB_SUM_LIST;
    n->j.k = parts;
    n2_forget_spans(n);
    for (int64_t k = 0; k < parts; k++) n2_note_read(n, list[k].at, list[k].n);
    n2_note_write(n, n->j.out, 1);
}

/* Parts in pieces that a warp adds up at once. */
static size_t cut_parts(const noted *n, job_part *to) {
    size_t pieces = 0;
    for (int64_t k = 0; k < n->j.k; k++)
        for (uint32_t at = 0; at < n->parts[k].n; at += JOB_PIECE, pieces++) {
            const job_part *part = &n->parts[k];
            const uint32_t left = part->n - at;
            if (to)
                to[pieces] = job_part{part->at + at, left < JOB_PIECE ? left : (uint32_t)JOB_PIECE,
                                      part->squares};
        }
    return pieces;
}

static void upload_parts(n2_queue *q, noted *n) {
    if (n->j.kind != JOB_SUM_LIST || q->status != N2CE_OK) return;
    const size_t pieces = cut_parts(n, NULL), bytes = pieces * sizeof(job_part);
    float *memory = n2_queue_scratch(q, n->j.out, (int64_t)(bytes / sizeof(float)));
    job_part *list = (job_part *)n2_alloc(q->ctx, pieces, sizeof *list);
    if (memory && list) {
        cut_parts(n, list);
        q->status = q->device->upload(q->device, q->ctx, memory, list, bytes);
        n->j.in[0] = memory;
        n->j.k = (int64_t)pieces;
    } else if (q->status == N2CE_OK) {
        q->status = N2CE_ENOMEM;
    }
    n2_free(q->ctx, list);
}

void n2_queue_upload_lists(n2_queue *q) {
    for (size_t i = 0; i < q->n; i++) upload_parts(q, &q->list[i]);
}

/* An update that reads the number of its step where it has just been assigned reads what was
 * assigned, and so need not wait: if the assignment is held back, so is the update. */
static void read_before_assigned(n2_queue *q, size_t i) {
    job *j = &q->list[i].j;
    if (j->kind != JOB_ADAM) return;
    const size_t k = n2_writer_of(q, i, j->in[3], 1);
    if (k == SIZE_MAX || q->list[k].j.kind != JOB_ASSIGN || q->list[k].j.guards > j->guards) return;
    const float *from = q->list[k].j.in[0];
    if (n2_is_written_between(q, k, i, from, 1)) return;
    n2_replace_read(&q->list[i], j->in[3], from, 1);
    j->in[3] = from;
}

void n2_queue_simplify(n2_queue *q) {
    for (size_t i = 0; i < q->n; i++) drop_move(q, i);
    for (size_t i = 0; i < q->n; i++) move_at_once(q, i);
    for (size_t i = 0; i < q->n; i++) reduce_columns(q, i);
    for (size_t i = 0; i < q->n; i++) read_table(q, i);
    for (size_t i = 0; i < q->n; i++) drop_index(q, i);
    for (size_t i = 0; i < q->n; i++) move_from_table(q, i);
    for (size_t i = 0; i < q->n; i++) alternate(q, i);
    for (size_t i = 0; i < q->n; i++) look_up(q, i);
    for (size_t i = 0; i < q->n; i++) gate_products(q, i);
    if (q->fuses_mlps) n2_fused_mlp_simplify(q);
    for (size_t i = 0; i < q->n; i++) pad_both(q, i);
    for (size_t i = 0; i < q->n; i++) sum_tables(q, i);
    for (size_t i = 0; i < q->n; i++) sum_squares(q, i);
    for (size_t i = 0; i < q->n; i++) sum_both(q, i);
    for (size_t i = 0; i < q->n; i++) sum_sums(q, i);
    for (size_t i = 0; i < q->n; i++) read_before_assigned(q, i);
    n2_queue_update_from_both(q);
    size_t left = 0;
    for (size_t i = 0; i < q->n; i++) {
        if (q->list[i].j.n_blocks == 0) continue;
        q->list[left++] = q->list[i];
    }
    q->n = left;
}
