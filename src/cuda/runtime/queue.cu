#include "queue.h"

#include "cuda/library/ranks.h"
#include "edit.h"

#include <string.h>

static bool grow(n2_queue *q) {
    if (q->n < q->capacity) return true;
    const size_t capacity = q->capacity ? 2 * q->capacity : 256;
    noted *list = (noted *)n2_realloc(q->ctx, q->list, capacity, sizeof *list);
    if (!list) {
        q->status = N2CE_ENOMEM;
        return false;
    }
    q->list = list;
    q->capacity = capacity;
    return true;
}

noted *n2_queue_add(n2_queue *q, const job *j, int64_t blocks) {
    if (q->status != N2CE_OK || blocks == 0) return NULL;
    if (blocks > INT32_MAX || j->n > UINT32_MAX) {
        q->status = n2_fail(q->ctx, N2CE_EDEVICE,
                            "An op works on %lld numbers, more than a launch can. Use fewer rows.",
                            (long long)j->n);
        return NULL;
    }
    if (!grow(q)) return NULL;
    noted *n = &q->list[q->n++];
    memset(n, 0, sizeof *n);
    n->j = *j;
    n->node = q->node;
    n->kept = j->kept;
    n->j.n_blocks = (uint32_t)blocks;
    return n;
}

span n2_span_of(const rectangle *r, bool written) {
    const bool on_end = r->rows == 1 || r->width == r->pitch;
    const float *begin = r->matrix + (on_end ? r->column : 0);
    const int64_t floats = on_end ? r->rows * r->width : r->rows * r->pitch;
    span s = {(uintptr_t)begin, (uintptr_t)(begin + floats), written, 0, 0, 0};
    if (on_end) return s;
    s.pitch = (uint32_t)r->pitch;
    s.column = (uint32_t)r->column;
    s.width = (uint32_t)r->width;
    return s;
}

bool n2_are_beside(const span *a, const span *b) {
    return a->pitch > 0 && a->pitch == b->pitch && a->begin == b->begin &&
           (a->column + a->width <= b->column || b->column + b->width <= a->column);
}

bool n2_spans_meet(const span *a, const span *b) {
    return a->begin < b->end && b->begin < a->end && !n2_are_beside(a, b);
}

void n2_note_span(noted *n, span more) {
    if (!n || more.begin >= more.end) return;
    span *s = &n->spans[n->n_spans < MOST_SPANS ? n->n_spans++ : MOST_SPANS - 1];
    if (!s->end) {
        *s = more;
        return;
    }
    /* no room: the last one becomes everything in between */
    if (more.begin < s->begin) s->begin = more.begin;
    if (more.end > s->end) s->end = more.end;
    s->written |= more.written;
    s->pitch = 0;
}

static void note_numbers(noted *n, const void *at, int64_t floats, bool written) {
    const rectangle all = {(const float *)at, 1, floats, 0, floats};
    if (at && floats > 0) n2_note_span(n, n2_span_of(&all, written));
}

void n2_note_read(noted *n, const void *at, int64_t floats) { note_numbers(n, at, floats, false); }
void n2_note_write(noted *n, const void *at, int64_t floats) { note_numbers(n, at, floats, true); }
void n2_note_columns(noted *n, rectangle r, bool written) {
    n2_note_span(n, n2_span_of(&r, written));
}

static scratch *find_scratch(n2_queue *q, const void *owner, size_t bytes) {
    for (size_t i = 0; i < q->n_scratches; i++)
        if (q->scratches[i].owner == owner && q->scratches[i].bytes >= bytes)
            return &q->scratches[i];
    return NULL;
}

float *n2_queue_scratch(n2_queue *q, const void *owner, int64_t floats) {
    const size_t bytes = (size_t)floats * sizeof(float);
    if (q->status != N2CE_OK) return NULL;
    scratch *s = find_scratch(q, owner, bytes);
    if (s) return (float *)s->memory;
    if (q->n_scratches == q->scratch_capacity) {
        const size_t capacity = q->scratch_capacity ? 2 * q->scratch_capacity : 64;
        scratch *list = (scratch *)n2_realloc(q->ctx, q->scratches, capacity, sizeof *list);
        if (!list) {
            q->status = N2CE_ENOMEM;
            return NULL;
        }
        q->scratches = list;
        q->scratch_capacity = capacity;
    }
    s = &q->scratches[q->n_scratches];
    *s = (scratch){owner, bytes, NULL};
    q->status = q->device->alloc(q->device, q->ctx, bytes, &s->memory);
    if (q->status != N2CE_OK) return NULL;
    q->n_scratches++;
    return (float *)s->memory;
}

