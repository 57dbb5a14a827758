#include "graph.h"

#include "base/pool.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- shapes -------------------------------------------------------------- */

/* Too many axes become a shape that nothing accepts. */
n2_shape n2_shape_of(const int64_t *dims, size_t rank) {
    if (rank > N2_MAX_RANK) return (n2_shape){.rank = 1, .dim = {-1}};
    n2_shape s = {.rank = (int)rank};
    for (size_t i = 0; i < rank; i++) s.dim[i] = dims[i];
    return s;
}

bool n2_is_possible(n2_shape s) {
    int64_t bytes = sizeof(double);
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] < 0 || __builtin_mul_overflow(bytes, s.dim[i] ? s.dim[i] : 1, &bytes))
            return false;
    return true;
}

n2_shape n2_scalar_shape(void) { return (n2_shape){.rank = 0}; }

int64_t n2_elements(n2_shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    return n;
}

bool n2_same_shape(n2_shape a, n2_shape b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dim[i] != b.dim[i]) return false;
    return true;
}

const char *n2_shape_text(n2_shape s, char buffer[64]) {
    size_t at = 0;
    buffer[at++] = '[';
    for (int i = 0; i < s.rank; i++) {
        char one[32];
        const size_t n =
            (size_t)snprintf(one, sizeof one, i ? " x %lld" : "%lld", (long long)s.dim[i]);
        if (at + n > 62) break; /* room for the end */
        memcpy(buffer + at, one, n);
        at += n;
    }
    buffer[at] = ']';
    buffer[at + 1] = '\0';
    return buffer;
}

/* ---- the store ----------------------------------------------------------- */

struct n2_store {
    n2ce_ctx *ctx;
    size_t bytes;
    n2_arena arena;
    n2_tensor **tensors;
    size_t n, capacity;
    bool has_copies; /* on devices */
};

n2ce_status n2_store_new(n2ce_ctx *ctx, size_t bytes, n2_store **out) {
    *out = n2_alloc(ctx, 1, sizeof **out);
    if (!*out) return N2CE_ENOMEM;
    (*out)->ctx = ctx;
    (*out)->bytes = bytes;
    (*out)->arena = n2_arena_new(ctx);
    return N2CE_OK;
}

static void leave_devices(n2_tensor *t) {
    for (size_t k = 0; k < t->n_copies; k++)
        t->copies[k].device->free(t->copies[k].device, t->copies[k].memory);
    t->n_copies = 0;
    t->host_is_stale = false;
}

void n2_store_leave_devices(n2_store *store) {
    for (size_t i = 0; i < store->n; i++) leave_devices(store->tensors[i]);
    store->has_copies = false;
}

void n2_store_free(n2_store *store) {
    if (!store) return;
    n2_store_leave_devices(store);
    n2_arena_free(&store->arena);
    n2_free(store->ctx, store->tensors);
    n2_free(store->ctx, store);
}

n2_tensor *n2_store_add(n2_store *store, const char *name, n2_shape shape) {
    return n2_store_add_as(store, name, shape, N2_NUMBER);
}

n2_tensor *n2_store_add_as(n2_store *store, const char *name, n2_shape shape, n2_dtype dtype) {
    char text[64];
    if (!n2_is_possible(shape)) {
        n2_fail(store->ctx, N2CE_EINVAL, "The tensor \"%s\" cannot have the shape %s.", name,
                n2_shape_text(shape, text));
        return NULL;
    }
    if (n2_store_find(store, name)) {
        n2_fail(store->ctx, N2CE_EINVAL, "There are two tensors named \"%s\".", name);
        return NULL;
    }
    if (store->n == store->capacity) {
        const size_t capacity = store->capacity ? 2 * store->capacity : 64;
        n2_tensor **grown = n2_realloc(store->ctx, store->tensors, capacity, sizeof *grown);
        if (!grown) return NULL;
        store->tensors = grown;
        store->capacity = capacity;
    }
    n2_tensor *t = n2_arena_alloc(&store->arena, 1, sizeof *t);
    if (!t) return NULL;
    t->name = n2_arena_strdup(&store->arena, name);
    t->data = n2_arena_alloc(&store->arena, (size_t)n2_elements(shape),
                             n2_dtype_bytes(dtype, store->bytes));
    if (!t->name || !t->data) return NULL;
    t->shape = shape;
    t->dtype = dtype;
    t->index = store->n;
    store->tensors[store->n++] = t;
    return t;
}

