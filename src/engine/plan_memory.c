/* Places for all values, and the instructions that use them. */
#include "plan_data.h"

#include <stdlib.h>
#include <string.h>

static bool is_live_input(const n2_plan *p, const n2_node_data *d, int k) {
    return d->in[k].id && p->nodes[d->in[k].id].live;
}

static bool is_view(const n2_plan *p, uint32_t id) { return p->nodes[id].root != id; }

/* ---- lifetimes ----------------------------------------------------------- */

static void note_use(n2_plan *p, uint32_t root, int step) {
    n2_planned *r = &p->nodes[root];
    r->uses++;
    if (step > r->last_step) r->last_step = step;
    if (r->step != step) r->stored = true; /* it crosses from step to step */
}

static void find_lifetimes(n2_plan *p) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        n2_planned *n = &p->nodes[id];
        if (!n->live || is_view(p, id)) continue;
        n->last_step = n->step;
        n->stored = n->rows != N2_ROWS_MAP;
    }
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        const n2_planned *n = &p->nodes[id];
        if (!n->live) continue;
        if (n->output) note_use(p, n->root, (int)p->n_steps);
        const n2_node_data *d = n2_node_at(p, id);
        for (int k = 0; k < d->n_in && !is_view(p, id); k++)
            if (is_live_input(p, d, k)) note_use(p, p->nodes[d->in[k].id].root, n->step);
    }
}

/* ---- the block ----------------------------------------------------------- */

/* Intervals of steps that want bytes of the block. */
typedef struct demand {
    int from, to;
    size_t bytes, offset;
} demand;

typedef struct demands {
    demand *list;
    size_t n;
} demands;

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/* Lowest place that is free for the whole interval: move past every demand that is in
 * the way, until none is. */
static size_t add_demand(demands *all, int from, int to, size_t bytes) {
    demand d = {from, to, round_up(bytes ? bytes : 1, N2_ALIGN), 0};
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < all->n; i++) {
            const demand *o = &all->list[i];
            const bool together = o->from <= d.to && d.from <= o->to;
            if (!together || o->offset >= d.offset + d.bytes || d.offset >= o->offset + o->bytes)
                continue;
            d.offset = o->offset + o->bytes;
            moved = true;
        }
    }
    all->list[all->n++] = d;
    return d.offset;
}

/* A place in the block for steps [from, to]; on a device for good, if it is not large. */
static size_t place_in_block(const n2_plan *p, demands *all, int from, int to, size_t bytes) {
    const bool own = p->device && bytes <= N2_OWN_PLACE;
    return add_demand(all, own ? -1 : from, own ? (int)p->n_steps : to, bytes);
}

static size_t node_bytes(const n2_plan *p, uint32_t id) {
    const n2_node_data *d = n2_node_at(p, id);
    return (size_t)n2_elements(d->shape) * n2_dtype_bytes(p->nodes[id].dtype, p->backend->bytes);
}

static void place_node(n2_plan *p, uint32_t id, demands *all) {
    n2_planned *n = &p->nodes[id];
    const n2_node_data *d = n2_node_at(p, id);
    const int end = (int)p->n_steps;
    if (d->op->id == N2_OP_constant)
        n->place = add_demand(all, -1, end, p->backend->bytes);
    else if (n->stored && d->op->id != N2_OP_tensor && !d->op->update)
        n->place = place_in_block(p, all, n->step, n->last_step, node_bytes(p, id));
    if (n->rows == N2_ROWS_FOLD) {
        /* the first chunk sums up in the result itself */
        const size_t others = (size_t)p->steps[n->step].n_chunks - 1;
        const size_t bytes = round_up(node_bytes(p, id), N2_ALIGN) * others;
        n->partials = place_in_block(p, all, n->step, n->step, bytes);
    }
}

static n2ce_status store_number(n2_plan *p, void *to, double value) {
    const float narrow = (float)value;
    const bool is_float = p->backend->bytes == sizeof(float);
    return n2_plan_write(p, to, is_float ? (const void *)&narrow : &value, p->backend->bytes);
}

static n2ce_status resolve(n2_plan *p, uint32_t id) {
    n2_planned *n = &p->nodes[id];
    const n2_node_data *d = n2_node_at(p, id);
    if (d->op->id == N2_OP_tensor || d->op->update)
        n->data =
            p->device ? n2_tensor_on(d->attr->tensor[0], p->device) : d->attr->tensor[0]->data;
    else if (n->stored || d->op->id == N2_OP_constant)
        n->data = p->block + n->place;
    return d->op->id == N2_OP_constant ? store_number(p, n->data, d->attr->value) : N2CE_OK;
}

