/* A learning problem as a graph: nodes are data, an op is a row of a table.
 *
 *     n2_graph *g = n2_graph_new(store);      rewrite/rewrites.h
 *     n2_node x   = n2g_randn(g, n2_dims(64, 8));
 *     n2_node y   = n2g_linear(g, x, w, b);
 *     n2_node l   = n2g_mean(g, n2g_mul(g, y, y));
 *     n2_node dw;  n2g_grad(g, l, &w, 1, &dw);
 *     n2g_sgd(...);                            update ops write tensors of the store
 *
 * Nodes are appended and never change; equal pure nodes are built once. A mistake
 * (shapes that do not fit) makes the graph fail: the message names the op, the
 * shapes and the line of the call, every later call does nothing, and compiling the
 * plan returns the status. So building is straight-line code.
 *
 * All values are numbers of the backend's precision (float on cpu, double on ref), unless they
 * are cast to 16 bits for storage; indices too, which is exact for up to 2^24 rows. Tensors are
 * row-major. */
#ifndef N2_GRAPH_H
#define N2_GRAPH_H

#include "base/arena.h"
#include "base/narrow.h"
#include "device.h"

enum { N2_MAX_RANK = 6, N2_MAX_INPUTS = 8, N2_MAX_TENSORS = 3 };

/* ---- shapes ---- */

typedef struct n2_shape {
    int rank;
    int64_t dim[N2_MAX_RANK];
} n2_shape;

