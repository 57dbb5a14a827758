#include "plan.h"

#include "base/pool.h"
#include "plan_data.h"
#include "plan_ranks.h"
#include "recompute.h"

#include <string.h>

/* ---- what is needed ------------------------------------------------------ */

/* What n2g_watch named, and in a plan that has something to lose also single outputs. */
static n2ce_status find_watched(n2_plan *p) {
    bool updates = false;
    for (uint32_t id = 1; id <= p->n_nodes; id++) updates |= n2_node_at(p, id)->op->update;
    p->watched = n2_arena_alloc(&p->arena, (size_t)p->n_nodes + 1, sizeof *p->watched);
    if (!p->watched) return N2CE_ENOMEM;
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        n2_planned *n = &p->nodes[id];
        const n2_node_data *d = n2_node_at(p, id);
        n->watched = d->watched ||
                     (n->output && updates && n2_elements(d->shape) == 1 && d->dtype == N2_NUMBER);
        n->output |= n->watched;
        if (n->watched) p->watched[p->n_watched++] = id;
    }
    return N2CE_OK;
}

static void mark_live(n2_plan *p) {
    for (uint32_t id = p->n_nodes; id > 0; id--) {
        const n2_node_data *d = n2_node_at(p, id);
        if (d->op->update || p->nodes[id].output) p->nodes[id].live = true;
        if (!p->nodes[id].live) continue;
        const bool reads_packed = p->backend->row_programs && !p->backend->unpacked;
        for (int k = 0; k < d->n_in; k++)
            if (d->in[k].id && (k == 0 || k != d->op->packed || reads_packed))
                p->nodes[d->in[k].id].live = true;
    }
}

static void find_roots(n2_plan *p) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        const n2_node_data *d = n2_node_at(p, id);
        p->nodes[id].root = n2_is_view(d->op->id) ? p->nodes[d->in[0].id].root : id;
    }
}

/* ---- who works row by row ------------------------------------------------ */

/* What the op says of rows; n_rows becomes their number. */
static n2_rows rows_of(n2_plan *p, uint32_t id) {
    n2_planned *n = &p->nodes[id];
    const n2_node_data *d = n2_node_at(p, id);
    if (!p->backend->row_programs || !d->op->rows || d->op->update || n2_is_leaf(d->op->id))
        return N2_ROWS_WHOLE;
    if (p->backend->whole && p->backend->whole(p->graph, d)) return N2_ROWS_WHOLE;
    const n2_rows rows = d->op->rows(p->graph, d, n->row_input);
    if (rows == N2_ROWS_WHOLE) return rows;
    n->n_rows = d->shape.rank > 0 ? d->shape.dim[0] : 0;
    if (rows == N2_ROWS_FOLD) n->n_rows = n2_shape_at(p->graph, d->in[0]).dim[0];
    return rows;
}

/* What all nodes of few rows compute, by the number of rows. */
static void weigh_few_rows(n2_plan *p, double flops[N2_LEAST_ROWS]) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        if (!p->nodes[id].live || rows_of(p, id) == N2_ROWS_WHOLE) continue;
        const int64_t rows = p->nodes[id].n_rows;
        if (rows < N2_LEAST_ROWS) flops[rows] += n2_flops(p->graph, n2_node_at(p, id));
    }
}

/* Few rows are worth a program if they are heavy, pictures for instance. On a device a launch
 * saved is worth it. */
static bool is_worth_a_program(const n2_plan *p, int64_t rows, const double *flops) {
    if (rows < 2) return false;
    return p->backend->device || rows >= N2_LEAST_ROWS || flops[rows] >= N2_HEAVY_ROWS;
}

static void classify(n2_plan *p, uint32_t id, const double *flops) {
    n2_planned *n = &p->nodes[id];
    const n2_rows rows = rows_of(p, id);
    /* a view of something whole is whole */
    const bool view_of_whole = n->root != id && p->nodes[n->root].rows != N2_ROWS_MAP;
    const bool fits = !view_of_whole && is_worth_a_program(p, n->n_rows, flops);
    n->rows = rows != N2_ROWS_WHOLE && fits ? rows : N2_ROWS_WHOLE;
}