/* Places are counted in size_t, and what goes beyond it in double. */
static n2ce_status check_countable(const n2_plan *p, double bytes) {
    if (bytes < (double)(SIZE_MAX / 4)) return N2CE_OK;
    return n2_fail(p->ctx, N2CE_ENOMEM,
                   "Out of memory: this plan needs %.2g bytes. Use a smaller batch.", bytes);
}

static n2ce_status place_values(n2_plan *p) {
    n2_arena scratch = n2_arena_new(p->ctx);
    demands all = {n2_arena_alloc(&scratch, 2 * (size_t)p->n_nodes + 2, sizeof *all.list), 0};
    n2ce_status status = all.list ? N2CE_OK : N2CE_ENOMEM;
    for (uint32_t id = 1; status == N2CE_OK && id <= p->n_nodes; id++)
        if (p->nodes[id].live && !is_view(p, id)) place_node(p, id, &all);
    double sum = 0;
    for (size_t i = 0; i < all.n; i++) {
        sum += (double)all.list[i].bytes;
        if (all.list[i].offset + all.list[i].bytes > p->block_bytes)
            p->block_bytes = all.list[i].offset + all.list[i].bytes;
    }
    n2_arena_free(&scratch);
    return status == N2CE_OK ? check_countable(p, sum) : status;
}

static n2ce_status make_block(n2_plan *p) {
    N2_TRY(n2_plan_alloc(p, p->block_bytes + N2_ALIGN, &p->block));
    for (uint32_t id = 1; id <= p->n_nodes; id++)
        if (p->nodes[id].live && !is_view(p, id)) N2_TRY(resolve(p, id));
    return N2CE_OK;
}

/* ---- tiles --------------------------------------------------------------- */

static size_t numbers_per_row(const n2_plan *p, uint32_t id) {
    const n2_node_data *d = n2_node_at(p, id);
    const size_t n = (size_t)(n2_elements(d->shape) / d->shape.dim[0]), unit = p->backend->bytes;
    return (n * n2_dtype_bytes(p->nodes[id].dtype, unit) + unit - 1) / unit;
}

/* ---- order of a row program ---------------------------------------------- */

static bool is_in_program(const n2_plan *p, uint32_t id, int step) {
    return id && p->nodes[id].live && p->nodes[id].step == step &&
           p->nodes[id].rows != N2_ROWS_WHOLE && !is_view(p, id);
}

/* A row program in the making: ids in the order they will run. */
typedef struct ordering {
    n2_plan *plan;
    int step;
    uint32_t *code, *stack; /* room for all nodes */
    int n;
} ordering;

static bool is_sink(const ordering *o, uint32_t id) {
    const n2_planned *n = &o->plan->nodes[id];
    return is_in_program(o->plan, id, o->step) && (n->stored || n->rows == N2_ROWS_FOLD);
}

static bool is_missing(const ordering *o, uint32_t id) {
    return is_in_program(o->plan, id, o->step) && o->plan->nodes[id].order < 0;
}

/* An input that has no place yet, of those that are made again or of the others; 0: none. */
static uint32_t missing_of(const ordering *o, uint32_t id, bool again) {
    const n2_node_data *d = n2_node_at(o->plan, id);
    for (int k = 0; k < d->n_in; k++) {
        const uint32_t in = o->plan->nodes[d->in[k].id].root;
        if (is_missing(o, in) && n2_node_at(o->plan, in)->again == again) return in;
    }
    return 0;
}

/* On a device, a norm's gradient by its input that is still to come, for the sums of it, which the
 * same kernel makes: it was built beside them. 0: none. */
static uint32_t gradient_beside(const ordering *o, uint32_t sums) {
    enum { BESIDE = 8 };
    const n2_plan *p = o->plan;
    const n2_node_data *d = n2_node_at(p, sums);
    if (!p->backend->device || d->op->id != N2_OP_norm_sums) return 0;
    for (uint32_t id = sums > BESIDE ? sums - BESIDE : 1; id < sums + BESIDE && id <= p->n_nodes;
         id++) {
        const n2_node_data *x = n2_node_at(p, id);
        if (x->op->id == N2_OP_norm_input && memcmp(x->in, d->in, sizeof x->in) == 0)
            return is_missing(o, id) ? id : 0;
    }
    return 0;
}