n2_tensor *n2_store_add_blank(n2_store *store, const char *name, n2_shape shape) {
    n2_tensor *t = n2_store_add(store, name, shape);
    if (t) t->blank = true;
    return t;
}

n2_tensor *n2_store_at(const n2_store *store, size_t index) {
    return index < store->n ? store->tensors[index] : NULL;
}

n2_tensor *n2_store_find(const n2_store *store, const char *name) {
    for (size_t i = 0; i < store->n; i++)
        if (strcmp(store->tensors[i]->name, name) == 0) return store->tensors[i];
    return NULL;
}

void *n2_store_alloc(n2_store *store, size_t n, size_t size) {
    return n2_arena_alloc(&store->arena, n ? n : 1, size);
}

n2ce_ctx *n2_store_ctx(const n2_store *store) { return store->ctx; }
size_t n2_store_bytes(const n2_store *store) { return store->bytes; }

/* ---- copies on a device -------------------------------------------------- */

size_t n2_tensor_bytes(const n2_store *store, const n2_tensor *t) {
    return (size_t)n2_elements(t->shape) * n2_dtype_bytes(t->dtype, store->bytes);
}

bool n2_store_has_copies(const n2_store *store) { return store->has_copies; }

static n2_copy *copy_on(const n2_tensor *t, const n2_device *device) {
    for (size_t k = 0; k < t->n_copies; k++)
        if (t->copies[k].device == device) return &t->copies[k];
    return NULL;
}

void *n2_tensor_on(const n2_tensor *t, const n2_device *device) {
    const n2_copy *copy = copy_on(t, device);
    return copy ? copy->memory : NULL;
}

n2ce_status n2_tensor_mirror(n2_store *store, n2_tensor *t, n2_device *device) {
    if (copy_on(t, device)) return N2CE_OK;
    n2_copy *copies = n2_arena_alloc(&store->arena, t->n_copies + 1, sizeof *copies);
    if (!copies) return N2CE_ENOMEM;
    if (t->n_copies > 0) memcpy(copies, t->copies, t->n_copies * sizeof *copies);
    const bool zeros = t->blank && !t->host_is_stale; /* which a device's memory begins with */
    n2_copy *copy = &copies[t->n_copies];
    *copy = (n2_copy){.device = device, .is_stale = !zeros};
    N2_TRY(device->alloc(device, store->ctx, n2_tensor_bytes(store, t), &copy->memory));
    t->copies = copies;
    t->n_copies++;
    store->has_copies = true;
    return N2CE_OK;
}

n2ce_status n2_tensor_upload(const n2_store *store, n2_tensor *t, const n2_device *device) {
    n2_copy *copy = copy_on(t, device);
    if (!copy || !copy->is_stale) return N2CE_OK;
    N2_TRY(n2_tensor_pull(store, t));
    copy->is_stale = false;
    return copy->device->upload(copy->device, store->ctx, copy->memory, t->data,
                                n2_tensor_bytes(store, t));
}

void n2_tensor_wrote(n2_tensor *t, const n2_device *device) {
    t->host_is_stale = true;
    for (size_t k = 0; k < t->n_copies; k++) t->copies[k].is_stale = t->copies[k].device != device;
}

/* Which copy is newer is no part of a tensor's value: const stays const for callers. */
n2ce_status n2_tensor_pull(const n2_store *store, const n2_tensor *t) {
    if (!t->host_is_stale) return N2CE_OK;
    store->tensors[t->index]->host_is_stale = false;
    const n2_copy *from = t->copies;
    while (from->is_stale) from++;
    return from->device->download(from->device, store->ctx, t->data, from->memory,
                                  n2_tensor_bytes(store, t));
}

void n2_tensor_push(const n2_store *store, n2_tensor *t) {
    (void)store;
    t->host_is_stale = t->blank = false;
    for (size_t k = 0; k < t->n_copies; k++) t->copies[k].is_stale = true;
}

typedef struct write_job {
    n2_rows_fn *write;
    void *arg;
    size_t first, rows, row_bytes, each; /* each: rows an item */
    char *out;
} write_job;

static void write_some(void *arg, size_t item, int worker) {
    (void)worker;
    const write_job *job = arg;
    const size_t begin = item * job->each, left = job->rows - begin;
    job->write(job->arg, job->first + begin, left < job->each ? left : job->each,
               job->out + begin * job->row_bytes);
}

