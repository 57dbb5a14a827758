/* Stopping a NaN: see watch.h. */
#include "watch.h"

#include "plan_ranks.h"
#include "walk.h"

#include <math.h>

/* ---- what is finite ------------------------------------------------------ */

enum { LOOK = 4096 }; /* bytes that are looked at together */

static bool are_finite(const n2_plan *p, const void *data, n2_dtype type, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(n2_load_number(data, type, p->backend->bytes, i))) return false;
    return true;
}

/* Of a device whose numbers cannot be read, none is finite. */
static bool is_finite(const n2_plan *p, const void *data, n2_dtype type, int64_t n) {
    double buffer[LOOK / sizeof(double)];
    const size_t bytes = n2_dtype_bytes(type, p->backend->bytes);
    if (!p->device) return are_finite(p, data, type, (size_t)n);
    for (size_t i = 0, step = LOOK / bytes; i < (size_t)n; i += step) {
        const size_t m = (size_t)n - i < step ? (size_t)n - i : step;
        if (n2_plan_read(p, buffer, (const char *)data + i * bytes, m * bytes) != N2CE_OK)
            return false;
        if (!are_finite(p, buffer, type, m)) return false;
    }
    return true;
}

uint32_t n2_bad_watched(const n2_plan *p, uint32_t end) {
    for (size_t k = 0; k < p->n_watched && p->watched[k] < end; k++)
        if (!is_finite(p, p->nodes[p->nodes[p->watched[k]].root].data, N2_NUMBER, 1))
            return p->watched[k];
    return 0;
}

uint32_t n2_guards(const n2_plan *p, uint32_t end) {
    uint32_t n = 0;
    while (n < p->n_watched && p->watched[n] < end) n++;
    return n;
}

bool n2_is_held_back(const n2_plan *p, const n2_instruction *i) {
    return !p->device && i->node->op->update && (p->frozen || n2_bad_watched(p, i->id));
}

bool n2_is_kept(const n2_plan *p, uint32_t id) {
    if (!p->queue) return false;
    const uint32_t root = p->nodes[id].root;
    for (size_t k = 0; k < p->n_outputs; k++)
        if (p->nodes[p->outputs[k].id].root == root) return true;
    for (size_t k = 0; k < p->n_watched; k++)
        if (p->nodes[p->watched[k]].root == root) return true;
    return false;
}

/* ---- looking at every value ---------------------------------------------- */

/* One instruction, on a tile or as a whole, computed by the time the call returns. */
typedef struct single {
    const n2_step *step;
    const n2_instruction *code;
    n2_tile tile;
} single;

static void run_single(n2_plan *p, const void *arg) {
    const single *one = arg;
    if (one->step->kind == N2_STEP_ROWS)
        n2_run_on_tile(p, one->step, one->code, one->tile, 0);
    else
        n2_run_whole(p, one->code, 0, 1, 0);
}

/* False: the device failed, and the context knows how. */
static bool run_at_once(n2_plan *p, single one) {
    if (p->device) return n2_plan_run_now(p, run_single, &one) == N2CE_OK;
    run_single(p, &one);
    return true;
}

static bool check_tile(n2_plan *p, const n2_step *s, n2_tile tile) {
    for (size_t i = 0; i < s->n_code; i++) {
        const n2_instruction *code = &s->code[i];
        const bool ran = run_at_once(p, (single){s, code, tile});
        const n2_view v = n2_value_on_tile(p, s, code, tile, 0);
        if (ran && is_finite(p, v.data, v.dtype, n2_elements(v.shape))) continue;
        p->bad_node = code->id;
        return false;
    }
    return true;
}

static bool check_rows(n2_plan *p, const n2_step *s) {
    for (int chunk = 0; chunk < s->n_chunks; chunk++) {
        n2_tile tile = {.chunk = chunk};
        while (n2_next_tile(s, &tile))
            if (!check_tile(p, s, tile)) return false;
    }
    if (p->device) return s->n_chunks == 1 || n2_plan_run_now(p, n2_plan_note_sums, s) == N2CE_OK;
    for (size_t i = 0; i < s->n_code; i++)
        if (s->code[i].partials) n2_add_partials(p, s, &s->code[i], 0, 1);
    return true;
}

static bool check_whole(n2_plan *p, const n2_step *s) {
    for (size_t i = 0; i < s->n_code; i++) {
        const bool ran = run_at_once(p, (single){.step = s, .code = &s->code[i]});
        if (ran && is_finite(p, s->code[i].out.base, s->code[i].out.dtype,
                             n2_elements(s->code[i].out.shape)))
            continue;
        p->bad_node = s->code[i].id;
        return false;
    }
    return true;
}

/* False: bad_node is the first that is not finite. */
static bool check_all(n2_plan *p) {
    for (size_t k = 0; k < p->n_steps; k++) {
        const n2_step *s = &p->steps[k];
        if (!(s->kind == N2_STEP_ROWS ? check_rows(p, s) : check_whole(p, s))) return false;
    }
    return true;
}

/* The tensor that brought the trouble from an earlier step or from outside; NULL: none. */
static const n2_tensor *bad_tensor(const n2_plan *p, const n2_node_data *d) {
    for (int k = 0; k < d->n_in; k++) {
        if (!d->in[k].id) continue;
        const n2_node_data *in = n2_node_at(p, p->nodes[d->in[k].id].root);
        if (in->op->id == N2_OP_tensor && !is_finite(p, p->nodes[p->nodes[d->in[k].id].root].data,
                                                     in->dtype, n2_elements(in->shape)))
            return in->attr->tensor[0];
    }
    return NULL;
}

static n2ce_status fail_at(const n2_plan *p, uint32_t id) {
    const n2_node_data *d = n2_node_at(p, id);
    const n2_tensor *t = bad_tensor(p, d);
    char shape[64];
    return n2_fail(p->ctx, N2CE_ENAN,
                   "Step %u: the op %s %s built at %s:%d gave a number that is not finite%s%s%s.",
                   p->runs + 1, d->op->name, n2_shape_text(d->shape, shape), d->file, d->line,
                   t ? ": it read one in the tensor \"" : "", t ? t->name : "", t ? "\"" : "");
}

n2ce_status n2_plan_run_checked(n2_plan *p) {
    if (!p->device) N2_TRY(n2_plan_pull_tensors(p));
    p->state_moved = true;
    if (!check_all(p)) return fail_at(p, p->bad_node);
    p->runs++;
    if (!p->device) n2_plan_push_tensors(p);
    return N2CE_OK;
}

/* Updates that came before the bad number are made, the others are not: without any, the
 * tensors are now what the bad number was computed from. */
n2ce_status n2_explain_bad(n2_plan *p, uint32_t watched) {
    p->frozen = p->state_moved = true;
    const bool found = !check_all(p);
    p->frozen = false;
    p->state_moved = true;
    return fail_at(p, found ? p->bad_node : watched);
}