/* The same, what is made again last: when all else is there that its reader needs. */
static uint32_t missing_input(const ordering *o, uint32_t id) {
    uint32_t in = missing_of(o, id, false);
    if (!in) in = missing_of(o, id, true);
    return in ? in : gradient_beside(o, id);
}

static void place(ordering *o, uint32_t id) {
    o->plan->nodes[id].order = o->n;
    o->code[o->n++] = id;
}

/* Whether all is there, or can be made again at once. */
static bool is_ready(const ordering *o, uint32_t id, int deep) {
    if (deep == 0 || missing_of(o, id, false)) return false;
    const n2_node_data *d = n2_node_at(o->plan, id);
    for (int k = 0; k < d->n_in; k++) {
        const uint32_t in = o->plan->nodes[d->in[k].id].root;
        if (is_missing(o, in) && !is_ready(o, in, deep - 1)) return false;
    }
    return true;
}

static void place_with_again(ordering *o, uint32_t id) {
    for (uint32_t in; (in = missing_of(o, id, true)) != 0;) place_with_again(o, in);
    place(o, id);
}

/* On a device, what makes little of pictures: sums over pixels, of a norm's gradient for instance;
 * and channels of them, for the gradient of what the way down kept is needed last. */
static bool is_digest(const ordering *o, uint32_t id) {
    enum { MUCH = 16 };
    const n2_plan *p = o->plan;
    const n2_node_data *d = n2_node_at(p, id);
    if (!p->backend->device || !is_in_program(p, id, o->step) || !d->in[0].id) return false;
    const n2_shape in = n2_node_at(p, d->in[0].id)->shape;
    return in.rank >= 4 && !gradient_beside(o, id) &&
           (d->op->id == N2_OP_slice || n2_elements(d->shape) <= n2_elements(in) / MUCH);
}

/* Sums over rows, and digests, that have become ready run at once: they free what they read. */
static void place_ready_sinks(ordering *o, uint32_t after) {
    enum { DEEP = 8 }; /* looked through, of nodes that are made again */
    for (uint32_t id = after + 1; id <= o->plan->n_nodes; id++)
        if (o->plan->nodes[id].order < 0 && (is_sink(o, id) || is_digest(o, id)) &&
            is_ready(o, id, DEEP))
            place_with_again(o, id);
}

/* A node after its inputs, depth first. */
static void place_after_inputs(ordering *o, uint32_t sink) {
    size_t depth = 0;
    o->stack[depth++] = sink;
    while (depth > 0) {
        const uint32_t id = o->stack[depth - 1], missing = missing_input(o, id);
        if (missing) {
            o->stack[depth++] = missing;
            continue;
        }
        depth--;
        if (o->plan->nodes[id].order >= 0) continue; /* it has become a ready sink meanwhile */
        place(o, id);
        place_ready_sinks(o, id);
    }
}

/* From the last sink to the first: in a backward pass the last is the one that needs the
 * whole of its network, whose other sums are then picked up on the way. So the tile holds
 * the values of one network at a time. */
static n2ce_status order_program(n2_plan *p, int step, n2_arena *arena, uint32_t **code, int *n) {
    ordering o = {.plan = p, .step = step};
    o.stack = n2_arena_alloc(arena, (size_t)p->n_nodes + 1, sizeof *o.stack);
    o.code = n2_arena_alloc(arena, (size_t)p->n_nodes + 1, sizeof *o.code);
    if (!o.stack || !o.code) return N2CE_ENOMEM;
    for (uint32_t id = 1; id <= p->n_nodes; id++)
        if (is_in_program(p, id, step)) p->nodes[id].order = -1;
    for (uint32_t id = p->n_nodes; id > 0; id--)
        if (is_sink(&o, id) && p->nodes[id].order < 0) place_after_inputs(&o, id);
    *code = o.code;
    *n = o.n;
    return N2CE_OK;
}

/* ---- matrix products that do more ---------------------------------------- */

/* Products read and write numbers. */
static bool has_numbers(const n2_plan *p, uint32_t id) {
    const n2_node_data *d = n2_node_at(p, id);
    bool numbers = p->nodes[id].dtype == N2_NUMBER;
    for (int k = 0; k < d->n_in; k++) numbers &= p->nodes[d->in[k].id].dtype == N2_NUMBER;
    return numbers;
}

