/* How updates divide their tensors up, and which packed weights they keep up to date. Weights are
 * packed at the beginning of a run; what changes the weights later in the run changes the packed
 * ones too, so that they are right for the rest of the run, and for the next. */
#include "cuda/runtime/edit.h"
#include "make.h"

/* ---- parts ----------------------------------------------------------------- */

static uint32_t blocks_for(int64_t rows) { return (uint32_t)((rows + PACK_ROWS - 1) / PACK_ROWS); }

static bool is_vec4(const void *x, int64_t step) { return (uintptr_t)x % 16 == 0 && step % 4 == 0; }

/* Part k of an update: columns of a matrix, whose gradient lies there. */
static void set_part(const job *j, job_update *u, int k, int64_t column, int64_t width,
                     const float *gradient, int64_t step) {
    auto *part = &u->part[k];
    part->column = (uint32_t)column;
    part->width = (uint32_t)width;
    part->gradient = gradient;
    part->step = (uint32_t)step;
    part->vec4 = is_vec4(gradient, step) && is_vec4(j->out, u->stride) &&
                 is_vec4(j->more[0], column) && is_vec4(j->more[1], width) && j->n % 4 == 0;
}

static void divide_up(job *j, int64_t rows, int64_t stride, int parts) {
    j->update.n_parts = parts;
    j->update.stride = (uint32_t)stride;
    j->update.blocks = blocks_for(rows);
    j->n_blocks = j->update.blocks * (uint32_t)(parts ? parts : 1);
}

/* An update whose gradient is two matrices side by side. */
static void update_from_both(n2_queue *q, size_t i) {
    noted *n = &q->list[i];
    if (n->j.kind != JOB_ADAM) return;
    const size_t k = n2_writer_of(q, i, n->j.in[0], n->j.n);
    if (k == SIZE_MAX || q->list[k].j.kind != JOB_PAD || !q->list[k].j.in[1] ||
        !n2_is_only_reader(q, k, i, n->j.in[0], n->j.n))
        return;
    const job *pad = &q->list[k].j;
    const int64_t width = pad->loops.length[0].by, rows = pad->n / width;
    const int64_t widths[2] = {pad->m, width - pad->m};
    for (int f = 0; f < 2; f++)
        if (widths[f] > MLP_WIDTH || n2_is_written_between(q, k, i, pad->in[f], rows * widths[f]))
            return;
    n2_replace_read(n, n->j.in[0], pad->in[0], rows * widths[0]);
    n2_note_read(n, pad->in[1], rows * widths[1]);
    n->j.in[0] = pad->in[0];
    divide_up(&n->j, rows, width, 2);
    for (int f = 0; f < 2; f++)
        set_part(&n->j, &n->j.update, f, f ? widths[0] : 0, widths[f], pad->in[f], widths[f]);
    n2_drop(&q->list[k]);
}

void n2_queue_update_from_both(n2_queue *q) {
    for (size_t i = 0; i < q->n; i++) update_from_both(q, i);
}

/* ---- packed weights ---------------------------------------------------------------- */

/* An update and the packed forms of its tensor. */
typedef struct keeping {
    n2_queue *q;
    size_t update, packed[UPDATE_PARTS];
    int n;
    size_t again; /* the first job after it that packs the tensor; q->n: none */
} keeping;

static const job *job_at(const n2_queue *q, size_t i) { return &q->list[i].j; }

/* The only job of the run that writes any of these numbers; SIZE_MAX: none; q->n: several do. */
static size_t only_writer(const n2_queue *q, const float *x, int64_t n) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < q->n; i++) {
        if (!n2_noted_touches(&q->list[i], x, n, false)) continue;
        if (found != SIZE_MAX) return q->n;
        found = i;
    }
    return found;
}

static bool is_same_matrix(const job *a, const job *b) {
    return a->in[0] == b->in[0] && a->m == b->m && a->k == b->k &&
           a->loops.step[0][0] == b->loops.step[0][0];
}

/* Whether packing b is of the same numbers, into memory that a fills too. */
static bool is_again(const job *a, const job *b) {
    if (!is_same_matrix(a, b)) return false;
    return (!b->out || (b->out == a->out && b->in[1] == a->in[1])) &&
           (!b->more[0] || (b->more[0] == a->more[0] && b->in[2] == a->in[2]));
}

/* Whether these packed numbers are written by the job that packs them, before the update, and
 * later, if at all, by jobs that pack them again. */
static bool is_made_alone(const keeping *s, size_t packed, const float *x) {
    const n2_queue *q = s->q;
    for (size_t i = 0; x && i < q->n; i++) {
        if (!n2_noted_touches(&q->list[i], x, packed_floats(q->strict), false) || i == packed)
            continue;
        if (i < s->update || job_at(q, i)->kind != JOB_PACK_WEIGHTS ||
            !is_again(job_at(q, packed), job_at(q, i)))
            return false;
    }
    return true;
}

