/* How updates divide their tensors up, and which images they keep up to date. An image of weights
 * is made at the beginning of a run; what changes the weights later in the run changes the image
 * too, so that it is right for the rest of the run, and for the next. */
#include "cuda/runtime/edit.h"
#include "tower.h"

/* ---- parts ----------------------------------------------------------------- */

static uint32_t blocks_for(int64_t rows) {
    return (uint32_t)((rows + IMAGE_SHARE - 1) / IMAGE_SHARE);
}

static bool is_by_fours(const void *x, int64_t step) {
    return (uintptr_t)x % 16 == 0 && step % 4 == 0;
}

/* Part k of an update: columns of a matrix, whose gradient lies there. */
static void set_part(const job *j, job_update *u, int k, int64_t column, int64_t width,
                     const float *gradient, int64_t step) {
    auto *part = &u->part[k];
    part->column = (uint32_t)column;
    part->width = (uint32_t)width;
    part->gradient = gradient;
    part->step = (uint32_t)step;
    part->fours = is_by_fours(gradient, step) && is_by_fours(j->out, u->stride) &&
                  is_by_fours(j->more[0], column) && is_by_fours(j->more[1], width) &&
                  j->n % 4 == 0;
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
        if (widths[f] > TOWER_WIDTH || n2_is_written_between(q, k, i, pad->in[f], rows * widths[f]))
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

/* ---- images ---------------------------------------------------------------- */

/* An update and the images of its tensor. */
typedef struct keeping {
    n2_queue *q;
    size_t update, image[UPDATE_PARTS];
    int n;
    size_t again; /* the first job after it that makes images of the tensor; q->n: none */
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

/* Whether image b is made of the same numbers, into places that a makes too. */
static bool is_again(const job *a, const job *b) {
    if (!is_same_matrix(a, b)) return false;
    return (!b->out || (b->out == a->out && b->in[1] == a->in[1])) &&
           (!b->more[0] || (b->more[0] == a->more[0] && b->in[2] == a->in[2]));
}

/* Whether these numbers of an image are written by its maker, before the update, and later, if at
 * all, by jobs that make it again. */
static bool is_made_alone(const keeping *s, size_t image, const float *x) {
    const n2_queue *q = s->q;
    for (size_t i = 0; x && i < q->n; i++) {
        if (!n2_noted_touches(&q->list[i], x, image_floats(q->strict), false) || i == image)
            continue;
        if (i < s->update || job_at(q, i)->kind != JOB_IMAGE ||
            !is_again(job_at(q, image), job_at(q, i)))
            return false;
    }
    return true;
}

/* The place behind an image for a bias that an update changes. */
static float *behind(const n2_queue *q, float *image) {
    return image + (q->strict ? 2 : 1) * IMAGE_FLOATS;
}

/* Whether the bias of an image is changed by nobody, or by an update that could note it there. */
static bool can_keep_bias(const keeping *s, const float *bias, int64_t n) {
    const n2_queue *q = s->q;
    const size_t i = bias ? only_writer(q, bias, n) : SIZE_MAX;
    if (i == SIZE_MAX) return true;
    if (i >= s->again) return false;
    const job *j = job_at(q, i);
    return j->kind == JOB_ADAM && j->out == bias && j->n == n && !j->more[2] &&
           j->update.n_parts == 0;
}

/* Whether an image is that of a part, or parts may still be chosen. */
static bool is_of_part(const job *update, int64_t column, int64_t width) {
    bool found = update->update.n_parts == 0;
    for (int k = 0; k < update->update.n_parts; k++)
        found |= update->update.part[k].column == column && update->update.part[k].width == width;
    return found;
}

static bool can_keep(const keeping *s, size_t image) {
    const job *j = job_at(s->q, image), *update = job_at(s->q, s->update);
    const int64_t stride = j->loops.step[0][0], column = j->in[0] - update->out;
    return image < s->update && column + j->k <= stride && j->m * stride == update->n &&
           is_of_part(update, column, j->k) && is_made_alone(s, image, j->out) &&
           is_made_alone(s, image, j->more[0]) &&
           can_keep_bias(s, j->in[1], j->m) && can_keep_bias(s, j->in[2], j->k);
}

/* Whether a job makes images of what the update changes. */
static bool is_image_of(const n2_queue *q, size_t i, size_t update) {
    const job *j = job_at(q, i), *u = job_at(q, update);
    return j->kind == JOB_IMAGE && j->n_blocks > 0 && j->in[0] >= u->out &&
           j->in[0] < u->out + u->n;
}

/* What only image b is wanted for, made after the update: that as it lies, or transposed. Job a can
 * make it before, if nobody minds it there as soon. */
static void make_before(n2_queue *q, size_t a, size_t b, int t) {
    noted *image = &q->list[a];
    float **to = t ? &image->j.more[0] : &image->j.out;
    float *from = t ? job_at(q, b)->more[0] : job_at(q, b)->out;
    const float *bias = job_at(q, b)->in[1 + t];
    if (*to || !from) return;
    for (size_t i = 0; i < b; i++)
        if (n2_noted_touches(&q->list[i], from, image_floats(q->strict), true)) return;
    *to = from;
    image->j.in[1 + t] = bias;
    n2_note_write(image, from, image_floats(q->strict));
    n2_note_read(image, bias, bias ? (t ? image->j.k : image->j.m) : 0);
}

/* Images of the tensor that are made before the update are those that are wanted after it, too. */
static void complete_images(n2_queue *q, size_t update) {
    for (size_t b = update + 1; b < q->n; b++)
        for (size_t a = 0; a < update && is_image_of(q, b, update); a++) {
            if (!is_image_of(q, a, update) || !is_same_matrix(job_at(q, a), job_at(q, b))) continue;
            for (int t = 0; t < 2; t++) make_before(q, a, b, t);
        }
}

/* All images of its tensor, which must cover its columns; made again they may be after it only. */
static bool find_images(keeping *s) {
    const n2_queue *q = s->q;
    const job *update = job_at(q, s->update);
    int64_t columns = 0;
    if (only_writer(q, update->out, update->n) != s->update) return false;
    for (s->again = s->update + 1; s->again < q->n; s->again++)
        if (is_image_of(q, s->again, s->update)) break;
    for (size_t i = 0; i < q->n; i++) {
        if (!is_image_of(q, i, s->update)) continue;
        bool again = false;
        for (int k = 0; k < s->n; k++) again |= is_again(job_at(q, s->image[k]), job_at(q, i));
        if (again) continue;
        if (s->n == UPDATE_PARTS || !can_keep(s, i)) return false;
        s->image[s->n++] = i;
        columns += job_at(q, i)->k;
    }
    return s->n > 0 && columns == job_at(q, s->image[0])->loops.step[0][0];
}

/* The bias of image `to` is put there too by the update that changes it. */
static void keep_bias(n2_queue *q, const float *bias, int64_t n, float *to) {
    const size_t i = bias ? only_writer(q, bias, n) : SIZE_MAX;
    if (i == SIZE_MAX) return;
    q->list[i].j.more[2] = behind(q, to);
    n2_note_write(&q->list[i], behind(q, to), n);
}

static void keep_image(keeping *s, int k) {
    n2_queue *q = s->q;
    noted *update = &q->list[s->update];
    job *j = &q->list[s->image[k]].j;
    int at = 0;
    while (update->j.update.part[at].column != (uint32_t)(j->in[0] - update->j.out)) at++;
    auto *part = &update->j.update.part[at];
    part->image = j->out;
    part->transposed = j->more[0];
    j->lasts = j->grows = true;
    for (int t = 0; t < 2; t++) {
        float *image = t ? j->more[0] : j->out;
        if (!image) continue;
        n2_note_write(update, image, behind(q, image) - image);
        n2_note_read(update, behind(q, image) + TOWER_WIDTH, 1);
        keep_bias(q, j->in[1 + t], t ? j->k : j->m, image);
    }
}

/* A part for each image, if the gradient is one matrix. */
static void choose_parts(keeping *s) {
    job *update = &s->q->list[s->update].j;
    const int64_t stride = job_at(s->q, s->image[0])->loops.step[0][0];
    if (update->update.n_parts > 0) return;
    divide_up(update, update->n / stride, stride, s->n);
    for (int k = 0; k < s->n; k++) {
        const job *image = job_at(s->q, s->image[k]);
        const int64_t column = image->in[0] - update->out;
        set_part(update, &update->update, k, column, image->k, update->in[0] + column, stride);
    }
}

static void keep_images(keeping *s) {
    n2_queue *q = s->q;
    for (size_t i = s->update + 1; i < q->n; i++)
        for (int k = 0; k < s->n; k++)
            if (is_image_of(q, i, s->update) && is_again(job_at(q, s->image[k]), job_at(q, i)))
                n2_drop(&q->list[i]);
    q->list[s->update].j.strict = q->strict;
    choose_parts(s);
    for (int k = 0; k < s->n; k++) keep_image(s, k);
}

/* Whether an image is of numbers that nobody changes. */
static bool is_for_good(n2_queue *q, size_t i) {
    const job *j = job_at(q, i);
    const keeping s = {q, q->n, {}, 0, q->n};
    if (j->kind != JOB_IMAGE) return false;
    const int64_t floats = (j->m - 1) * j->loops.step[0][0] + j->k;
    return only_writer(q, j->in[0], floats) == SIZE_MAX &&
           only_writer(q, j->in[1], j->in[1] ? j->m : 0) == SIZE_MAX &&
           only_writer(q, j->in[2], j->in[2] ? j->k : 0) == SIZE_MAX &&
           is_made_alone(&s, i, j->out) && is_made_alone(&s, i, j->more[0]);
}

static void settle(n2_queue *q, size_t i, bool images) {
    keeping s = {q, i, {}, 0, 0};
    job *j = &q->list[i].j;
    if (j->kind != JOB_ADAM) return;
    if (images) complete_images(q, i);
    if (images && find_images(&s)) keep_images(&s);
    if (j->update.n_parts > 0) return;
    divide_up(j, (j->n + TOWER_WIDTH - 1) / TOWER_WIDTH, TOWER_WIDTH, 0);
    set_part(j, &j->update, 0, 0, TOWER_WIDTH, j->in[0], TOWER_WIDTH);
}

void n2_queue_settle_updates(n2_queue *q, bool images) {
    for (size_t i = 0; i < q->n; i++) {
        settle(q, i, images);
        if (images && is_for_good(q, i)) q->list[i].j.lasts = true;
    }
}