/* ---- stages -------------------------------------------------------------- */

/* In a stage, whole nodes run first, in order; then the row programs. A row node may
 * use rows that its own program has just made; everything else that comes out of a
 * program is there one stage later. */
static int ready_stage(const n2_plan *p, uint32_t id, int k) {
    const n2_planned *n = &p->nodes[id], *in = &p->nodes[n2_node_at(p, id)->in[k].id];
    if (in->rows == N2_ROWS_WHOLE) return in->stage;
    const bool same_program = n->rows != N2_ROWS_WHOLE && n->row_input[k] &&
                              in->rows == N2_ROWS_MAP && in->n_rows == n->n_rows;
    return same_program ? in->stage : in->stage + 1;
}

static void note_killer(n2_plan *p, const n2_tensor *t, uint32_t before, uint32_t update) {
    for (uint32_t id = before; id > 0; id--) {
        const n2_node_data *d = n2_node_at(p, id);
        if ((d->op->id == N2_OP_tensor || d->op->update) && d->attr->tensor[0] == t) {
            p->nodes[id].killer = update;
            return;
        }
    }
}

/* An update waits for all who read the value it overwrites, and for what is watched. */
static int wait_for_readers(const n2_plan *p, uint32_t update) {
    int stage = 0;
    for (uint32_t id = 1; id < update; id++) {
        if (!p->nodes[id].live) continue;
        const n2_node_data *d = n2_node_at(p, id);
        bool waits = p->nodes[id].watched || p->nodes[id].killer == update;
        for (int k = 0; k < d->n_in; k++)
            waits |= p->nodes[p->nodes[d->in[k].id].root].killer == update;
        const int free_at = p->nodes[id].stage + (p->nodes[id].rows != N2_ROWS_WHOLE);
        if (waits && free_at > stage) stage = free_at;
    }
    return stage;
}

static n2ce_status check_stale_reads(const n2_plan *p, uint32_t id) {
    const n2_node_data *d = n2_node_at(p, id);
    for (int k = 0; k < d->n_in; k++) {
        const uint32_t killer = p->nodes[p->nodes[d->in[k].id].root].killer;
        if (killer && killer < id)
            return n2_fail(p->ctx, N2CE_EINVAL,
                           "%s:%d: %s reads the tensor \"%s\" as it was before the update at "
                           "%s:%d. Build it, and gradients through it, before the update.",
                           d->file, d->line, d->op->name,
                           n2_node_at(p, killer)->attr->tensor[0]->name,
                           n2_node_at(p, killer)->file, n2_node_at(p, killer)->line);
    }
    return N2CE_OK;
}

static n2ce_status assign_stages(n2_plan *p) {
    double few_rows[N2_LEAST_ROWS] = {0};
    weigh_few_rows(p, few_rows);
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        n2_planned *n = &p->nodes[id];
        if (!n->live) continue;
        const n2_node_data *d = n2_node_at(p, id);
        classify(p, id, few_rows);
        for (int k = 0; k < d->n_in; k++) {
            if (!p->nodes[d->in[k].id].live) continue;
            const int stage = ready_stage(p, id, k);
            if (stage > n->stage) n->stage = stage;
        }
        N2_TRY(check_stale_reads(p, id));
        if (!d->op->update) continue;
        note_killer(p, d->attr->tensor[0], id - 1, id);
        const int stage = wait_for_readers(p, id);
        if (stage > n->stage) n->stage = stage;
    }
    return N2CE_OK;
}

/* Row nodes move up to the stage that needs them first, so that what one program could
 * compute for itself is not stored by an earlier one. */
