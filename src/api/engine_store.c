/* Shapes, stores, tensors, graphs: what n2ce_engine.h begins with. */
#include "engine_types.h"

#include "rewrite/rewrites.h"

/* ---- shapes -------------------------------------------------------------- */

/* Too many axes become a shape that nothing accepts. */
n2ce_shape n2ce_shape_of(const int64_t *dims, size_t rank) {
    if (rank > N2CE_MAX_RANK) return (n2ce_shape){.rank = 1, .dim = {-1}};
    n2ce_shape shape = {.rank = (int)rank};
    for (size_t i = 0; i < rank; i++) shape.dim[i] = dims[i];
    return shape;
}

int64_t n2ce_shape_elements(n2ce_shape shape) {
    int64_t n = 1;
    for (int i = 0; i < shape.rank && i < N2CE_MAX_RANK; i++)
        if (__builtin_mul_overflow(n, shape.dim[i], &n)) return -1;
    return n;
}

n2_shape n2_shape_in(n2ce_shape shape) {
    const bool possible = shape.rank >= 0 && shape.rank <= N2CE_MAX_RANK;
    return n2_shape_of(shape.dim, possible ? (size_t)shape.rank : N2CE_MAX_RANK + 1);
}

n2ce_shape n2_shape_out(n2_shape shape) { return n2ce_shape_of(shape.dim, (size_t)shape.rank); }

/* ---- the store ----------------------------------------------------------- */

n2ce_status n2ce_store_new(n2ce_ctx *ctx, n2ce_store **out) {
    n2ce_store *store = *out = n2_alloc(ctx, 1, sizeof *store);
    if (!store) return N2CE_ENOMEM;
    store->arena = n2_arena_new(ctx);
    const n2ce_status status = n2_store_new(ctx, sizeof(float), &store->tensors);
    if (status == N2CE_OK) return N2CE_OK;
    n2_free(ctx, store);
    *out = NULL;
    return status;
}

void n2ce_store_free(n2ce_store *store) {
    if (!store) return;
    n2ce_ctx *ctx = n2_store_ctx(store->tensors);
    n2_arena_free(&store->arena);
    n2_store_free(store->tensors);
    n2_free(ctx, store);
}

n2ce_tensor *n2ce_store_add(n2ce_store *store, const char *name, n2ce_shape shape) {
    if (!store) return NULL;
    if (!name) {
        n2_fail(n2_store_ctx(store->tensors), N2CE_EINVAL, "A tensor needs a name, not NULL.");
        return NULL;
    }
    return n2_tensor_out(n2_store_add(store->tensors, name, n2_shape_in(shape)));
}

n2ce_tensor *n2ce_store_find(const n2ce_store *store, const char *name) {
    return n2_tensor_out(store && name ? n2_store_find(store->tensors, name) : NULL);
}

n2ce_tensor *n2ce_store_at(const n2ce_store *store, size_t index) {
    return n2_tensor_out(store ? n2_store_at(store->tensors, index) : NULL);
}

const char *n2ce_tensor_name(const n2ce_tensor *tensor) {
    return tensor ? ((const n2_tensor *)tensor)->name : NULL;
}

n2ce_shape n2ce_tensor_shape(const n2ce_tensor *tensor) {
    return tensor ? n2_shape_out(((const n2_tensor *)tensor)->shape) : N2CE_SCALAR;
}

/* ---- values of tensors --------------------------------------------------- */

static bool owns(const n2_store *store, const n2_tensor *t) {
    return t && n2_store_at(store, t->index) == t;
}

static n2ce_status check_tensor(const n2ce_store *store, const n2_tensor *t, const void *values) {
    if (!store) return N2CE_EINVAL;
    if (owns(store->tensors, t) && (values || !n2_elements(t->shape))) return N2CE_OK;
    if (owns(store->tensors, t))
        return n2_fail(n2_store_ctx(store->tensors), N2CE_EINVAL,
                       "The values of the tensor \"%s\" are NULL.", t->name);
    return n2_fail(n2_store_ctx(store->tensors), N2CE_EINVAL,
                   t ? "The tensor belongs to another store."
                     : "The tensor is NULL: see what made it.");
}

n2ce_status n2ce_tensor_set(n2ce_store *store, n2ce_tensor *tensor, const double *values) {
    n2_tensor *t = n2_tensor_in(tensor);
    N2_TRY(check_tensor(store, t, values));
    n2_tensor_set(store->tensors, t, values);
    return N2CE_OK;
}

n2ce_status n2ce_tensor_get(n2ce_store *store, const n2ce_tensor *tensor, double *values) {
    const n2_tensor *t = (const n2_tensor *)tensor;
    N2_TRY(check_tensor(store, t, values));
    N2_TRY(n2_tensor_pull(store->tensors, t));
    n2_tensor_get(store->tensors, t, values);
    return N2CE_OK;
}

