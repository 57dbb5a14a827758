/* A plan and the memory it lives in: the host's, or a device's. On a device all kernels are
 * called once, which notes their work in a queue; runs replay the program made of it. */
#include "comm/comm.h"
#include "plan_data.h"
#include "plan_ranks.h"

#include <string.h>

/* ---- tensors ------------------------------------------------------------- */

static size_t place_of(n2_plan *p, n2_tensor *t) {
    size_t i = 0;
    while (i < p->n_tensors && p->tensors[i] != t) i++;
    if (i == p->n_tensors) p->tensors[p->n_tensors++] = t;
    return i;
}

static void note_tensors(n2_plan *p, uint32_t id) {
    const n2_node_data *d = n2_node_at(p, id);
    for (int k = 0; k < N2_MAX_TENSORS && d->attr->tensor[k]; k++) {
        p->writes[place_of(p, d->attr->tensor[k])] |= d->op->update;
        if (!p->device && d->op->update)
            d->attr->tensor[k]->blank = false; /* here, it is the host */
    }
}

n2ce_status n2_plan_tensors(n2_plan *p) {
    p->store = n2_graph_store(p->graph);
    p->device = p->backend->device;
    size_t most = 0;
    while (n2_store_at(p->store, most)) most++;
    p->tensors = n2_arena_alloc(&p->arena, most + 1, sizeof *p->tensors);
    p->writes = n2_arena_alloc(&p->arena, most + 1, sizeof *p->writes);
    if (!p->tensors || !p->writes) return N2CE_ENOMEM;
    for (uint32_t id = 1; id <= p->n_nodes; id++)
        if (p->nodes[id].live) note_tensors(p, id);
    return N2CE_OK;
}

n2ce_status n2_plan_mirror(n2_plan *p) {
    for (size_t i = 0; p->device && i < p->n_tensors; i++)
        N2_TRY(n2_tensor_mirror(p->store, p->tensors[i], p->device));
    return N2CE_OK;
}

bool n2_plan_writes(const n2_plan *p, const n2_tensor *t) {
    for (size_t i = 0; i < p->n_tensors; i++)
        if (p->tensors[i] == t) return p->writes[i];
    return false;
}

n2ce_status n2_plan_pull_tensors(n2_plan *p) {
    if (!n2_store_has_copies(p->store)) return N2CE_OK;
    for (size_t i = 0; i < p->n_tensors; i++) N2_TRY(n2_tensor_pull(p->store, p->tensors[i]));
    return N2CE_OK;
}

void n2_plan_push_tensors(n2_plan *p) {
    if (!n2_store_has_copies(p->store)) return;
    for (size_t i = 0; i < p->n_tensors; i++)
        if (p->writes[i]) n2_tensor_push(p->store, p->tensors[i]);
}

/* ---- memory -------------------------------------------------------------- */