n2ce_status n2_write_rows(n2ce_ctx *ctx, n2_rows_fn *write, void *arg, size_t first, size_t n,
                          size_t row_bytes, void *out) {
    enum { PIECE = 256 << 10 }; /* bytes an item */
    const size_t each = row_bytes < PIECE ? PIECE / row_bytes : 1;
    write_job job = {write, arg, first, n, row_bytes, each, out};
    return n2_parallel_for(ctx, (n + each - 1) / each, write_some, &job);
}

n2ce_status n2_tensor_fill(const n2_store *store, n2_tensor *t, n2_rows_fn *write, void *arg) {
    const size_t rows = (size_t)t->shape.dim[0], bytes = n2_tensor_bytes(store, t);
    if (bytes == 0) return N2CE_OK;
    const n2_copy *only = t->n_copies == 1 ? t->copies : NULL;
    if (only)
        N2_TRY(only->device->fill(only->device, store->ctx, only->memory, rows, bytes / rows, write,
                                  arg));
    else
        N2_TRY(n2_write_rows(store->ctx, write, arg, 0, rows, bytes / rows, t->data));
    n2_tensor_push(store, t);
    if (only) n2_tensor_wrote(t, only->device);
    return N2CE_OK;
}

void n2_tensor_set(const n2_store *store, n2_tensor *t, const double *values) {
    const int64_t n = n2_elements(t->shape);
    n2_tensor_push(store, t);
    for (int64_t i = 0; i < n; i++)
        n2_store_number(t->data, t->dtype, store->bytes, (size_t)i, values[i]);
}

void n2_tensor_get(const n2_store *store, const n2_tensor *t, double *values) {
    const int64_t n = n2_elements(t->shape);
    n2_tensor_pull(store, t);
    for (int64_t i = 0; i < n; i++)
        values[i] = n2_load_number(t->data, t->dtype, store->bytes, (size_t)i);
}

/* ---- the graph ----------------------------------------------------------- */

struct n2_graph {
    n2_store *store;
    n2ce_ctx *ctx;
    const n2_rewrites *rewrites; /* NULL: none */
    n2_node_data *nodes;         /* nodes[id - 1] */
    uint32_t n, capacity;
    uint32_t *table; /* hash table of ids, open addressing, capacity a power of two */
    uint32_t table_size;
    n2_arena attrs;
    n2_node *current; /* per tensor: the node that holds its value now */
    size_t n_current;
    n2ce_status status;
    uint32_t n_sweeps, sweep; /* gradients so far; the one that is being built, 0: none */
    uint32_t noted;           /* nodes whose line is known */
    char mistake[256];        /* the first, and who made it; line 0: not known yet */
    const char *mistake_file;
    int mistake_line;
};

n2_graph *n2_graph_with(n2_store *store, const n2_rewrites *rewrites) {
    n2_graph *g = n2_alloc(store->ctx, 1, sizeof *g);
    if (!g) return NULL;
    g->store = store;
    g->ctx = store->ctx;
    g->rewrites = rewrites;
    g->attrs = n2_arena_new(g->ctx);
    return g;
}

const n2_rewrites *n2_graph_set_rewrites(n2_graph *g, const n2_rewrites *rewrites) {
    const n2_rewrites *before = g->rewrites;
    g->rewrites = rewrites;
    return before;
}

n2_graph *n2_graph_like(const n2_graph *g) { return n2_graph_with(g->store, g->rewrites); }

void n2_graph_free(n2_graph *g) {
    if (!g) return;
    n2_free(g->ctx, g->nodes);
    n2_free(g->ctx, g->table);
    n2_free(g->ctx, g->current);
    n2_arena_free(&g->attrs);
    n2_free(g->ctx, g);
}

n2ce_status n2_graph_status(const n2_graph *g) { return g->status; }
n2_store *n2_graph_store(const n2_graph *g) { return g->store; }
uint32_t n2_graph_size(const n2_graph *g) { return g->n; }
const n2_node_data *n2_at(const n2_graph *g, n2_node x) { return &g->nodes[x.id - 1]; }
n2_shape n2_shape_at(const n2_graph *g, n2_node x) {
    return x.id ? g->nodes[x.id - 1].shape : n2_scalar_shape();
}
n2_node n2_input(const n2_graph *g, n2_node x, int k) { return g->nodes[x.id - 1].in[k]; }
n2_op_id n2_op_of(const n2_graph *g, n2_node x) { return g->nodes[x.id - 1].op->id; }

n2ce_status n2_graph_tell(const n2_graph *g) {
    if (!g->mistake_line) return g->status;
    return n2_fail(g->ctx, g->status, "%s:%d: %s", g->mistake_file, g->mistake_line, g->mistake);
}