/* Whether the kernel of input k, which nobody else reads, can do a node too. */
static n2_epilogue can_absorb(const n2_plan *p, uint32_t id, int k) {
    const n2_node_data *d = n2_node_at(p, id);
    const n2_planned *n = &p->nodes[id], *in = &p->nodes[d->in[k].id];
    const bool private = is_in_program(p, d->in[k].id, n->step) && !in->stored && in->uses == 1;
    if (!private || !n->row_input[0] || !n->row_input[1] || !has_numbers(p, id))
        return N2_NO_EPILOGUE;
    return n2_graph_fuse(p->graph, d, k, in->epilogue);
}

/* Moves products to the instruction that absorbs them; returns how many are left. */
static int absorb_products(n2_plan *p, uint32_t *code, int n) {
    int left = 0;
    for (int i = 0; i < n; i++) {
        const n2_node_data *d = n2_node_at(p, code[i]);
        n2_planned *node = &p->nodes[code[i]];
        for (int k = d->n_in == 2 ? 1 : -1; k >= 0 && !node->epilogue; k--) {
            node->epilogue = can_absorb(p, code[i], k);
            if (!node->epilogue) continue;
            node->absorbs = d->in[k].id;
            p->nodes[d->in[k].id].absorbed = true;
        }
    }
    for (int i = 0; i < n; i++)
        if (!p->nodes[code[i]].absorbed) {
            p->nodes[code[i]].order = left;
            code[left++] = code[i];
        }
    return left;
}

/* When the last instruction of the program uses a value. */
static int last_use(const n2_plan *p, const uint32_t *code, int n, uint32_t root) {
    for (int i = n - 1; i > p->nodes[root].order; i--)
        for (uint32_t id = code[i]; id; id = p->nodes[id].absorbs) {
            const n2_node_data *d = n2_node_at(p, id);
            for (int k = 0; k < d->n_in; k++)
                if (is_live_input(p, d, k) && p->nodes[d->in[k].id].root == root) return i;
        }
    return p->nodes[root].order;
}

/* Rows that a tile has at most. */
static size_t most_rows(const n2_plan *p, int64_t rows) {
    return (size_t)(rows < p->backend->most_tile ? rows : p->backend->most_tile);
}

static bool is_summed_over_rows(const n2_plan *p, const uint32_t *code, int n, uint32_t root) {
    for (int i = 0; i < n; i++) {
        const n2_node_data *d = n2_node_at(p, code[i]);
        for (int k = 0; p->nodes[code[i]].rows == N2_ROWS_FOLD && k < d->n_in; k++)
            if (is_live_input(p, d, k) && p->nodes[d->in[k].id].root == root) return true;
    }
    return false;
}

static bool has_own_place(const n2_plan *p, const uint32_t *code, int n, uint32_t root,
                          size_t numbers) {
    const size_t rows = most_rows(p, p->steps[p->nodes[root].step].n_rows);
    const size_t bytes = rows * numbers * p->backend->bytes;
    if (bytes <= N2_OWN_TILE_PLACE) return true;
    return numbers <= N2_OWN_SUMMED_NUMBERS && bytes <= N2_OWN_SUMMED_PLACE &&
           is_summed_over_rows(p, code, n, root);
}

/* A value that wants a place in a tile: so many numbers, from instruction `at` on. */
typedef struct wanted {
    size_t numbers;
    int at;
} wanted;

/* Pictures in front, the largest first, which leaves few gaps; then rows of an ordinary network,
 * as they come. */
static int largest_first(const void *a, const void *b) {
    const wanted *x = a, *y = b;
    const size_t m = x->numbers > N2_OWN_SUMMED_NUMBERS ? x->numbers : 0;
    const size_t n = y->numbers > N2_OWN_SUMMED_NUMBERS ? y->numbers : 0;
    return m != n ? (m < n) - (m > n) : (x->at > y->at) - (x->at < y->at);
}

static size_t list_wanted(const n2_plan *p, const uint32_t *code, int n, wanted *list) {
    size_t count = 0;
    for (int i = 0; i < n; i++)
        if (!p->nodes[code[i]].stored)
            list[count++] = (wanted){round_up(numbers_per_row(p, code[i]), 16), i};
    qsort(list, count, sizeof *list, largest_first);
    return count;
}