n2ce_status n2_plan_alloc(n2_plan *p, size_t bytes, char **out) {
    if (p->device) {
        void *memory = NULL;
        const n2ce_status status = p->device->alloc(p->device, p->ctx, bytes, &memory);
        *out = memory;
        return status;
    }
    *out = n2_arena_alloc(&p->arena, bytes, 1);
    return *out ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_plan_write(n2_plan *p, void *to, const void *from, size_t bytes) {
    if (p->device) return p->device->upload(p->device, p->ctx, to, from, bytes);
    memcpy(to, from, bytes);
    return N2CE_OK;
}

n2ce_status n2_plan_read(const n2_plan *p, void *to, const void *from, size_t bytes) {
    if (p->device) return p->device->download(p->device, p->ctx, to, from, bytes);
    memcpy(to, from, bytes);
    return N2CE_OK;
}

void n2_plan_leave_device(n2_plan *p) {
    if (!p->device) return;
    p->device->program_free(p->program);
    p->device->free(p->device, p->state);
    p->device->free(p->device, p->block);
    if (p->tiles) p->device->free(p->device, p->tiles[0]);
}

/* ---- the state ----------------------------------------------------------- */

static n2ce_status write_state(n2_plan *p) {
    const n2_device_state state = {
        .seed = p->seed, .step = p->runs, .frozen = p->frozen, .n_watched = (uint32_t)p->n_watched};
    p->state_moved = false;
    return p->device->upload(p->device, p->ctx, p->state, &state, sizeof state);
}

/* The addresses of the watched numbers never change. */
static n2ce_status make_state(n2_plan *p) {
    if (p->state) return N2CE_OK;
    void *memory;
    const size_t bytes = sizeof *p->state + p->n_watched * sizeof(void *);
    N2_TRY(p->device->alloc(p->device, p->ctx, bytes, &memory));
    p->state = memory;
    p->state_moved = true;
    p->watched_at = n2_arena_alloc(&p->arena, p->n_watched + 1, sizeof *p->watched_at);
    if (!p->watched_at) return N2CE_ENOMEM;
    for (size_t k = 0; k < p->n_watched; k++)
        p->watched_at[k] = p->nodes[p->nodes[p->watched[k]].root].data;
    return p->device->upload(p->device, p->ctx, p->state + 1, p->watched_at,
                             p->n_watched * sizeof *p->watched_at);
}

/* ---- runs ---------------------------------------------------------------- */

static n2ce_status prepare(n2_plan *p) {
    N2_TRY(make_state(p));
    if (p->state_moved) N2_TRY(write_state(p));
    for (size_t i = 0; i < p->n_tensors; i++)
        N2_TRY(n2_tensor_upload(p->store, p->tensors[i], p->device));
    return N2CE_OK;
}

static void note_writes(n2_plan *p) {
    for (size_t i = 0; i < p->n_tensors; i++)
        if (p->writes[i]) n2_tensor_wrote(p->tensors[i], p->device);
}

static n2ce_status record_once(n2_plan *p, void (*record)(n2_plan *plan)) {
    if (p->program) return N2CE_OK;
    size_t before, after, left;
    p->device->memory(p->device, &before, &left);
    N2_TRY(n2_plan_gather_ranks(p));
    N2_TRY(p->device->queue_new(p->device, p->ctx, p->state, p->watched_at, &p->queue));
    record(p);
    n2_queue *queue = p->queue;
    p->queue = NULL;
    N2_TRY(p->device->program_new(queue, true, &p->program));
    N2_TRY(p->ranks_status);
    p->device->memory(p->device, &after, &left);
    p->kernel_bytes = after > before ? after - before : 0;
    return N2CE_OK;
}

/* A program is that of a rank among so many. */
static void forget_others(n2_plan *p) {
    const bool same = p->rank == n2_rank(p->ctx) && p->ranks == n2_ranks(p->ctx);
    if (!p->program || same || p->sum_numbers == 0) return;
    p->device->program_free(p->program);
    p->program = NULL;
}

/* While ranks exchange sums by way of their hosts nobody else may: these are waited for. */
n2ce_status n2_plan_begin_on_device(n2_plan *p, uint64_t n, void (*record)(n2_plan *plan)) {
    n2_device_state state;
    forget_others(p);
    N2_TRY(prepare(p));
    N2_TRY(record_once(p, record));
    N2_TRY(p->device->program_run(p->program, p->ctx, n));
    note_writes(p);
    if (p->ranks == 1 || p->sum_numbers == 0) return N2CE_OK;
    return p->device->download(p->device, p->ctx, &state, p->state, sizeof state);
}

n2ce_status n2_plan_end_on_device(n2_plan *p, uint32_t *bad) {
    n2_device_state state;
    N2_TRY(p->device->download(p->device, p->ctx, &state, p->state, sizeof state));
    N2_TRY(p->device->program_exchanged(p->program, p->ctx));
    p->runs = state.step;
    *bad = state.bad ? p->watched[state.bad - 1] : 0;
    p->state_moved = state.bad != 0; /* to be forgotten before the next run */
    return N2CE_OK;
}

n2ce_status n2_plan_profile_on_device(n2_plan *p, n2_text *out) {
    uint32_t bad;
    if (!p->program) return N2CE_OK;
    N2_TRY(prepare(p));
    N2_TRY(p->device->program_profile(p->program, p->ctx, out));
    note_writes(p);
    return n2_plan_end_on_device(p, &bad);
}

n2ce_status n2_plan_run_now(n2_plan *p, void (*body)(n2_plan *plan, const void *arg),
                            const void *arg) {
    n2_device_program *program;
    N2_TRY(prepare(p));
    N2_TRY(p->device->queue_new(p->device, p->ctx, p->state, p->watched_at, &p->queue));
    body(p, arg);
    n2_queue *queue = p->queue;
    p->queue = NULL;
    N2_TRY(p->device->program_new(queue, false, &program));
    const n2ce_status status = p->device->program_run(program, p->ctx, 1);
    note_writes(p);
    p->device->program_free(program);
    return status;
}