/* The slot behind packed weights for a bias that an update changes. */
static float *behind(const n2_queue *q, float *packed) {
    return packed + (q->strict ? 2 : 1) * PACKED_FLOATS;
}

/* Whether the bias of packed weights is changed by nobody, or by an update that could note it
 * there. */
static bool can_keep_bias(const keeping *s, const float *bias, int64_t n) {
    const n2_queue *q = s->q;
    const size_t i = bias ? only_writer(q, bias, n) : SIZE_MAX;
    if (i == SIZE_MAX) return true;
    if (i >= s->again) return false;
    const job *j = job_at(q, i);
    return j->kind == JOB_ADAM && j->out == bias && j->n == n && !j->more[2] &&
           j->update.n_parts == 0;
}

/* Whether packed weights are those of a part, or parts may still be chosen. */
static bool is_of_part(const job *update, int64_t column, int64_t width) {
    bool found = update->update.n_parts == 0;
    for (int k = 0; k < update->update.n_parts; k++)
        found |= update->update.part[k].column == column && update->update.part[k].width == width;
    return found;
}

static bool can_keep(const keeping *s, size_t packed) {
    const job *j = job_at(s->q, packed), *update = job_at(s->q, s->update);
    const int64_t stride = j->loops.step[0][0], column = j->in[0] - update->out;
    return packed < s->update && column + j->k <= stride && j->m * stride == update->n &&
           is_of_part(update, column, j->k) && is_made_alone(s, packed, j->out) &&
           is_made_alone(s, packed, j->more[0]) && can_keep_bias(s, j->in[1], j->m) &&
           can_keep_bias(s, j->in[2], j->k);
}

/* Whether a job packs what the update changes. */
static bool packs_weights_of(const n2_queue *q, size_t i, size_t update) {
    const job *j = job_at(q, i), *u = job_at(q, update);
    return j->kind == JOB_PACK_WEIGHTS && j->n_blocks > 0 && j->in[0] >= u->out &&
           j->in[0] < u->out + u->n;
}

/* What only packing b is wanted for, made after the update: that as it lies, or transposed. Job a
 * can make it before, if nobody minds it there as soon. */
static void make_before(n2_queue *q, size_t a, size_t b, int t) {
    noted *packed = &q->list[a];
    float **to = t ? &packed->j.more[0] : &packed->j.out;
    float *from = t ? job_at(q, b)->more[0] : job_at(q, b)->out;
    const float *bias = job_at(q, b)->in[1 + t];
    if (*to || !from) return;
    for (size_t i = 0; i < b; i++)
        if (n2_noted_touches(&q->list[i], from, packed_floats(q->strict), true)) return;
    *to = from;
    packed->j.in[1 + t] = bias;
    n2_note_write(packed, from, packed_floats(q->strict));
    n2_note_read(packed, bias, bias ? (t ? packed->j.k : packed->j.m) : 0);
}

/* Packed forms of the tensor that are made before the update are those that are wanted after it,
 * too. */
static void complete_packed(n2_queue *q, size_t update) {
    for (size_t b = update + 1; b < q->n; b++)
        for (size_t a = 0; a < update && packs_weights_of(q, b, update); a++) {
            if (!packs_weights_of(q, a, update) || !is_same_matrix(job_at(q, a), job_at(q, b)))
                continue;
            for (int t = 0; t < 2; t++) make_before(q, a, b, t);
        }
}

/* All packed forms of its tensor, which must cover its columns; packed again they may be after it
 * only. */
static bool find_packed(keeping *s) {
    const n2_queue *q = s->q;
    const job *update = job_at(q, s->update);
    int64_t columns = 0;
    if (only_writer(q, update->out, update->n) != s->update) return false;
    for (s->again = s->update + 1; s->again < q->n; s->again++)
        if (packs_weights_of(q, s->again, s->update)) break;
    for (size_t i = 0; i < q->n; i++) {
        if (!packs_weights_of(q, i, s->update)) continue;
        bool again = false;
        for (int k = 0; k < s->n; k++) again |= is_again(job_at(q, s->packed[k]), job_at(q, i));
        if (again) continue;
        if (s->n == UPDATE_PARTS || !can_keep(s, i)) return false;
        s->packed[s->n++] = i;
        columns += job_at(q, i)->k;
    }
    return s->n > 0 && columns == job_at(q, s->packed[0])->loops.step[0][0];
}