bool n2_noted_touches(const noted *n, const float *x, int64_t floats, bool reads) {
    const uintptr_t begin = (uintptr_t)x, end = (uintptr_t)(x + floats);
    for (int s = 0; s < n->n_spans; s++) {
        const span *at = &n->spans[s];
        if ((at->written || reads) && at->begin < end && at->end > begin) return true;
    }
    return false;
}

bool n2_writes_watched(const n2_queue *q, const noted *n) {
    for (void *const *w = q->watched; *w; w++)
        if (n2_noted_touches(n, (const float *)*w, 1, false)) return true;
    return false;
}

bool n2_noted_conflict(const noted *a, const noted *b) {
    for (int i = 0; i < a->n_spans; i++)
        for (int k = 0; k < b->n_spans; k++) {
            const span *x = &a->spans[i], *y = &b->spans[k];
            if ((x->written || y->written) && n2_spans_meet(x, y)) return true;
        }
    return false;
}

/* ---- chains -------------------------------------------------------------- */

static bool is_elementwise(const job *j) {
    switch (j->kind) {
    case JOB_UNARY:
    case JOB_BINARY:
    case JOB_COPY:
    case JOB_MOVE:
    case JOB_PAD:
    case JOB_ROW_INDEX:
    case JOB_GATHER:
        return true;
    default:
        return false;
    }
}

/* Whatever the other operand does. */
bool n2_goes_along(const job *j, int operand) {
    if (j->kind == JOB_UNARY) return true;
    int64_t step = 1;
    for (int k = 0; k < j->loops.rank; k++) {
        if (j->loops.step[operand][k] != step) return false;
        step *= j->loops.length[k].by;
    }
    return true;
}

/* Whether element i of what is moved is element i of the memory at x: its rows are on end there. */
static bool moves_alike(const job *j, uintptr_t x) {
    return (x == (uintptr_t)j->in[0] && j->loops.step[0][0] == j->m && !j->index) ||
           (x == (uintptr_t)j->out && j->loops.step[1][0] == j->m);
}

/* Whether element i of the job touches element i of the memory at x and no other of it. */
static bool touches_alike(const job *j, uintptr_t x) {
    if (j->kind == JOB_MOVE && j->n > 1) return moves_alike(j, x);
    if (j->n == 1 || x == (uintptr_t)j->out) return true;
    if (j->kind == JOB_UNARY || j->kind == JOB_ASSIGN) return x == (uintptr_t)j->in[0];
    if (j->kind == JOB_COPY) return x == (uintptr_t)j->in[0] && n2_goes_along(j, 0);
    if (j->kind != JOB_BINARY || (j->looks_up && x == (uintptr_t)j->index)) return false;
    bool alike = false;
    for (int k = 0; k < 2; k++)
        if (x == (uintptr_t)j->in[k]) {
            if (!n2_goes_along(j, k)) return false;
            alike = true;
        }
    return alike;
}

/* Whether a block of a product touches its rows of the memory at x and no other of it. */
static bool touches_own_rows(const job *j, uintptr_t x) {
    if (j->kind == JOB_FIRST_ROWS) return x == (uintptr_t)j->out || x == (uintptr_t)j->more[0];
    if (x == (uintptr_t)j->in[1] || x == (uintptr_t)j->in[2] || x == (uintptr_t)j->in[3])
        return false;
    if (j->index && (x == (uintptr_t)j->addend || x == (uintptr_t)j->index)) return false;
    return x == (uintptr_t)j->in[0] || x == (uintptr_t)j->out || x == (uintptr_t)j->more[0] ||
           x == (uintptr_t)j->gate || x == (uintptr_t)j->addend;
}