static void postpone(n2_plan *p) {
    const int none = 1 << 30;
    for (uint32_t id = p->n_nodes; id > 0; id--) {
        n2_planned *n = &p->nodes[id];
        if (!n->live || n->rows != N2_ROWS_MAP || n->output) continue;
        int latest = none;
        for (uint32_t user = id + 1; user <= p->n_nodes; user++) {
            if (!p->nodes[user].live) continue;
            const n2_node_data *d = n2_node_at(p, user);
            for (int k = 0; k < d->n_in; k++) {
                if (d->in[k].id != id) continue;
                const int gap = ready_stage(p, user, k) - n->stage;
                const int stage = p->nodes[user].stage - gap;
                if (stage < latest) latest = stage;
            }
        }
        const n2_node_data *d = n2_node_at(p, id);
        for (int k = 0; k < d->n_in; k++) {
            const uint32_t killer = p->nodes[p->nodes[d->in[k].id].root].killer;
            if (killer && p->nodes[killer].stage - 1 < latest) latest = p->nodes[killer].stage - 1;
        }
        if (latest != none && latest > n->stage) n->stage = latest;
    }
}

/* ---- the whole ----------------------------------------------------------- */

static n2ce_status check_kernels(const n2_plan *p) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        const n2_op *op = n2_node_at(p, id)->op;
        if (p->nodes[id].live && n2_needs_kernel(op->id) && !p->backend->kernel[op->id])
            return n2_fail(p->ctx, N2CE_EINVAL, "The backend %s has no kernel for the op \"%s\".",
                           p->backend->name, op->name);
    }
    return N2CE_OK;
}

/* An output that an update overwrites would be read as something else. */
static n2ce_status check_outputs(const n2_plan *p) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        const n2_node_data *d = n2_node_at(p, id), *root = n2_node_at(p, p->nodes[id].root);
        if (p->nodes[id].output && p->nodes[p->nodes[id].root].killer)
            return n2_fail(p->ctx, N2CE_EINVAL,
                           "%s:%d: the output is the tensor \"%s\" before an update of the same "
                           "plan. Read it after the update, or before the run.",
                           d->file, d->line, root->attr->tensor[0]->name);
    }
    return N2CE_OK;
}

/* The update that keeps a tensor for itself, as moments are; 0: none. */
static uint32_t keeper_of(const n2_plan *p, const n2_tensor *t) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        const n2_node_data *d = n2_node_at(p, id);
        for (int k = 1; d->op->update && k < N2_MAX_TENSORS; k++)
            if (d->attr->tensor[k] == t) return id;
    }
    return 0;
}

/* Nothing orders what reads an update's own tensors, or writes them, before or after it. */
static n2ce_status check_moments(const n2_plan *p) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        const n2_node_data *d = n2_node_at(p, id);
        if (!p->nodes[id].live || (d->op->id != N2_OP_tensor && !d->op->update)) continue;
        const uint32_t keeper = keeper_of(p, d->attr->tensor[0]);
        if (keeper)
            return n2_fail(
                p->ctx, N2CE_EINVAL,
                "%s:%d: the tensor \"%s\" is the %s update's at %s:%d, in the same plan. "
                "Read or write it in another.",
                d->file, d->line, d->attr->tensor[0]->name, n2_node_at(p, keeper)->op->name,
                n2_node_at(p, keeper)->file, n2_node_at(p, keeper)->line);
    }
    return N2CE_OK;
}

/* All that needs no memory but the host's for itself. */
static n2ce_status lay_out(n2_plan *p) {
    p->n_nodes = n2_graph_size(p->graph);
    p->nodes = n2_arena_alloc(&p->arena, (size_t)p->n_nodes + 1, sizeof *p->nodes);
    if (!p->nodes) return N2CE_ENOMEM;
    for (size_t k = 0; k < p->n_outputs; k++) p->nodes[p->outputs[k].id].output = true;
    N2_TRY(find_watched(p));
    mark_live(p);
    find_roots(p);
    N2_TRY(check_kernels(p));
    N2_TRY(assign_stages(p));
    N2_TRY(check_outputs(p));
    N2_TRY(check_moments(p));
    postpone(p);
    N2_TRY(n2_plan_steps(p));
    N2_TRY(n2_plan_tensors(p));
    N2_TRY(n2_plan_storage(p));
    n2_plan_chunks(p);
    return n2_plan_places(p);
}