/* The bias of packed weights `to` is put there too by the update that changes it. */
static void keep_bias(n2_queue *q, const float *bias, int64_t n, float *to) {
    const size_t i = bias ? only_writer(q, bias, n) : SIZE_MAX;
    if (i == SIZE_MAX) return;
    q->list[i].j.more[2] = behind(q, to);
    n2_note_write(&q->list[i], behind(q, to), n);
}

static void keep_packed_part(keeping *s, int k) {
    n2_queue *q = s->q;
    noted *update = &q->list[s->update];
    job *j = &q->list[s->packed[k]].j;
    int at = 0;
    while (update->j.update.part[at].column != (uint32_t)(j->in[0] - update->j.out)) at++;
    auto *part = &update->j.update.part[at];
    part->packed = j->out;
    part->transposed = j->more[0];
    j->lasts = j->grows = true;
    for (int t = 0; t < 2; t++) {
        float *packed = t ? j->more[0] : j->out;
        if (!packed) continue;
        n2_note_write(update, packed, behind(q, packed) - packed);
        n2_note_read(update, behind(q, packed) + MLP_WIDTH, 1);
        keep_bias(q, j->in[1 + t], t ? j->k : j->m, packed);
    }
}

/* A part for each packed form, if the gradient is one matrix. */
static void choose_parts(keeping *s) {
    job *update = &s->q->list[s->update].j;
    const int64_t stride = job_at(s->q, s->packed[0])->loops.step[0][0];
    if (update->update.n_parts > 0) return;
    divide_up(update, update->n / stride, stride, s->n);
    for (int k = 0; k < s->n; k++) {
        const job *packed = job_at(s->q, s->packed[k]);
        const int64_t column = packed->in[0] - update->out;
        set_part(update, &update->update, k, column, packed->k, update->in[0] + column, stride);
    }
}

static void keep_packed(keeping *s) {
    n2_queue *q = s->q;
    for (size_t i = s->update + 1; i < q->n; i++)
        for (int k = 0; k < s->n; k++)
            if (packs_weights_of(q, i, s->update) &&
                is_again(job_at(q, s->packed[k]), job_at(q, i)))
                n2_drop(&q->list[i]);
    q->list[s->update].j.strict = q->strict;
    choose_parts(s);
    for (int k = 0; k < s->n; k++) keep_packed_part(s, k);
}

/* Whether packed weights are of numbers that nobody changes. */
static bool is_for_good(n2_queue *q, size_t i) {
    const job *j = job_at(q, i);
    const keeping s = {q, q->n, {}, 0, q->n};
    if (j->kind != JOB_PACK_WEIGHTS) return false;
    const int64_t floats = (j->m - 1) * j->loops.step[0][0] + j->k;
    return only_writer(q, j->in[0], floats) == SIZE_MAX &&
           only_writer(q, j->in[1], j->in[1] ? j->m : 0) == SIZE_MAX &&
           only_writer(q, j->in[2], j->in[2] ? j->k : 0) == SIZE_MAX &&
           is_made_alone(&s, i, j->out) && is_made_alone(&s, i, j->more[0]);
}

static void settle(n2_queue *q, size_t i, bool packed) {
    keeping s = {q, i, {}, 0, 0};
    job *j = &q->list[i].j;
    if (j->kind != JOB_ADAM) return;
    if (packed) complete_packed(q, i);
    if (packed && find_packed(&s)) keep_packed(&s);
    if (j->update.n_parts > 0) return;
    divide_up(j, (j->n + MLP_WIDTH - 1) / MLP_WIDTH, MLP_WIDTH, 0);
    set_part(j, &j->update, 0, 0, MLP_WIDTH, j->in[0], MLP_WIDTH);
}

void n2_queue_settle_updates(n2_queue *q, bool packed) {
    for (size_t i = 0; i < q->n; i++) {
        settle(q, i, packed);
        if (packed && is_for_good(q, i)) q->list[i].j.lasts = true;
    }
}

int64_t n2_update_blocks(int64_t n) {
    return (n + PACK_ROWS * MLP_WIDTH - 1) / (PACK_ROWS * MLP_WIDTH);
}

bool n2_update_reads_ahead(const job *update, const noted *n) {
    bool changes = n2_noted_touches(n, update->in[1], 1, false) ||
                   n2_noted_touches(n, update->in[3], 1, false) ||
                   n2_noted_touches(n, update->out, update->n, false) ||
                   n2_noted_touches(n, update->more[0], update->n, false) ||
                   n2_noted_touches(n, update->more[1], update->n, false);
    for (const auto &part : update->update.part) {
        const float *packed = part.packed ? part.packed : part.transposed;
        changes |= packed && n2_noted_touches(n, packed, packed_floats(update->strict), false);
    }
    return changes;
}