#define n2_dims(...) \
    n2_shape_of((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / 8)
n2_shape n2_shape_of(const int64_t *dims, size_t rank);
n2_shape n2_scalar_shape(void);
int64_t n2_elements(n2_shape s);
bool n2_is_possible(n2_shape s); /* no axis is negative; the elements can be counted in bytes */
bool n2_same_shape(n2_shape a, n2_shape b);
const char *n2_shape_text(n2_shape s, char buffer[64]); /* "[128 x 20]" */

/* ---- tensors that persist ---- */

/* A tensor on a device. One copy at least, the host's or a device's, is never stale. */
typedef struct n2_copy {
    n2_device *device;
    void *memory;
    bool is_stale; /* the host or another device has newer numbers */
} n2_copy;

/* Parameters, moments, counters, data sets: what an update op may write, a checkpoint
 * holds and the next run of the plan finds again. */
typedef struct n2_tensor {
    const char *name;
    n2_shape shape;
    n2_dtype dtype;
    void *data;      /* float or double, see the store, or 16 bits; the host's copy */
    size_t index;    /* in the store */
    n2_copy *copies; /* on devices */
    size_t n_copies;
    bool host_is_stale; /* a device has newer numbers */
    bool blank;         /* the host has not written it: a device need not be given its zeros */
    bool is_given;      /* data that who resumes has again: checkpoints are without it */
    bool is_kernel; /* [rows, columns, in, out]; files have PyTorch's [out, in, rows, columns] */
} n2_tensor;

typedef struct n2_store n2_store;

/* `bytes` is 4 (cpu) or 8 (ref). */
n2ce_status n2_store_new(n2ce_ctx *ctx, size_t bytes, n2_store **out);
void n2_store_free(n2_store *store); /* NULL is fine */

/* A zeroed tensor; NULL if memory is short or the name is taken. */
n2_tensor *n2_store_add(n2_store *store, const char *name, n2_shape shape);
/* The same for one that plans alone write, unless the host pushes what it wrote: a device, whose
 * memory begins with zeros too, is spared a copy of them. */
n2_tensor *n2_store_add_blank(n2_store *store, const char *name, n2_shape shape);
/* In 16 bits: a copy of a parameter, say, whose master is a tensor of the backend's numbers. */
n2_tensor *n2_store_add_as(n2_store *store, const char *name, n2_shape shape, n2_dtype dtype);
n2_tensor *n2_store_at(const n2_store *store, size_t index); /* NULL beyond the last */
n2_tensor *n2_store_find(const n2_store *store, const char *name);
/* Zeroed memory that lives as long as the store, for lists of its tensors; NULL: out of memory. */
void *n2_store_alloc(n2_store *store, size_t n, size_t size);
n2ce_ctx *n2_store_ctx(const n2_store *store);
size_t n2_store_bytes(const n2_store *store); /* of a number */
size_t n2_tensor_bytes(const n2_store *store, const n2_tensor *t);

/* ---- tensors with a copy on a device ----
 *
 * A plan on a device gives the tensors it uses a copy there, and plans on several devices may use
 * one store in turn. Until then the host's copy is all there is and the following do nothing.
 * Host code that touches `data` itself pulls before it reads and pushes after it has
 * written; n2_tensor_set, n2_tensor_get and checkpoints do so by themselves. Copies are made
 * when somebody needs them: a push costs nothing until the next run, and a tensor that
 * nobody pulls never comes back. */
n2ce_status n2_tensor_pull(const n2_store *store, const n2_tensor *t);
void n2_tensor_push(const n2_store *store, n2_tensor *t);

/* For plans: makes a copy on the device, if there is none yet; */
n2ce_status n2_tensor_mirror(n2_store *store, n2_tensor *t, n2_device *device);
void *n2_tensor_on(const n2_tensor *t, const n2_device *device); /* where it is; NULL: nowhere */
/* brings it up to date, from the host or, by way of it, from another device; */
n2ce_status n2_tensor_upload(const n2_store *store, n2_tensor *t, const n2_device *device);
/* and a plan has written it there: all others are stale. */
void n2_tensor_wrote(n2_tensor *t, const n2_device *device);
bool n2_store_has_copies(const n2_store *store); /* on any device */

/* Gives back what devices hold. What they alone knew is lost: pull that first. No plan on a device
 * may be left. */
void n2_store_leave_devices(n2_store *store);

/* The rows of a matrix as `write` makes them, on all threads and in any order. If plans on a device
 * use it already, and it is the only one, they go straight there. */
n2ce_status n2_tensor_fill(const n2_store *store, n2_tensor *t, n2_rows_fn *write, void *arg);

/* Copy whole tensors in and out, converting. If a device fails while its copy is fetched,
 * the numbers are those of the host's copy and the context has the message. */
void n2_tensor_set(const n2_store *store, n2_tensor *t, const double *values);
void n2_tensor_get(const n2_store *store, const n2_tensor *t, double *values);

/* ---- nodes ---- */

typedef struct n2_node {
    uint32_t id; /* 0: none */
} n2_node;
#define N2_NONE ((n2_node){0})

/* Constants of Adam; decay is decoupled. */
typedef struct n2_adam {
    double beta1, beta2, eps, decay;
} n2_adam;

/* How a convolution's kernel goes over a picture: pixels from one place to the next, and zeros
 * around the picture. */
typedef struct n2_window {
    int32_t stride_y, stride_x;
    int32_t top, bottom, left, right;
} n2_window;

/* What follows a norm, element by element. */
typedef enum n2_act { N2_ACT_NONE, N2_ACT_SILU, N2_ACT_LRELU } n2_act;

/* A norm: groups of neighbouring channels, which have as many each; n2_act; what is added to the
 * variance; the slope of N2_ACT_LRELU. */
typedef struct n2_norm {
    int32_t groups, act;
    double eps, slope;
} n2_norm;

/* What a node has beside its inputs. An op uses the members named after it; all others are zero.
 * Nodes are compared by them as bytes, so members have no gaps: pairs of 32 bits, or 64 bits. */
typedef struct n2_attr {
    double value; /* constant */
    double a, b;  /* element-wise: affine is a x + b; a is the slope of lrelu and lrelu_grad */
    struct {
        int32_t from, to; /* n2_dtype */
    } cast;
    struct {
        double magnitude; /* M; infinity: NWJ */
        int64_t is_den;   /* on the denominator's side */
    } n2ce;
    struct {
        int64_t below, stream; /* integers are below; every node is a stream of its own */
    } random;
    struct {
        int64_t divide, modulo;
    } row_index;
    struct {
        int32_t transpose_a, transpose_b;
    } matmul;
    struct {
        int32_t axes;           /* sum, amax: a mask; they stay, with length 1 */
        int32_t above_diagonal; /* median */
    } reduce;
    struct {
        int32_t axis_a, axis_b; /* axis_a < axis_b */
    } transpose;
    struct {
        int64_t axis, begin; /* concat, slice, pad; begin: of what is cut out, or put in */
    } along;
    n2_window window; /* conv2d, conv2d_input, conv2d_weight */
    struct {
        int64_t heads;
    } attention;  /* attention, attention_grad */
    n2_norm norm; /* norm, norm_input, norm_sums */
    n2_adam adam;
    n2_tensor *tensor[N2_MAX_TENSORS]; /* read or written; the last member */
} n2_attr;

struct n2_op;

typedef struct n2_node_data {
    const struct n2_op *op;
    n2_node in[N2_MAX_INPUTS];
    int n_in;
    n2_shape shape;
    n2_dtype dtype;      /* how it is stored */
    const n2_attr *attr; /* never NULL */
    const char *file;    /* who built it; "?", 0: not yet noted */
    int line;
    bool watched;   /* must stay finite: n2g_watch */
    bool again;     /* made once more: recompute.h */
    uint32_t sweep; /* which gradient's it is, 1 for the first that was built; 0: none's */
} n2_node_data;

typedef struct n2_graph n2_graph;

/* A rewrite is given a node that is about to be built, and returns what is to be taken instead;
 * N2_NONE: it is fine as it is. The node's inputs are there, except where an op has none at that
 * place (in[k].id is 0). */
typedef n2_node n2_rewrite(n2_graph *g, const n2_node_data *node);

/* What a matrix product's kernel does with its result before it is stored, in this order. The other
 * operand has the shape of the result. */
typedef enum n2_epilogue {
    N2_NO_EPILOGUE,
    N2_GATE_PRODUCT,  /* multiply by attr->a where the other operand, in[0], is not positive */
    N2_ADD_TO_PRODUCT /* add the other operand */
} n2_epilogue;

/* Whether a node can be done by the kernel of its input k, which does `done` already. */
typedef n2_epilogue n2_fuse(const n2_graph *g, const n2_node_data *node, int k, n2_epilogue done);

typedef struct n2_rewrites {
    n2_rewrite *const *of_nodes; /* NULL at the end */
    n2_fuse *fuse;
} n2_rewrites;

/* An empty graph; n2_graph_new (rewrite/rewrites.h) is the one to use. `rewrites` must outlive it;
 * NULL: nodes are taken as they are built. Returns NULL if memory is short. */
n2_graph *n2_graph_with(n2_store *store, const n2_rewrites *rewrites);
/* An empty graph of the same store and with the same rewrites. */
n2_graph *n2_graph_like(const n2_graph *g);
void n2_graph_free(n2_graph *g); /* NULL is fine */
/* For what is built from now on; returns those until now. */
const n2_rewrites *n2_graph_set_rewrites(n2_graph *g, const n2_rewrites *rewrites);
n2_epilogue n2_graph_fuse(const n2_graph *g, const n2_node_data *node, int k, n2_epilogue done);
n2ce_status n2_graph_status(const n2_graph *g);
/* The same, and the context has the sentence once more, whatever failed since. */
n2ce_status n2_graph_tell(const n2_graph *g);
n2_store *n2_graph_store(const n2_graph *g);
uint32_t n2_graph_size(const n2_graph *g); /* ids are 1 .. size */
const n2_node_data *n2_at(const n2_graph *g, n2_node x);
n2_shape n2_shape_at(const n2_graph *g, n2_node x);

/* Every builder below is a macro that notes where it was called, on the nodes that have no
 * line yet and on a mistake. Files of compositions, which define N2_INSIDE before they
 * include anything, note nothing: so the line is that of the outermost caller. */
#ifdef N2_INSIDE
#define N2_BUILT(g, node) (node)
#else
#define N2_BUILT(g, node) n2_built_here((g), (node), __FILE__, __LINE__)
#endif
#define N2_BUILT_ALL(g, call) ((call), (void)N2_BUILT(g, N2_NONE)) /* no single node */
n2_node n2_built_here(n2_graph *g, n2_node node, const char *file, int line);

/* Makes the graph fail for lack of memory; the allocator has told. Returns false. */
bool n2_graph_out_of_memory(n2_graph *g);

/* Makes the graph fail with a sentence; returns N2_NONE. */
n2_node n2_graph_fail(n2_graph *g, const char *format, ...) N2_PRINTF(2, 3);

/* ---- leaves ---- */

#define n2g_constant(g, value) N2_BUILT(g, n2_build_constant(g, value))
n2_node n2_build_constant(n2_graph *g, double value);

/* The tensor's value: as it was when the plan started, or as the last update op built
 * so far left it. */
#define n2g_read(g, tensor) N2_BUILT(g, n2_build_read(g, tensor))
n2_node n2_build_read(n2_graph *g, n2_tensor *t);

/* Random numbers: pure functions of (seed, this node, step, element); base/random.h. The
 * seed is the plan's, the step its counter of runs. */
#define n2g_randn(g, shape)      N2_BUILT(g, n2_build_random(g, N2_OP_normal, shape, 0))
#define n2g_randu(g, shape)      N2_BUILT(g, n2_build_random(g, N2_OP_uniform, shape, 0))
#define n2g_randint(g, shape, n) N2_BUILT(g, n2_build_random(g, N2_OP_integer, shape, n))
#define n2g_permutation(g, n)    N2_BUILT(g, n2_build_random(g, N2_OP_permutation, n2_dims(n), n))

n2_node n2_build_random(n2_graph *g, int op, n2_shape shape, int64_t n);

/* out[i] = (i / divide) % modulo: for repeating and tiling rows. */
#define n2g_row_index(g, n, divide, modulo) N2_BUILT(g, n2_build_row_index(g, n, divide, modulo))
n2_node n2_build_row_index(n2_graph *g, int64_t n, int64_t divide, int64_t modulo);

/* ---- element-wise, with NumPy's broadcasting ----
 * positive: 1 where x > 0, else 0; detach: x without gradient; affine: a x + b;
 * silu: x sigmoid(x); gelu: x Phi(x), Phi the normal distribution's, not an approximation. */

#define n2g_neg(g, x)          N2_BUILT(g, n2_build_unary(g, N2_OP_neg, x, 0, 0))
#define n2g_exp(g, x)          N2_BUILT(g, n2_build_unary(g, N2_OP_exp, x, 0, 0))
#define n2g_log(g, x)          N2_BUILT(g, n2_build_unary(g, N2_OP_log, x, 0, 0))
#define n2g_sqrt(g, x)         N2_BUILT(g, n2_build_unary(g, N2_OP_sqrt, x, 0, 0))
#define n2g_reciprocal(g, x)   N2_BUILT(g, n2_build_unary(g, N2_OP_reciprocal, x, 0, 0))
#define n2g_tanh(g, x)         N2_BUILT(g, n2_build_unary(g, N2_OP_tanh, x, 0, 0))
#define n2g_sigmoid(g, x)      N2_BUILT(g, n2_build_unary(g, N2_OP_sigmoid, x, 0, 0))
#define n2g_softplus(g, x)     N2_BUILT(g, n2_build_unary(g, N2_OP_softplus, x, 0, 0))
#define n2g_sin(g, x)          N2_BUILT(g, n2_build_unary(g, N2_OP_sin, x, 0, 0))
#define n2g_cos(g, x)          N2_BUILT(g, n2_build_unary(g, N2_OP_cos, x, 0, 0))
#define n2g_positive(g, x)     N2_BUILT(g, n2_build_unary(g, N2_OP_positive, x, 0, 0))
#define n2g_detach(g, x)       N2_BUILT(g, n2_build_unary(g, N2_OP_detach, x, 0, 0))
#define n2g_affine(g, x, a, b) N2_BUILT(g, n2_build_unary(g, N2_OP_affine, x, a, b))
#define n2g_scale(g, x, a)     n2g_affine(g, x, a, 0)
#define n2g_silu(g, x)         N2_BUILT(g, n2_build_unary(g, N2_OP_silu, x, 0, 0))
#define n2g_gelu(g, x)         N2_BUILT(g, n2_build_unary(g, N2_OP_gelu, x, 0, 0))
#define n2g_lrelu(g, x, slope) N2_BUILT(g, n2_build_unary(g, N2_OP_lrelu, x, slope, 0))
n2_node n2_build_unary(n2_graph *g, int op, n2_node x, double a, double b);

#define n2g_add(g, a, b)     N2_BUILT(g, n2_build_binary(g, N2_OP_add, a, b, 0))
#define n2g_sub(g, a, b)     N2_BUILT(g, n2_build_binary(g, N2_OP_sub, a, b, 0))
#define n2g_mul(g, a, b)     N2_BUILT(g, n2_build_binary(g, N2_OP_mul, a, b, 0))
#define n2g_div(g, a, b)     N2_BUILT(g, n2_build_binary(g, N2_OP_div, a, b, 0))
#define n2g_maximum(g, a, b) N2_BUILT(g, n2_build_binary(g, N2_OP_maximum, a, b, 0))
#define n2g_minimum(g, a, b) N2_BUILT(g, n2_build_binary(g, N2_OP_minimum, a, b, 0))
#define n2g_equal(g, a, b)   N2_BUILT(g, n2_build_binary(g, N2_OP_equal, a, b, 0))
#define n2g_greater(g, a, b) N2_BUILT(g, n2_build_binary(g, N2_OP_greater, a, b, 0))
n2_node n2_build_binary(n2_graph *g, int op, n2_node a, n2_node b, double attr);

/* x stored as another type, which rounds (base/narrow.h). Values of 16 bits can be cast back,
 * reshaped, and assigned to a tensor of their type; all else wants the backend's numbers. The
 * gradient goes through as it is, not rounded. */
#define n2g_cast(g, x, dtype) N2_BUILT(g, n2_build_cast(g, x, dtype))
n2_node n2_build_cast(n2_graph *g, n2_node x, n2_dtype dtype);

/* ---- matrix product ---- */

/* op(a) op(b) over the last two axes, op = transpose where asked; leading axes are
 * batches and must agree, or b has none. */
#define n2g_matmul(g, a, b, ta, tb) N2_BUILT(g, n2_build_matmul(g, a, b, ta, tb))
n2_node n2_build_matmul(n2_graph *g, n2_node a, n2_node b, bool ta, bool tb);

/* x W' + b for rows x, a weight [out x in] and a bias [out]: one op. */
#define n2g_linear(g, x, weight, bias) N2_BUILT(g, n2_build_linear(g, x, weight, bias))
n2_node n2_build_linear(n2_graph *g, n2_node x, n2_node weight, n2_node bias);

/* ---- convolution ----
 *
 * Pictures are [n x height x width x channels], kernels [rows x columns x c_in x c_out], as
 * products like them. Of x [n x h x w x c_in], kernel k and y [n x oh x ow x c_out],
 *
 *     y[n, i, j, o] = sum over r, s, c of x[n, i stride_y + r - top, j stride_x + s - left, c]
 *                                         k[r, s, c, o]
 *
 * with zeros outside, and oh = (h + top + bottom - rows) / stride_y + 1, rounded down. The sum of
 * y dy is linear in x, k and dy; each of the three ops is its gradient by one of them, and so their
 * gradients are these ops again. conv2d_input, with the size of its result, is the transposed
 * convolution. */

#define n2g_conv2d(g, ...) N2_BUILT(g, n2_build_conv2d(g, __VA_ARGS__))
n2_node n2_build_conv2d(n2_graph *g, n2_node x, n2_node kernel, n2_window window);

#define n2g_conv2d_input(g, ...) N2_BUILT(g, n2_build_conv2d_input(g, __VA_ARGS__))
n2_node n2_build_conv2d_input(n2_graph *g, n2_node dy, n2_node kernel, int64_t height,
                              int64_t width, n2_window window);

#define n2g_conv2d_weight(g, ...) N2_BUILT(g, n2_build_conv2d_weight(g, __VA_ARGS__))
n2_node n2_build_conv2d_weight(n2_graph *g, n2_node x, n2_node dy, int64_t rows, int64_t columns,
                               n2_window window);

/* ---- attention ----
 *
 * Over positions: qkv [n x t x 3c] has queries, keys and values of t positions, c channels of each,
 * in this order; head h has channels h d to (h + 1) d - 1 of each, d = c / heads. Of every head,
 *
 *     y[n, i, :] = sum over j of softmax over j of (q[n, i, :] . k[n, j, :] / sqrt(d)) v[n, j, :]
 *
 * is [n x t x c]. No backend stores the t x t weights. */

#define n2g_attention(g, ...) N2_BUILT(g, n2_build_attention(g, __VA_ARGS__))
n2_node n2_build_attention(n2_graph *g, n2_node qkv, int64_t heads);

/* The gradient of sum(y dy) by qkv: [n x t x 3c]. */
#define n2g_attention_grad(g, ...) N2_BUILT(g, n2_build_attention_grad(g, __VA_ARGS__))
n2_node n2_build_attention_grad(n2_graph *g, n2_node qkv, n2_node dy, int64_t heads);

/* ---- norms ----
 *
 * Of x [n x .. x c], n pictures of c channels: with v = x + shift, and mean and variance (of
 * population) over all positions and the channels of a group, of each picture by itself,
 *
 *     y = act(gamma (v - mean) / sqrt(variance + eps) + beta)
 *
 * shift, gamma and beta are [c] or [n x c], or N2_NONE: 0, 1, 0. Groups of one channel are instance
 * norm. A convolution's bias, or an embedding, is the shift of the norm behind it, and costs
 * nothing there; gamma and beta of every picture are an adaptive norm.
 *
 * The gradients, for dy: norm_input is that by x; norm_sums [n x c x 3] has, of every picture and
 * channel, those by beta, gamma and shift. */

#define n2g_norm(g, ...) N2_BUILT(g, n2_build_norm(g, __VA_ARGS__))
n2_node n2_build_norm(n2_graph *g, n2_node x, n2_node shift, n2_node gamma, n2_node beta,
                      n2_norm norm);

#define n2g_norm_input(g, ...) N2_BUILT(g, n2_build_norm_input(g, __VA_ARGS__))
#define n2g_norm_sums(g, ...)  N2_BUILT(g, n2_build_norm_sums(g, __VA_ARGS__))
n2_node n2_build_norm_input(n2_graph *g, n2_node x, n2_node shift, n2_node gamma, n2_node beta,
                            n2_node dy, n2_norm norm);
n2_node n2_build_norm_sums(n2_graph *g, n2_node x, n2_node shift, n2_node gamma, n2_node beta,
                           n2_node dy, n2_norm norm);

/* ---- reductions: axes is a bit mask, reduced axes stay with length 1 ---- */

enum { N2_ALL_AXES = -1 };
#define n2_axis(k)           (1 << (k))
#define n2g_sum(g, x, axes)  N2_BUILT(g, n2_build_reduce(g, N2_OP_sum, x, axes))
#define n2g_amax(g, x, axes) N2_BUILT(g, n2_build_reduce(g, N2_OP_amax, x, axes))
n2_node n2_build_reduce(n2_graph *g, int op, n2_node x, int axes);

/* total: the sum of all as a scalar. */
#define n2g_mean(g, ...)      N2_BUILT(g, n2_build_mean(g, __VA_ARGS__))
#define n2g_logsumexp(g, ...) N2_BUILT(g, n2_build_logsumexp(g, __VA_ARGS__))
#define n2g_total(g, ...)     N2_BUILT(g, n2_build_total(g, __VA_ARGS__))
n2_node n2_build_mean(n2_graph *g, n2_node x, int axes);
n2_node n2_build_logsumexp(n2_graph *g, n2_node x, int axes);
n2_node n2_build_total(n2_graph *g, n2_node x);

/* Median of all elements, or of those above the diagonal of a square matrix; the mean
 * of the middle two for an even number. A scalar without gradient. */
#define n2g_median(g, x, above_diagonal) N2_BUILT(g, n2_build_median(g, x, above_diagonal))
n2_node n2_build_median(n2_graph *g, n2_node x, bool above_diagonal);

/* ---- shapes ---- */

#define n2g_broadcast(g, x, shape)           N2_BUILT(g, n2_build_broadcast(g, x, shape))
#define n2g_reshape(g, x, shape)             N2_BUILT(g, n2_build_reshape(g, x, shape))
#define n2g_transpose(g, x, axis_a, axis_b)  N2_BUILT(g, n2_build_transpose(g, x, axis_a, axis_b))
#define n2g_concat(g, a, b, axis)            N2_BUILT(g, n2_build_concat(g, a, b, axis))
#define n2g_concat_all(g, x, n, axis)        N2_BUILT(g, n2_build_concat_all(g, x, n, axis))
#define n2g_slice(g, x, axis, begin, length) N2_BUILT(g, n2_build_slice(g, x, axis, begin, length))
n2_node n2_build_broadcast(n2_graph *g, n2_node x, n2_shape shape);
n2_node n2_build_reshape(n2_graph *g, n2_node x, n2_shape shape);
n2_node n2_build_transpose(n2_graph *g, n2_node x, int axis_a, int axis_b);
n2_node n2_build_concat(n2_graph *g, n2_node a, n2_node b, int axis);
n2_node n2_build_concat_all(n2_graph *g, const n2_node *x, int n, int axis);
n2_node n2_build_slice(n2_graph *g, n2_node x, int axis, int64_t begin, int64_t length);

/* Zeros around: the gradient of slice. */
n2_node n2_build_pad(n2_graph *g, n2_node x, int axis, int64_t before, int64_t total);

/* Sums a gradient back to the shape its operand had before broadcasting. */
#define n2g_sum_to(g, ...) N2_BUILT(g, n2_build_sum_to(g, __VA_ARGS__))
n2_node n2_build_sum_to(n2_graph *g, n2_node x, n2_shape shape);

/* ---- rows ---- */

/* out[i] = table[index[i]]: rows along the first axis; index has one axis. */
#define n2g_gather(g, table, index) N2_BUILT(g, n2_build_gather(g, table, index))
n2_node n2_build_gather(n2_graph *g, n2_node table, n2_node index);

/* out[index[i]] += x[i], out with `rows` rows: the gradient of gather. */
#define n2g_scatter_add(g, x, index, rows) N2_BUILT(g, n2_build_scatter_add(g, x, index, rows))
n2_node n2_build_scatter_add(n2_graph *g, n2_node x, n2_node index, int64_t rows);

/* tile: a b a b; repeat: a a b b. */
#define n2g_tile_rows(g, ...)   N2_BUILT(g, n2_build_tile_rows(g, __VA_ARGS__))
#define n2g_repeat_rows(g, ...) N2_BUILT(g, n2_build_repeat_rows(g, __VA_ARGS__))
n2_node n2_build_tile_rows(n2_graph *g, n2_node x, int64_t times);
n2_node n2_build_repeat_rows(n2_graph *g, n2_node x, int64_t times);

/* ---- sizes of pictures ---- */

/* Pictures are [n, h, w, c]. Means of squares of 2 x 2 pixels, for even h and w; and every pixel
 * as 2 x 2 of them. */
#define n2g_avg_pool2(g, ...) N2_BUILT(g, n2_build_avg_pool2(g, __VA_ARGS__))
#define n2g_upsample2(g, ...) N2_BUILT(g, n2_build_upsample2(g, __VA_ARGS__))
n2_node n2_build_avg_pool2(n2_graph *g, n2_node x);
n2_node n2_build_upsample2(n2_graph *g, n2_node x);

/* ---- compositions ---- */

#define n2g_log_sigmoid(g, ...) N2_BUILT(g, n2_build_log_sigmoid(g, __VA_ARGS__))
#define n2g_softmax(g, ...)     N2_BUILT(g, n2_build_softmax(g, __VA_ARGS__))
n2_node n2_build_log_sigmoid(n2_graph *g, n2_node x);
n2_node n2_build_softmax(n2_graph *g, n2_node x, int axis);

/* x / (1 - p), or 0 with probability p, drawn anew for every element and run; 0 <= p < 1. For
 * training: a graph that predicts is built without. */
#define n2g_dropout(g, ...) N2_BUILT(g, n2_build_dropout(g, __VA_ARGS__))
n2_node n2_build_dropout(n2_graph *g, n2_node x, double p);

/* Means over rows, in nats; the divergence is that to N(0, I). */
#define n2g_cross_entropy(g, ...) N2_BUILT(g, n2_build_cross_entropy(g, __VA_ARGS__))
#define n2g_gaussian_kl(g, ...)   N2_BUILT(g, n2_build_gaussian_kl(g, __VA_ARGS__))
n2_node n2_build_cross_entropy(n2_graph *g, n2_node logits, n2_node index);
n2_node n2_build_gaussian_kl(n2_graph *g, n2_node mean, n2_node logvar);

/* mean + eps exp(logvar / 2); rows of a against rows of b. */
#define n2g_reparameterise(g, ...)    N2_BUILT(g, n2_build_reparameterise(g, __VA_ARGS__))
#define n2g_squared_distances(g, ...) N2_BUILT(g, n2_build_squared_distances(g, __VA_ARGS__))
n2_node n2_build_reparameterise(n2_graph *g, n2_node mean, n2_node logvar, n2_node eps);
n2_node n2_build_squared_distances(n2_graph *g, n2_node a, n2_node b);

/* The N2CE loss of a ratio's logits, in nats; the same terms as n2ce_loss_f64. */
#define n2g_n2ce_loss(g, ...) N2_BUILT(g, n2_build_n2ce_loss(g, __VA_ARGS__))
n2_node n2_build_n2ce_loss(n2_graph *g, n2_node f_num, n2_node f_den, double magnitude);
n2_node n2_build_n2ce_term(n2_graph *g, int op, n2_node f, double magnitude, bool is_den);

/* ---- gradient ---- */

/* dx[i] = d y / d x[i] for a scalar y, as new nodes: so it can be used twice. */
#define n2g_grad(g, y, x, n, dx) N2_BUILT_ALL(g, n2_build_grad(g, y, x, n, dx))
void n2_build_grad(n2_graph *g, n2_node y, const n2_node *x, size_t n, n2_node *dx);

/* ---- updates: they write a tensor, and are roots of the plan ---- */

#define n2g_assign(g, tensor, x) N2_BUILT(g, n2_build_assign(g, tensor, x))
n2_node n2_build_assign(n2_graph *g, n2_tensor *t, n2_node x);

/* Adam on one tensor: moments in m and v, rate, a factor on the gradient (clipping)
 * and the number of the step (1 for the first) as scalars. */
#define n2g_adam_update(g, ...) N2_BUILT(g, n2_build_adam_update(g, __VA_ARGS__))
n2_node n2_build_adam_update(n2_graph *g, const n2_adam *adam, n2_tensor *const tensors[3],
                             n2_node grad, n2_node rate, n2_node factor, n2_node step);

/* One number that has to stay finite, a loss for instance. In a run in which it is not, the
 * updates built after this node are not made, and the run fails (n2_plan_run). */
#define n2g_watch(g, x) N2_BUILT_ALL(g, n2_build_watch(g, x))
void n2_build_watch(n2_graph *g, n2_node x);

/* ---- the table of ops ---- */

/* clang-format off */

/* Element-wise ops of one and of two inputs. From these lists follow the ids, the rows of the
 * table of ops and the tables of kernels: a backend needs its formula, and nothing else. */
#define N2_UNARY_LIST(X)                                                                  \
    X(neg) X(exp) X(log) X(sqrt) X(reciprocal) X(tanh) X(sigmoid) X(softplus) X(sin)      \
    X(cos) X(positive) X(affine) X(lrelu) X(silu) X(gelu) X(n2ce_term) X(n2ce_weight)
#define N2_BINARY_LIST(X)                                                                 \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(equal) X(greater) X(lrelu_grad)   \
    X(silu_grad) X(gelu_grad)

/* Ops whose kernels are one of a kind; ops that need none: leaves and views. */
#define N2_KERNEL_LIST(X)                                                                 \
    X(normal) X(uniform) X(integer) X(permutation) X(row_index) X(cast)                   \
    X(matmul) X(conv2d) X(conv2d_input) X(conv2d_weight) X(norm) X(norm_input)            \
    X(norm_sums) X(attention) X(attention_grad) X(pool2) X(upsample2) X(sum) X(amax)      \
    X(median) X(broadcast) X(transpose) X(concat) X(slice) X(pad) X(gather)               \
    X(scatter_add) X(assign) X(adam)
#define N2_NO_KERNEL_LIST(X) X(tensor) X(constant) X(reshape) X(detach)

#define N2_OP_LIST(X) \
    N2_NO_KERNEL_LIST(X) N2_UNARY_LIST(X) N2_BINARY_LIST(X) N2_KERNEL_LIST(X)
/* clang-format on */

typedef enum n2_op_id {
#define N2_OP_ENUM(name) N2_OP_##name,
    N2_OP_LIST(N2_OP_ENUM)
#undef N2_OP_ENUM
        N2_OP_COUNT
} n2_op_id;

/* How a node treats the rows (first axis) of its inputs; decides whether it can run
 * tile by tile inside a row program. */
typedef enum n2_rows {
    N2_ROWS_WHOLE, /* needs everything at once */
    N2_ROWS_MAP,   /* row i of the output needs row i of its row inputs */
    N2_ROWS_FOLD   /* the output is a sum over rows: tiles add to it */
} n2_rows;

typedef struct n2_op {
    const char *name;
    n2_op_id id;
    /* d y / d in[i] for every input, as nodes; leave N2_NONE where there is none. NULL:
     * no gradient at all. */
    void (*grad)(n2_graph *g, n2_node y, n2_node dy, n2_node *dx);
    /* Rows of a node, and which inputs go along row by row. NULL: whole. */
    n2_rows (*rows)(const n2_graph *g, const n2_node_data *node, bool row_input[N2_MAX_INPUTS]);
    /* Floating-point operations of a node. NULL: one per element of the first input. */
    double (*flops)(const n2_graph *g, const n2_node_data *node);
    bool cheap;     /* takes no longer than it would to write and read it: recompute.h */
    bool random;    /* every node is its own stream: never merged */
    bool update;    /* writes a tensor: a root */
    bool any_dtype; /* takes inputs of 16 bits */
    int packed;     /* input that is another one as fast kernels like it; 0: none */
} n2_op;

extern const n2_op *const n2_ops[N2_OP_COUNT];

/* Appends a node, or finds the equal one. For the files of ops/. */
n2_node n2_emit(n2_graph *g, n2_op_id op, const n2_node *in, int n_in, n2_shape shape,
                const n2_attr *attr);
n2_node n2_emit_update(n2_graph *g, n2_op_id op, const n2_node *in, int n_in, const n2_attr *attr);
n2_node n2_input(const n2_graph *g, n2_node x, int k);

/* Appends a node as it is, whatever equal ones there are; its attributes must outlive the graph.
 * For copies of graphs. */
n2_node n2_graph_append(n2_graph *g, const n2_node_data *node);

/* What is built between these two is a gradient's. */
void n2_graph_begin_sweep(n2_graph *g);
void n2_graph_end_sweep(n2_graph *g);
n2_op_id n2_op_of(const n2_graph *g, n2_node x);

/* Rows rules that several ops share. */
n2_rows n2_rows_elementwise(const n2_graph *g, const n2_node_data *node, bool *row_input);

#endif