/* Values that live in tiles only share the tile by their lifetimes. */
static n2ce_status place_in_tile(n2_plan *p, int step, n2_arena *scratch) {
    uint32_t *code;
    int n;
    N2_TRY(order_program(p, step, scratch, &code, &n));
    n = absorb_products(p, code, n);
    demands all = {n2_arena_alloc(scratch, (size_t)n + 1, sizeof *all.list), 0};
    wanted *list = n2_arena_alloc(scratch, (size_t)n + 1, sizeof *list);
    if (!all.list || !list) return N2CE_ENOMEM;
    const size_t count = list_wanted(p, code, n, list);
    size_t top = 0;
    for (size_t k = 0; k < count; k++) {
        const int i = list[k].at;
        const size_t numbers = list[k].numbers;
        const bool own = p->device && has_own_place(p, code, n, code[i], numbers);
        const int from = own ? 0 : i, to = own ? n : last_use(p, code, n, code[i]);
        n2_planned *node = &p->nodes[code[i]];
        node->place = add_demand(&all, from, to, numbers * 4) / 4;
        if (node->place + numbers > top) top = node->place + numbers;
    }
    p->steps[step].tile_numbers = top;
    return N2CE_OK;
}

/* As many rows as fit the second-level cache; a few tiles are made of equal size, so that
 * the last one is not a remnant. */
static void choose_tile(n2_plan *p, n2_step *s) {
    const size_t row_bytes = s->tile_numbers * p->backend->bytes + 1;
    const int64_t most = p->backend->most_tile ? p->backend->most_tile : N2_MOST_TILE;
    const size_t most_bytes = p->backend->most_tile ? p->backend->tile_bytes : N2_TILE_BYTES;
    int64_t rows = (int64_t)(most_bytes / row_bytes);
    if (rows > most) rows = most;
    if (rows >= 12 || p->device) /* what the matrix kernels take at a time */
        rows = rows >= 12 ? rows / 12 * 12 : 12;
    if (rows < N2_LEAST_TILE) rows = N2_LEAST_TILE;
    const int64_t tiles = (s->chunk_rows + rows - 1) / rows;
    const n2_step *like = n2_like_step(p, (size_t)(s - p->steps));
    s->tile_rows = tiles < 4 ? (s->chunk_rows + tiles - 1) / tiles : rows;
    if (like) s->tile_rows = like->tile_rows;
    const size_t bytes = (size_t)s->tile_rows * s->tile_numbers * p->backend->bytes;
    if (p->device) { /* row programs may run at the same time */
        s->tile_at = p->tile_bytes;
        p->tile_bytes += round_up(bytes, 4 * N2_ALIGN);
    } else if (bytes > p->tile_bytes) {
        p->tile_bytes = bytes;
    }
}

static n2ce_status place_tiles(n2_plan *p) {
    double tiles = 0; /* numbers */
    for (size_t s = 0; s < p->n_steps; s++) {
        if (p->steps[s].kind != N2_STEP_ROWS) continue;
        n2_arena scratch = n2_arena_new(p->ctx);
        const n2ce_status status = place_in_tile(p, (int)s, &scratch);
        n2_arena_free(&scratch);
        N2_TRY(status);
        choose_tile(p, &p->steps[s]);
        tiles += (double)p->steps[s].tile_rows * (double)p->steps[s].tile_numbers;
    }
    return check_countable(p, tiles * (double)p->backend->bytes);
}

/* ---- instructions -------------------------------------------------------- */

/* By rows, or as a whole. */
static n2_operand operand(const n2_plan *p, uint32_t id, bool by_rows) {
    const uint32_t root = p->nodes[id].root;
    const n2_planned *r = &p->nodes[root];
    n2_operand o = {.base = r->data, .tile = r->place, .shape = n2_node_at(p, id)->shape};
    o.by_rows = by_rows;
    o.dtype = r->dtype;
    const size_t bytes = n2_dtype_bytes(o.dtype, p->backend->bytes);
    if (by_rows) o.row_bytes = n2_elements(o.shape) / o.shape.dim[0] * (int64_t)bytes;
    return o;
}

/* What a node adds to the product it absorbed. */
static void encode_absorber(const n2_plan *p, uint32_t id, n2_instruction *out) {
    const n2_node_data *d = n2_node_at(p, id);
    const uint32_t other = d->in[d->in[0].id == p->nodes[id].absorbs].id;
    const bool gate = p->nodes[id].epilogue == N2_GATE_PRODUCT;
    *(gate ? &out->gate : &out->addend) = operand(p, other, true);
    if (gate) out->slope = d->attr->a;
    out->flops += n2_flops(p->graph, d);
}