/* Nodes are appended, so those without a line are the last ones. */
n2_node n2_built_here(n2_graph *g, n2_node node, const char *file, int line) {
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    for (; g->noted < g->n; g->noted++) {
        g->nodes[g->noted].file = name;
        g->nodes[g->noted].line = line;
    }
    if (g->mistake[0] && !g->mistake_line) {
        g->mistake_file = name;
        g->mistake_line = line;
        (void)n2_graph_tell(g);
    }
    return node;
}

n2_node n2_graph_fail(n2_graph *g, const char *format, ...) {
    if (g->status != N2CE_OK) return N2_NONE; /* the first mistake is the one to tell */
    va_list args;
    va_start(args, format);
    vsnprintf(g->mistake, sizeof g->mistake, format, args);
    va_end(args);
    g->status = n2_fail(g->ctx, N2CE_EINVAL, "%s", g->mistake);
    return N2_NONE;
}

bool n2_graph_out_of_memory(n2_graph *g) {
    if (g->status == N2CE_OK) g->status = N2CE_ENOMEM;
    return false;
}

void n2_build_watch(n2_graph *g, n2_node x) {
    char text[64];
    if (!x.id) return;
    if (n2_elements(n2_shape_at(g, x)) == 1 && n2_at(g, x)->dtype == N2_NUMBER)
        g->nodes[x.id - 1].watched = true;
    else
        n2_graph_fail(g, "watch: one number only, not %s", n2_shape_text(n2_shape_at(g, x), text));
}

/* ---- finding equal nodes ------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t x) {
    h ^= x + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
    return h * 0xFF51AFD7ED558CCDu;
}

static const n2_attr no_attr;

static uint64_t hash_node(const n2_node_data *d) {
    uint64_t h = (uint64_t)d->op->id;
    for (int i = 0; i < d->n_in; i++) h = mix(h, d->in[i].id);
    for (int i = 0; i < d->shape.rank; i++) h = mix(h, (uint64_t)d->shape.dim[i]);
    uint64_t words[offsetof(n2_attr, tensor) / sizeof(uint64_t)];
    memcpy(words, d->attr, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) h = mix(h, words[i]);
    return h ^ (h >> 29);
}

static bool same_node(const n2_node_data *a, const n2_node_data *b) {
    return a->op == b->op && a->n_in == b->n_in && memcmp(a->in, b->in, sizeof a->in) == 0 &&
           n2_same_shape(a->shape, b->shape) && memcmp(a->attr, b->attr, sizeof *a->attr) == 0;
}

/* The slot of an equal node, or the empty slot where it belongs. */
static uint32_t *find_slot(const n2_graph *g, const n2_node_data *d) {
    uint32_t at = (uint32_t)hash_node(d) & (g->table_size - 1);
    while (g->table[at] && !same_node(&g->nodes[g->table[at] - 1], d))
        at = (at + 1) & (g->table_size - 1);
    return &g->table[at];
}

static bool grow(n2_graph *g) {
    if (g->n < g->capacity) return true;
    const uint32_t capacity = g->capacity ? 2 * g->capacity : 256;
    n2_node_data *nodes = n2_realloc(g->ctx, g->nodes, capacity, sizeof *nodes);
    if (!nodes) return n2_graph_out_of_memory(g);
    g->nodes = nodes;
    uint32_t *table = n2_alloc(g->ctx, 4 * (size_t)capacity, sizeof *table);
    if (!table) return n2_graph_out_of_memory(g);
    n2_free(g->ctx, g->table);
    g->table = table;
    g->table_size = 4 * capacity;
    g->capacity = capacity;
    for (uint32_t i = 0; i < g->n; i++) *find_slot(g, &g->nodes[i]) = i + 1;
    return true;
}

/* A copy that lives as long as the graph. */
static const n2_attr *keep_attr(n2_graph *g, const n2_attr *attr) {
    n2_attr *kept = n2_arena_alloc(&g->attrs, 1, sizeof *kept);
    if (kept)
        *kept = *attr;
    else
        n2_graph_out_of_memory(g);
    return kept;
}

n2_epilogue n2_graph_fuse(const n2_graph *g, const n2_node_data *node, int k, n2_epilogue done) {
    return g->rewrites && g->rewrites->fuse ? g->rewrites->fuse(g, node, k, done) : N2_NO_EPILOGUE;
}

