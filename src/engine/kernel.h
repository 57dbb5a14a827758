/* What a backend provides: one kernel per op, found by the op's id.
 *
 * A kernel is called for a whole node, or for a tile of consecutive rows of it. Views
 * are contiguous and row-major; the shapes are those of the tile. */
#ifndef N2_KERNEL_H
#define N2_KERNEL_H

#include "device.h"
#include "graph.h"

typedef struct n2_view {
    void *data;
    n2_shape shape;
    n2_dtype dtype; /* how it lies in memory: as numbers, or in 16 bits */
} n2_view;

typedef struct n2_call {
    const n2_node_data *node; /* attributes; its shape is that of all rows */
    n2_view out, in[N2_MAX_INPUTS];
    int64_t row0; /* number of the tile's first row: for random numbers and indices */
    bool add;     /* sums over rows: add to out what this tile contributes */
    uint64_t seed;
    uint32_t step;
    int part, parts; /* which part of a whole node is asked for, if the op is split */
    void *work;      /* scratch memory of this worker, see n2_scratch */
    /* What a matrix product does on its way out, in this order; NULL: nothing. Both have
     * the shape of out: multiply by slope where gate is not positive; add. */
    const void *gate, *addend;
    double slope;
    /* On a device: where to note the work, and how many of the state's watched numbers must
     * be finite for an update to be made. Seed and step are in the state. */
    n2_queue *queue;
    uint32_t guards;
    bool kept; /* out is read after the run, not only by other kernels */
} n2_call;

typedef void n2_kernel(const n2_call *call);

/* Numbers of scratch memory that a kernel wants in call.work for a call with these shapes, which
 * are those of a tile if it runs by rows; the views have no data. */
typedef int64_t n2_scratch(const n2_call *call);

/* What an op's kernel can do with values in 16 bits, by bits: bit k is input k. */
typedef struct n2_storage {
    uint8_t reads;  /* inputs that may lie in memory so */
    uint8_t wants;  /* inputs that had better: convolutions, norms */
    bool writes;    /* its output may */
    bool passes_on; /* as its output lies, its inputs had better: element-wise ops */
} n2_storage;

typedef struct n2_backend {
    const char *name;
    size_t bytes;               /* of a number: 4 or 8 */
    bool row_programs;          /* tile by tile, with gate and addend; else node by node */
    n2_kernel *const *kernel;   /* by op id; NULL where the planner needs none */
    n2_scratch *const *scratch; /* by op id; NULL: none, or no table if no op wants any */
    const bool *split;          /* by op id: whole nodes are shared between workers */
    /* Nodes of rows that had better be done as a whole: all rows at once, outside row programs.
     * NULL: none. */
    bool (*whole)(const n2_graph *g, const n2_node_data *node);
    bool unpacked;     /* products read in[1], never the transposed in[2] */
    n2_device *device; /* NULL: values are in the host's memory */
    int64_t most_tile; /* rows of a tile; 0: what suits a processor's cache */
    size_t tile_bytes; /* of all values of a tile */
    /* How values that a kernel wants in 16 bits lie in memory (plan_storage.c); N2_NUMBER: as all
     * others. By op id. */
    n2_dtype narrow;
    const n2_storage *storage;
} n2_backend;

/* Elements, rows, or whatever is split. */
typedef struct n2_range {
    int64_t begin, end;
} n2_range;

/* Part of n: parts begin at multiples of 16, so that of numbers no two are in a cache line. */
static inline n2_range n2_part_of(int64_t n, int part, int parts) {
    const int64_t lines = (n + 15) / 16, begin = lines * part / parts * 16;
    const int64_t end = lines * (part + 1) / parts * 16;
    return (n2_range){begin < n ? begin : n, end < n ? end : n};
}

/* The elements of the output that a call asks for, if the op is split by elements. */
static inline n2_range n2_elements_of(const n2_call *c) {
    return n2_part_of(n2_elements(c->out.shape), c->part, c->parts);
}

/* A matrix product as its kernels see it: leading axes are batches. */
typedef struct n2_product {
    bool ta, tb;
    int64_t batches, m, n, k;
} n2_product;

static inline n2_product n2_product_of(const n2_call *c) {
    const n2_shape a = c->in[0].shape, o = c->out.shape;
    const bool ta = c->node->attr->matmul.transpose_a, tb = c->node->attr->matmul.transpose_b;
    n2_product p = {ta, tb, 1, o.dim[o.rank - 2], o.dim[o.rank - 1], a.dim[a.rank - 1 - ta]};
    for (int i = 0; i < o.rank - 2; i++) p.batches *= o.dim[i];
    return p;
}

/* A convolution as its kernels see it, of all three ops: x [n x h x w x c_in], kernel
 * [rows x columns x c_in x c_out], y [n x oh x ow x c_out]. */
typedef struct n2_conv {
    int64_t n, h, w, c_in, rows, columns, oh, ow, c_out;
    n2_window window;
} n2_conv;

static inline n2_conv n2_conv_of(const n2_call *c) {
    const n2_op_id op = c->node->op->id;
    const n2_shape x = op == N2_OP_conv2d_input ? c->out.shape : c->in[0].shape;
    const n2_shape k = op == N2_OP_conv2d_weight ? c->out.shape : c->in[1].shape;
    const n2_shape y = op == N2_OP_conv2d         ? c->out.shape
                       : op == N2_OP_conv2d_input ? c->in[0].shape
                                                  : c->in[1].shape;
    const n2_conv v = {x.dim[0], x.dim[1], x.dim[2], x.dim[3], k.dim[0],
                       k.dim[1], y.dim[1], y.dim[2], y.dim[3], c->node->attr->window};
    return v;
}

/* Attention as its kernels see it: of one head, element (i, e) of q is at i step + e, of k c
 * numbers further, of v 2 c. Heads are d numbers apart, pictures t step. */
typedef struct n2_attention {
    int64_t n, t, heads, d, c, step;
} n2_attention;

static inline n2_attention n2_attention_of(const n2_call *c) {
    const n2_shape s = c->in[0].shape;
    const int64_t heads = c->node->attr->attention.heads, all = s.dim[2] / 3;
    return (n2_attention){s.dim[0], s.dim[1], heads, all / heads, all, s.dim[2]};
}

/* A norm as its kernels see it, of all three ops: x is [n x positions x c]. */
typedef struct n2_normed {
    int64_t n, positions, c, each; /* each: channels of a group */
} n2_normed;

static inline n2_normed n2_normed_of(const n2_call *c) {
    const n2_shape x = c->in[0].shape;
    n2_normed v = {x.dim[0], 1, x.dim[x.rank - 1], 0};
    for (int i = 1; i < x.rank - 1; i++) v.positions *= x.dim[i];
    v.each = v.c / c->node->attr->norm.groups;
    return v;
}

/* Numbers from a picture's shift, gamma or beta, which is input k, to the next one's. */
static inline int64_t n2_norm_step(const n2_call *c, int k) {
    return c->in[k].shape.rank == 2 ? c->in[k].shape.dim[1] : 0;
}

/* "cpu", whatever its instruction set, or the name of a device's backend. */
static inline const char *n2_backend_device(const n2_backend *b) {
    return b->device ? b->name : "cpu";
}

#endif