/* The instruction that makes a node, with what the node absorbed. */
static void encode(const n2_plan *p, uint32_t id, n2_instruction *out) {
    *out = (n2_instruction){.out = operand(p, id, p->nodes[id].rows == N2_ROWS_MAP), .made = id};
    for (; p->nodes[id].absorbs; id = p->nodes[id].absorbs) encode_absorber(p, id, out);
    const n2_planned *n = &p->nodes[id];
    const n2_node_data *d = n2_node_at(p, id);
    out->kernel = p->backend->kernel[d->op->id];
    out->node = d;
    out->id = id;
    for (int k = 0; k < d->n_in; k++)
        if (is_live_input(p, d, k))
            out->in[k] = operand(p, d->in[k].id, n->rows != N2_ROWS_WHOLE && n->row_input[k]);
    if (n->rows == N2_ROWS_FOLD) {
        out->partials = p->block + n->partials;
        out->fold_numbers = (size_t)n2_elements(d->shape);
    }
    out->flops += n2_flops(p->graph, d);
}

static n2ce_status make_code(n2_plan *p) {
    for (size_t s = 0; s < p->n_steps; s++) {
        n2_step *step = &p->steps[s];
        step->code = n2_arena_alloc(&p->arena, step->n_code + 1, sizeof *step->code);
        if (!step->code) return N2CE_ENOMEM;
        step->n_code = 0;
    }
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        const n2_planned *n = &p->nodes[id];
        if (!n->live || is_view(p, id) || n2_is_leaf(n2_node_at(p, id)->op->id)) continue;
        if (n->absorbed) continue;
        n2_step *step = &p->steps[n->step];
        const size_t at = step->kind == N2_STEP_ROWS ? (size_t)n->order : step->n_code;
        encode(p, id, &step->code[at]);
        step->flops += step->code[at].flops;
        step->n_code++;
    }
    return N2CE_OK;
}

/* ---- memory of workers --------------------------------------------------- */

/* Scratch memory that a call of a node's kernel wants, by a tile or as a whole. */
static size_t scratch_of(const n2_plan *p, uint32_t id) {
    const n2_planned *n = &p->nodes[id];
    const n2_node_data *d = n2_node_at(p, id);
    n2_scratch *wants = p->backend->scratch ? p->backend->scratch[d->op->id] : NULL;
    if (!wants) return 0;
    const int64_t rows = p->steps[n->step].tile_rows;
    n2_call call = {.node = d, .parts = 1, .out = {.shape = d->shape, .dtype = n->dtype}};
    if (n->rows == N2_ROWS_MAP) call.out.shape.dim[0] = rows;
    for (int k = 0; k < d->n_in; k++) {
        if (!is_live_input(p, d, k)) continue;
        call.in[k].shape = n2_shape_at(p->graph, d->in[k]);
        call.in[k].dtype = p->nodes[p->nodes[d->in[k].id].root].dtype;
        if (n->rows != N2_ROWS_WHOLE && n->row_input[k]) call.in[k].shape.dim[0] = rows;
    }
    return (size_t)wants(&call) * p->backend->bytes;
}

/* Every worker has a tile and, behind it, scratch memory for the call it is at. */
static n2ce_status measure_workers(n2_plan *p) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        if (!p->nodes[id].live || !n2_needs_kernel(n2_node_at(p, id)->op->id)) continue;
        const size_t bytes = scratch_of(p, id);
        if (bytes > p->scratch_bytes) p->scratch_bytes = bytes;
    }
    p->tile_bytes = round_up(p->tile_bytes, N2_ALIGN);
    p->workers = p->device ? 1 : n2_ctx_threads(p->ctx);
    p->tiles = n2_arena_alloc(&p->arena, (size_t)p->workers, sizeof *p->tiles);
    return p->tiles ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status make_workers(n2_plan *p) {
    for (int w = 0; w < p->workers; w++)
        N2_TRY(n2_plan_alloc(p, p->tile_bytes + p->scratch_bytes + N2_ALIGN, &p->tiles[w]));
    return N2CE_OK;
}

n2ce_status n2_plan_places(n2_plan *p) {
    find_lifetimes(p);
    N2_TRY(place_values(p));
    N2_TRY(place_tiles(p));
    return measure_workers(p);
}

n2ce_status n2_plan_memory(n2_plan *p) {
    N2_TRY(n2_plan_mirror(p));
    N2_TRY(make_block(p));
    N2_TRY(make_code(p));
    return make_workers(p);
}