static size_t size_of(n2ce_dtype type) {
    return type == N2CE_U8 ? 1 : type == N2CE_F32 || type == N2CE_I32 ? 4 : 8;
}

static double element(const void *at, n2ce_dtype type) {
    switch (type) {
    case N2CE_F64:
        return *(const double *)at;
    case N2CE_F32:
        return (double)*(const float *)at;
    case N2CE_I64:
        return (double)*(const int64_t *)at;
    case N2CE_I32:
        return *(const int32_t *)at;
    case N2CE_U8:
        return *(const uint8_t *)at;
    }
    return 0;
}

static void read_matrix(const n2ce_matrix *m, double *values) {
    const bool dense = !m->row_stride && !m->col_stride;
    const ptrdiff_t across = dense ? (ptrdiff_t)size_of(m->type) : m->col_stride;
    const ptrdiff_t down = dense ? across * (ptrdiff_t)m->cols : m->row_stride;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++)
            *values++ = element((const char *)m->data + (ptrdiff_t)i * down + (ptrdiff_t)j * across,
                                m->type);
}

static n2ce_status check_matrix(n2ce_ctx *ctx, const n2_tensor *t, const n2ce_matrix *m) {
    const size_t rows = t->shape.rank ? (size_t)t->shape.dim[0] : 1;
    char text[64];
    if (m->type < N2CE_F64 || m->type > N2CE_U8)
        return n2_fail(ctx, N2CE_EINVAL, "The type of the matrix, %d, is none of n2ce_dtype.",
                       (int)m->type);
    const size_t n = (size_t)n2_elements(t->shape);
    if (m->rows == rows && (n ? m->cols == n / rows : !(m->rows && m->cols))) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "A matrix of %zu x %zu does not fit the tensor \"%s\" %s.",
                   m->rows, m->cols, t->name, n2_shape_text(t->shape, text));
}

n2ce_status n2ce_tensor_set_matrix(n2ce_store *store, n2ce_tensor *tensor,
                                   const n2ce_matrix *matrix) {
    n2_tensor *t = n2_tensor_in(tensor);
    N2_TRY(check_tensor(store, t, matrix ? matrix->data : NULL));
    n2ce_ctx *ctx = n2_store_ctx(store->tensors);
    N2_TRY(check_matrix(ctx, t, matrix));
    double *values = n2_alloc(ctx, (size_t)n2_elements(t->shape), sizeof *values);
    if (!values) return N2CE_ENOMEM;
    read_matrix(matrix, values);
    n2_tensor_set(store->tensors, t, values);
    n2_free(ctx, values);
    return N2CE_OK;
}

/* ---- the graph ----------------------------------------------------------- */

n2ce_status n2ce_graph_new(n2ce_store *store, n2ce_graph **out) {
    *out = NULL;
    if (!store) return N2CE_EINVAL;
    *out = n2_graph_out(n2_graph_new(store->tensors));
    return *out ? N2CE_OK : N2CE_ENOMEM;
}

void n2ce_graph_free(n2ce_graph *g) { n2_graph_free(n2_graph_in(g)); }

n2ce_status n2ce_graph_status(const n2ce_graph *g) {
    return g ? n2_graph_status((const n2_graph *)g) : N2CE_EINVAL;
}

n2ce_shape n2ce_node_shape(const n2ce_graph *g, n2ce_node x) {
    const n2_graph *graph = (const n2_graph *)g;
    if (!g) return N2CE_SCALAR;
    const bool known = x.id <= n2_graph_size(graph);
    return n2_shape_out(n2_shape_at(graph, known ? (n2_node){x.id} : N2_NONE));
}

n2ce_node n2ce_built_at(n2ce_graph *g, n2ce_node node, const char *file, int line) {
    if (!g) return N2CE_NONE;
    return n2_node_out(n2_built_here(n2_graph_in(g), (n2_node){node.id}, file, line));
}

void n2ce_done_at(n2ce_graph *g, const char *file, int line) {
    if (g) n2_built_here(n2_graph_in(g), N2_NONE, file, line);
}

n2_node n2_node_in(n2ce_graph *g, n2ce_node x) {
    if (!g) return N2_NONE;
    if (x.id && x.id <= n2_graph_size(n2_graph_in(g))) return (n2_node){x.id};
    return n2_graph_fail(n2_graph_in(g), x.id ? "an operand is a node of another graph"
                                              : "an operand is missing: its node is none");
}

bool n2_tensor_fits(n2ce_graph *g, const n2ce_tensor *tensor) {
    if (!g) return false;
    n2_graph *graph = n2_graph_in(g);
    const n2_tensor *t = (const n2_tensor *)tensor;
    n2ce_ctx *ctx = n2_store_ctx(n2_graph_store(graph));
    if (owns(n2_graph_store(graph), t)) return true;
    if (t)
        n2_graph_fail(graph, "the tensor \"%s\" belongs to another store", t->name);
    else
        n2_graph_fail(graph, "the tensor is NULL. %s", n2ce_errmsg(ctx));
    return false;
}