static n2_plan *new_plan(n2_graph *g, const n2_backend *backend, const n2_node *outputs,
                         size_t n_outputs) {
    n2ce_ctx *ctx = n2_store_ctx(n2_graph_store(g));
    n2_plan *p = n2_alloc(ctx, 1, sizeof *p);
    if (!p) return NULL;
    p->ctx = ctx;
    p->ranks = 1;
    p->graph = g;
    p->backend = backend;
    p->arena = n2_arena_new(ctx);
    p->n_outputs = n_outputs;
    p->outputs = n2_arena_alloc(&p->arena, n_outputs + 1, sizeof *p->outputs);
    if (!p->outputs) {
        n2_plan_free(p);
        return NULL;
    }
    if (n_outputs) memcpy(p->outputs, outputs, n_outputs * sizeof *outputs);
    return p;
}

/* Makes it one of a copy of its graph. */
static n2ce_status take_copy(n2_plan *p) {
    size_t n;
    uint32_t *renamed = n2_alloc(p->ctx, (size_t)n2_graph_size(p->graph) + 1, sizeof *renamed);
    if (!renamed) return N2CE_ENOMEM;
    p->copy = n2_graph_recomputed(p->graph, renamed, &n);
    for (size_t k = 0; p->copy && k < p->n_outputs; k++)
        p->outputs[k].id = renamed[p->outputs[k].id];
    n2_free(p->ctx, renamed);
    if (!p->copy) return N2CE_ENOMEM;
    p->graph = p->copy;
    return N2CE_OK;
}

/* The same plan with values that are made again. */
static n2ce_status recompute(n2_graph *g, const n2_node *outputs, n2_plan **plan) {
    n2_plan *plain = *plan, *p = new_plan(g, plain->backend, outputs, plain->n_outputs);
    if (!p) return N2CE_ENOMEM;
    p->like = plain;
    n2ce_status status = take_copy(p);
    if (status == N2CE_OK) status = lay_out(p);
    p->like = NULL;
    n2_plan_free(plain);
    *plan = p;
    return status;
}

static n2ce_status compile(n2_graph *g, const n2_node *outputs, n2_recompute when, n2_plan **plan) {
    N2_TRY(lay_out(*plan));
    n2ce_status room = n2_plan_check_room(*plan);
    if (when == N2_RECOMPUTE_ALWAYS || (when != N2_RECOMPUTE_NEVER && room != N2CE_OK)) {
        N2_TRY(recompute(g, outputs, plan));
        room = n2_plan_check_room(*plan);
    }
    N2_TRY(room);
    N2_TRY(n2_plan_memory(*plan));
    N2_TRY(n2_plan_split(*plan));
    n2_plan_share(*plan);
    return N2CE_OK;
}

n2ce_status n2_plan_compile_with(n2_graph *g, const n2_backend *backend, const n2_node *outputs,
                                 size_t n_outputs, n2_recompute when, n2_plan **out) {
    *out = NULL;
    N2_TRY(n2_graph_tell(g));
    n2ce_ctx *ctx = n2_store_ctx(n2_graph_store(g));
    if (n2_store_bytes(n2_graph_store(g)) != backend->bytes)
        return n2_fail(ctx, N2CE_EINVAL, "The store holds numbers of %zu bytes, %s wants %zu.",
                       n2_store_bytes(n2_graph_store(g)), backend->name, backend->bytes);
    for (size_t k = 0; k < n_outputs; k++)
        if (!outputs[k].id) return n2_fail(ctx, N2CE_EINVAL, "Output %zu is no node.", k);
    n2_plan *p = new_plan(g, backend, outputs, n_outputs);
    if (!p) return N2CE_ENOMEM;
    const n2ce_status status = compile(g, outputs, when, &p);
    if (status == N2CE_OK)
        *out = p;
    else
        n2_plan_free(p);
    return status;
}

n2ce_status n2_plan_compile(n2_graph *g, const n2_backend *backend, const n2_node *outputs,
                            size_t n_outputs, n2_plan **out) {
    return n2_plan_compile_with(g, backend, outputs, n_outputs, N2_RECOMPUTE_IF_NEEDED, out);
}

void n2_plan_free(n2_plan *p) {
    if (!p) return;
    n2_plan_leave_device(p);
    n2_graph_free(p->copy);
    n2_arena_free(&p->arena);
    n2_free(p->ctx, p);
}
