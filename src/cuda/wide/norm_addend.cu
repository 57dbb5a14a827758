/* What a pass adds to the gradient of a norm is added by the norm's own kernel, and the gradient
 * alone is never stored. */
#include "cuda/runtime/edit.h"
#include "norm.h"
#include "pass_linear.h"

/* y = dx + factor z: the sum's operands, and the norm that makes dx. */
typedef struct addition {
    const void *dx, *z;
    int place; /* of z among the operands */
    float factor;
    size_t norm;
} addition;

static bool is_at_work(const noted *n, wide_id kernel) {
    return n->j.kind == JOB_WIDE && n->j.wide.kernel == kernel && n->j.n_blocks > 0;
}

/* Whether the norm that makes operand k could add the other one. */
static bool can_add(n2_queue *q, size_t i, const linear_form *form, int k, addition *a) {
    const job *j = &q->list[i].j;
    const wide_pass *p = (const wide_pass *)j->wide.about;
    const span *m = &p->input[k].memory;
    const float *dx = (const float *)m->begin;
    a->dx = dx;
    a->place = 1 - k;
    a->z = j->in[a->place];
    a->factor = form->factor[a->place];
    a->norm = n2_writer_of(q, i, dx, n2_floats_in(m));
    if (form->factor[k] != 1 || a->norm == SIZE_MAX) return false;
    const noted *n = &q->list[a->norm];
    if (!is_at_work(n, WIDE_NORM)) return false;
    const wide_norm *v = (const wide_norm *)n->j.wide.about;
    return v->has_dx && n->j.out == dx && !n->j.addend && v->type_out == p->output[0].type &&
           v->type_out == p->input[k].type && n2_is_only_reader(q, a->norm, i, dx, n2_floats_in(m));
}

/* A sum of two that lie alike, all aligned to 16 bytes. */
static bool is_sum(const job *j, linear_form *form) {
    const wide_pass *p = (const wide_pass *)j->wide.about;
    return p->n_inputs == 2 && p->n_outputs == 1 && p->whole && !p->output[0].pitched &&
           p->input[0].way == PASS_ALONG && p->input[1].way == PASS_ALONG && j->in[0] != j->in[1] &&
           n2_pass_linear(p, true, form) && form->constant == 0;
}

/* Spans of the norm without dx, and of what is added with where the sum goes. */
static void divide_spans(const noted *norm, const noted *sum, const addition *a, noted *others,
                         noted *added) {
    const wide_pass *p = (const wide_pass *)sum->j.wide.about;
    n2_forget_spans(others);
    n2_forget_spans(added);
    for (int s = 0; s < norm->n_spans; s++)
        if (norm->spans[s].begin != (uintptr_t)a->dx) n2_note_span(others, norm->spans[s]);
    n2_note_span(added, p->input[a->place].memory);
    n2_note_span(added, p->output[0].memory);
}

/* A block writes where it has read before, and no other block reads: so the sum may take the place
 * of dy, or of x, number by number. */
static bool takes_the_place(const noted *norm, const span *read, const span *sum) {
    const wide_norm *v = (const wide_norm *)norm->j.wide.about;
    const bool of_dy = read->begin == (uintptr_t)norm->j.gate && v->type_dy == v->type_out;
    const bool of_x = read->begin == (uintptr_t)norm->j.in[0] && v->type_x == v->type_out;
    return !read->written && (of_dy || of_x) && read->begin == sum->begin && read->end == sum->end;
}

static bool get_along(const noted *norm, const noted *others, const noted *added) {
    for (int i = 0; i < others->n_spans; i++)
        for (int k = 0; k < added->n_spans; k++) {
            const span *x = &others->spans[i], *y = &added->spans[k];
            const bool meet = (x->written || y->written) && n2_spans_meet(x, y);
            if (meet && !takes_the_place(norm, x, y)) return false;
        }
    return true;
}

/* Where both are done, the norm's place or the sum's; SIZE_MAX: nowhere. */
static size_t place_for(const n2_queue *q, size_t i, const addition *a, const noted *others,
                        const noted *added) {
    if (!get_along(&q->list[a->norm], others, added)) return SIZE_MAX;
    if (n2_may_move(q, added, a->norm, i)) return a->norm;
    return n2_may_move(q, others, a->norm, i) ? i : SIZE_MAX;
}

static void apply(n2_queue *q, size_t i, const addition *a, size_t at, const noted *others,
                  const noted *added) {
    noted *norm = &q->list[a->norm], *sum = &q->list[i];
    const wide_pass *p = (const wide_pass *)sum->j.wide.about;
    wide_norm *v = (wide_norm *)norm->j.wide.about;
    v->type_addend = p->input[a->place].type;
    v->addend_scale = a->factor;
    norm->j.addend = (const float *)a->z;
    norm->j.out = sum->j.out;
    norm->kept = sum->kept = norm->kept || sum->kept;
    if (at == i) { /* each keeps what is freed with it */
        const job swap = norm->j;
        norm->j = sum->j;
        sum->j = swap;
    }
    noted *both = &q->list[at];
    n2_drop(at == i ? norm : sum);
    n2_forget_spans(both);
    for (int s = 0; s < others->n_spans; s++) n2_note_span(both, others->spans[s]);
    for (int s = 0; s < added->n_spans; s++) n2_note_span(both, added->spans[s]);
}

static void add_by_norm(n2_queue *q, size_t i, noted *others, noted *added) {
    linear_form form;
    addition a = {};
    if (!is_at_work(&q->list[i], WIDE_PASS) || !is_sum(&q->list[i].j, &form)) return;
    if (!can_add(q, i, &form, 0, &a) && !can_add(q, i, &form, 1, &a)) return;
    divide_spans(&q->list[a.norm], &q->list[i], &a, others, added);
    const size_t at = place_for(q, i, &a, others, added);
    if (at != SIZE_MAX) apply(q, i, &a, at, others, added);
}

void n2_norms_add(n2_queue *q) {
    noted *spare = (noted *)n2_alloc(q->ctx, 2, sizeof *spare);
    for (size_t i = 0; spare && i < q->n; i++) add_by_norm(q, i, &spare[0], &spare[1]);
    n2_free(q->ctx, spare);
}