/* How a node is stored; false: an input in 16 bits does not suit the op. */
static bool set_dtype(n2_graph *g, n2_node_data *d) {
    for (int k = 0; k < d->n_in && !d->op->any_dtype; k++) {
        const n2_dtype type = d->in[k].id ? n2_at(g, d->in[k])->dtype : N2_NUMBER;
        if (type == N2_NUMBER) continue;
        n2_graph_fail(g, "%s: input %d is stored as %s; cast it to N2_NUMBER first", d->op->name, k,
                      n2_dtype_name(type));
        return false;
    }
    const n2_op_id op = d->op->id;
    if (op == N2_OP_cast) d->dtype = (n2_dtype)d->attr->cast.to;
    if (op == N2_OP_reshape || op == N2_OP_detach) d->dtype = n2_at(g, d->in[0])->dtype;
    if (op == N2_OP_tensor || d->op->update) d->dtype = d->attr->tensor[0]->dtype;
    return true;
}

static n2_node rewrite(n2_graph *g, const n2_node_data *node) {
    n2_node y = N2_NONE;
    for (size_t i = 0; g->rewrites && g->rewrites->of_nodes[i] && !y.id; i++)
        y = g->rewrites->of_nodes[i](g, node);
    return y;
}

n2_node n2_emit(n2_graph *g, n2_op_id op, const n2_node *in, int n_in, n2_shape shape,
                const n2_attr *attr) {
    char text[64];
    if (!n2_is_possible(shape))
        return n2_graph_fail(g, "%s: the shape %s is not possible", n2_ops[op]->name,
                             n2_shape_text(shape, text));
    if (g->status != N2CE_OK) return N2_NONE;
    n2_node_data d;
    memset(&d, 0, sizeof d); /* padding too: nodes are compared as bytes */
    d.op = n2_ops[op];
    d.n_in = n_in;
    for (int i = 0; i < n_in; i++) d.in[i] = in[i];
    d.shape = shape;
    d.attr = attr ? attr : &no_attr;
    d.file = "?";
    d.sweep = g->sweep;
    if (!set_dtype(g, &d)) return N2_NONE;
    const n2_node other = rewrite(g, &d);
    if (other.id || g->status != N2CE_OK || !grow(g)) return other;
    const bool mergeable = !d.op->random && !d.op->update && op != N2_OP_tensor;
    uint32_t *slot = mergeable ? find_slot(g, &d) : NULL;
    if (slot && *slot) return (n2_node){*slot};
    if (attr && !(d.attr = keep_attr(g, attr))) return N2_NONE;
    g->nodes[g->n++] = d;
    if (slot) *slot = g->n;
    return (n2_node){g->n};
}

n2_node n2_graph_append(n2_graph *g, const n2_node_data *node) {
    if (g->status != N2CE_OK || !grow(g)) return N2_NONE;
    g->nodes[g->n++] = *node;
    return (n2_node){g->n};
}

void n2_graph_begin_sweep(n2_graph *g) { g->sweep = ++g->n_sweeps; }
void n2_graph_end_sweep(n2_graph *g) { g->sweep = 0; }

/* ---- reading and writing tensors ----------------------------------------- */

static n2_node *current_value(n2_graph *g, const n2_tensor *t) {
    if (t->index >= g->n_current) {
        const size_t n = t->index + 64;
        n2_node *grown = n2_realloc(g->ctx, g->current, n, sizeof *grown);
        if (!grown) {
            n2_graph_out_of_memory(g);
            return NULL;
        }
        memset(grown + g->n_current, 0, (n - g->n_current) * sizeof *grown);
        g->current = grown;
        g->n_current = n;
    }
    return &g->current[t->index];
}

n2_node n2_build_read(n2_graph *g, n2_tensor *t) {
    if (!t) return n2_graph_fail(g, "read: the tensor is NULL (was there memory for it?)");
    n2_node *current = current_value(g, t);
    if (!current) return N2_NONE;
    if (!current->id)
        *current = n2_emit(g, N2_OP_tensor, NULL, 0, t->shape, &(n2_attr){.tensor = {t}});
    return *current;
}

/* Update ops call this: from now on reads see the new value. */
n2_node n2_emit_update(n2_graph *g, n2_op_id op, const n2_node *in, int n_in, const n2_attr *attr) {
    const n2_node y = n2_emit(g, op, in, n_in, attr->tensor[0]->shape, attr);
    n2_node *current = y.id ? current_value(g, attr->tensor[0]) : NULL;
    if (current) *current = y;
    return y;
}