static bool has_whole_rows(const job *j) {
    const job_product *p = &j->product;
    const bool layer = j->kind == JOB_FIRST_ROWS || (j->kind == JOB_NARROW && p->mlp_layer);
    return (layer || j->kind == JOB_MATMUL) && !p->ta && p->batches == 1 && p->slices == 1 &&
           p->tiles_n.by == 1;
}

/* Blocks of their own are one: whatever they do, they do it one after the other. Updates are done
 * side by side: they have to look at watched numbers first. */
static bool is_single(const job *j) {
    return j->n_blocks == 1 && j->kind != JOB_MATMUL && j->kind != JOB_NARROW &&
           j->kind != JOB_MEDIAN && j->kind != JOB_PERMUTATION && j->kind != JOB_ADAM &&
           j->kind != JOB_ASSIGN && j->kind != JOB_FIRST_ROWS && j->kind != JOB_LIBRARY &&
           j->kind != JOB_WIDE;
}

typedef bool touches(const job *j, uintptr_t x);

/* Whether both touch what one of them writes in this way only. */
static bool both_touch(const noted *a, const noted *b, touches *alike) {
    for (int i = 0; i < a->n_spans; i++)
        for (int k = 0; k < b->n_spans; k++) {
            const span *x = &a->spans[i], *y = &b->spans[k];
            if (!(x->written || y->written) || !n2_spans_meet(x, y)) continue;
            if (x->begin != y->begin || x->end != y->end) return false;
            if (!alike(&a->j, x->begin) || !alike(&b->j, x->begin)) return false;
        }
    return true;
}

bool n2_noted_alike(const noted *a, const noted *b) {
    /* an assignment follows who makes what is assigned, not who makes what holds it back */
    const bool assigns = b->j.kind == JOB_ASSIGN && b->j.in[0] == a->j.out;
    const bool follows = is_elementwise(&b->j) || assigns;
    return is_elementwise(&a->j) && follows && a->j.n == b->j.n && both_touch(a, b, touches_alike);
}

bool n2_noted_chain(const noted *a, const noted *b) {
    if (is_single(&a->j) && is_single(&b->j)) return true;
    const bool products = has_whole_rows(&a->j) && has_whole_rows(&b->j) &&
                          a->j.product.m == b->j.product.m &&
                          a->j.product.mlp_layer == b->j.product.mlp_layer;
    return products ? both_touch(a, b, touches_own_rows) : n2_noted_alike(a, b);
}

/* Whether the thread that made element i for job a is the one that needs it for b. */
static bool share_threads(const job *a, const job *b) {
    const bool makes = a->kind == JOB_UNARY || a->kind == JOB_BINARY || a->kind == JOB_COPY ||
                       a->kind == JOB_GATHER || a->kind == JOB_PAD;
    const bool takes = b->kind == JOB_UNARY || b->kind == JOB_BINARY;
    return makes && takes && a->n == b->n && a->n > 1 && a->vec4 == b->vec4 &&
           job_share(a->n) <= JOB_ELEMENTS;
}

void n2_noted_hand_over(n2_queue *q, size_t a, size_t b) {
    job *x = &q->list[a].j, *y = &q->list[b].j;
    bool fetched = false;
    if (!share_threads(x, y)) return;
    for (int k = 0; k < (y->kind == JOB_BINARY ? 2 : 1); k++) {
        const bool alike = y->in[k] == x->out && n2_goes_along(y, k);
        if (alike) y->found |= (uint8_t)(1 << k);
        fetched |= y->in[k] == x->out && !alike;
    }
    x->unread = y->found && !fetched && n2_is_only_reader(q, a, b, x->out, x->n);
}

void n2_queue_free(n2_queue *q) {
    if (!q) return;
    n2_library_release(q);
    n2_exchanges_free(q);
    for (size_t i = 0; i < q->n_scratches; i++) q->device->free(q->device, q->scratches[i].memory);
    for (size_t i = 0; i < q->n; i++) {
        n2_free(q->ctx, q->list[i].parts);
        if (q->list[i].j.kind == JOB_WIDE) n2_free(q->ctx, (void *)q->list[i].j.wide.about);
    }
    n2_free(q->ctx, q->by_level);
    n2_free(q->ctx, q->level_begin);
    n2_free(q->ctx, q->scratches);
    n2_free(q->ctx, q->list);
    n2_free(q->ctx, q);
}
