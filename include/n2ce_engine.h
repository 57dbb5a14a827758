/** n2ce_engine: networks and energy-based models of your own, in C.
 *
 *  EXPERIMENTAL: names and semantics may change with any version. What is in
 *  n2ce.h is stable.
 *
 *  A learning problem is a graph, compiled once into a plan, run millions of
 *  times. This is a whole program but for its data:
 *
 *      n2ce_store_new(ctx, &store);
 *      n2ce_graph_new(store, &g);
 *      n2ce_parameters *weights = n2ce_parameters_new(store, 1);
 *      n2ce_mlp *net = n2ce_mlp_new(weights, "net", (int64_t[]){2, 64, 1}, 3, 0.1);
 *      n2ce_node x    = n2ce_read(g, data);             [rows x 2]
 *      n2ce_node y    = n2ce_mlp_apply(g, net, x);      [rows x 1]
 *      n2ce_node loss = n2ce_mean(g, n2ce_mul(g, y, y), N2CE_ALL_AXES);
 *      n2ce_adam adam = N2CE_ADAM_INIT;
 *      n2ce_minimise(g, &adam, "adam", weights, loss, NULL);
 *      n2ce_plan_compile(g, "cpu", &loss, 1, &plan);
 *      n2ce_plan_run_many(plan, 1000);
 *
 *  examples/classifier.c and examples/ebm.c are complete. The parts:
 *
 *      1. shapes, the store and its tensors      what persists
 *      2. the graph and its nodes                what is computed
 *      3. gradient and updates                   what changes tensors
 *      4. layers and the optimiser
 *      5. samplers
 *      6. the plan                               running it, and files
 *      7. the trainer                            steps, checks, checkpoints
 *
 *  Mistakes. What builds (everything that takes a graph, parameters or a layer)
 *  returns no status, so that building is straight-line code. A mistake, such as
 *  shapes that do not fit, makes the graph fail: the message names your file and
 *  line, the op and the shapes; every later call does nothing, and
 *  n2ce_plan_compile() returns the status. NULL in place of a tensor or a layer,
 *  which is what its maker returned when it failed, is such a mistake. With NULL in
 *  place of a graph, a store or a plan nothing is done either: what returns a status
 *  returns N2CE_EINVAL, all else nodes that are none, NULL, 0 or NaN.
 *
 *  Lines. Every function that builds nodes is also a macro that notes the line
 *  of the call; it evaluates the graph twice. A file of building blocks that
 *  defines N2CE_INSIDE before this header is included notes nothing: the line is
 *  then that of who called the block.
 *
 *  Ownership. A store, a graph and a plan are freed in the reverse order of
 *  their making. All else (tensors, parameters, layers) belongs to its store.
 *
 *  Numbers are float32, row-major. Random numbers are a function of the plan's
 *  seed, the node, the run and the element: the same on every device and for
 *  any number of threads. On the processor results have the same bytes for any
 *  number of threads; other devices and instruction sets round differently. */
#ifndef N2CE_ENGINE_H
#define N2CE_ENGINE_H

#include "n2ce.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------
 * 1. Shapes, the store and its tensors
 * ------------------------------------------------------------------------ */

enum { N2CE_MAX_RANK = 8 /**< room in a shape; ops take 6 axes */ };

/** Lengths of the axes, slowest first; rank 0 is a single number. */
typedef struct n2ce_shape {
    int rank;
    int64_t dim[N2CE_MAX_RANK];
} n2ce_shape;

/** A shape of its lengths: n2ce_dims(128, 20). A single number has the shape
 *  N2CE_SCALAR. (In C++ write n2ce_shape{2, {128, 20}}.) */
#define n2ce_dims(...)                            \
    n2ce_shape_of((const int64_t[]){__VA_ARGS__}, \
                  sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define N2CE_SCALAR n2ce_shape_of(NULL, 0)
N2CE_API n2ce_shape n2ce_shape_of(const int64_t *dims, size_t rank);
N2CE_API int64_t n2ce_shape_elements(n2ce_shape shape); /**< -1: too many to count */

/** Tensors by name: parameters, an optimiser's moments, data, chains of a
 *  sampler. They persist from run to run, and are what a checkpoint holds. */
typedef struct n2ce_store n2ce_store;
typedef struct n2ce_tensor n2ce_tensor;

N2CE_API n2ce_status n2ce_store_new(n2ce_ctx *ctx, n2ce_store **out);
N2CE_API void n2ce_store_free(n2ce_store *store); /**< NULL is fine */

/** A tensor of zeros; NULL if memory is short, the name is taken or the shape
 *  is impossible (n2ce_errmsg() says which). */
N2CE_API n2ce_tensor *n2ce_store_add(n2ce_store *store, const char *name, n2ce_shape shape);

/** Tensors by name and by index; NULL if there is none. */
N2CE_API n2ce_tensor *n2ce_store_find(const n2ce_store *store, const char *name);
N2CE_API n2ce_tensor *n2ce_store_at(const n2ce_store *store, size_t index);

N2CE_API const char *n2ce_tensor_name(const n2ce_tensor *tensor);
N2CE_API n2ce_shape n2ce_tensor_shape(const n2ce_tensor *tensor);

/** Copy a whole tensor in and out, from or to the device where plans keep it.
 *  Numbers are rounded to float32. Fail with N2CE_EINVAL (`tensor` or
 *  `values` is NULL, or the tensor of another store) or N2CE_EDEVICE. */
N2CE_API n2ce_status n2ce_tensor_set(n2ce_store *store, n2ce_tensor *tensor, const double *values);
N2CE_API n2ce_status n2ce_tensor_get(n2ce_store *store, const n2ce_tensor *tensor, double *values);

/** As n2ce_tensor_set, from samples in any layout: as many rows as the tensor's
 *  first axis is long, as many columns as the others have elements. */
N2CE_API n2ce_status n2ce_tensor_set_matrix(n2ce_store *store, n2ce_tensor *tensor,
                                            const n2ce_matrix *matrix);

/* ---------------------------------------------------------------------------
 * 2. The graph and its nodes
 * ------------------------------------------------------------------------ */

/** Nodes are appended and never change; equal ones are built once. */
typedef struct n2ce_graph n2ce_graph;
typedef struct n2ce_node {
    uint32_t id; /**< 0: none */
} n2ce_node;

N2CE_API n2ce_status n2ce_graph_new(n2ce_store *store, n2ce_graph **out);
N2CE_API void n2ce_graph_free(n2ce_graph *g); /**< NULL is fine */

/** N2CE_OK until a mistake was made; n2ce_errmsg() has the sentence. */
N2CE_API n2ce_status n2ce_graph_status(const n2ce_graph *g);
N2CE_API n2ce_shape n2ce_node_shape(const n2ce_graph *g, n2ce_node x);

/** Leaves. read: the tensor's value when the run begins, or as the last update
 *  that was built so far leaves it. integers: uniform on 0 .. n-1. permutation:
 *  of 0 .. n-1, a new one in every run. Indices are exact up to 2^24. */
N2CE_API n2ce_node n2ce_constant(n2ce_graph *g, double value);
N2CE_API n2ce_node n2ce_read(n2ce_graph *g, n2ce_tensor *tensor);
N2CE_API n2ce_node n2ce_normal(n2ce_graph *g, n2ce_shape shape);
N2CE_API n2ce_node n2ce_uniform(n2ce_graph *g, n2ce_shape shape);
N2CE_API n2ce_node n2ce_integers(n2ce_graph *g, n2ce_shape shape, int64_t n);
N2CE_API n2ce_node n2ce_permutation(n2ce_graph *g, int64_t n);

/** Element by element. positive: 1 where x > 0, else 0. detach: x, seen as a
 *  constant by gradients. affine: a x + b. lrelu: x where positive, slope x
 *  elsewhere. silu: x sigmoid(x). gelu: x Phi(x), Phi the normal distribution's. */
N2CE_API n2ce_node n2ce_neg(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_exp(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_log(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_sqrt(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_reciprocal(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_sin(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_cos(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_tanh(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_sigmoid(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_log_sigmoid(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_softplus(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_silu(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_gelu(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_positive(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_detach(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_affine(n2ce_graph *g, n2ce_node x, double a, double b);
N2CE_API n2ce_node n2ce_scale(n2ce_graph *g, n2ce_node x, double a);
N2CE_API n2ce_node n2ce_lrelu(n2ce_graph *g, n2ce_node x, double slope);

/** Two operands, with NumPy's broadcasting. equal, greater: 1 or 0. */
N2CE_API n2ce_node n2ce_add(n2ce_graph *g, n2ce_node a, n2ce_node b);
N2CE_API n2ce_node n2ce_sub(n2ce_graph *g, n2ce_node a, n2ce_node b);
N2CE_API n2ce_node n2ce_mul(n2ce_graph *g, n2ce_node a, n2ce_node b);
N2CE_API n2ce_node n2ce_div(n2ce_graph *g, n2ce_node a, n2ce_node b);
N2CE_API n2ce_node n2ce_maximum(n2ce_graph *g, n2ce_node a, n2ce_node b);
N2CE_API n2ce_node n2ce_minimum(n2ce_graph *g, n2ce_node a, n2ce_node b);
N2CE_API n2ce_node n2ce_equal(n2ce_graph *g, n2ce_node a, n2ce_node b);
N2CE_API n2ce_node n2ce_greater(n2ce_graph *g, n2ce_node a, n2ce_node b);

/** Products over the last two axes, either operand transposed if asked. linear:
 *  x W' + b for rows x, a weight [out x in] and a bias [out]. */
N2CE_API n2ce_node n2ce_matmul(n2ce_graph *g, n2ce_node a, n2ce_node b, bool transpose_a,
                               bool transpose_b);
N2CE_API n2ce_node n2ce_linear(n2ce_graph *g, n2ce_node x, n2ce_node weight, n2ce_node bias);

/** Reductions over a set of axes: N2CE_AXIS(1), N2CE_AXIS(0) | N2CE_AXIS(1),
 *  N2CE_ALL_AXES. Reduced axes stay, with length 1; reduced over all, the result
 *  of mean is a single number without axes, and so is total, the sum of all. */
#define N2CE_AXIS(k) (1 << (k))
enum { N2CE_ALL_AXES = -1 };
N2CE_API n2ce_node n2ce_sum(n2ce_graph *g, n2ce_node x, int axes);
N2CE_API n2ce_node n2ce_max(n2ce_graph *g, n2ce_node x, int axes);
N2CE_API n2ce_node n2ce_mean(n2ce_graph *g, n2ce_node x, int axes);
N2CE_API n2ce_node n2ce_logsumexp(n2ce_graph *g, n2ce_node x, int axes);
N2CE_API n2ce_node n2ce_total(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_softmax(n2ce_graph *g, n2ce_node x, int axis);

/** Shapes. slice: `length` elements of an axis from `begin` on. */
N2CE_API n2ce_node n2ce_broadcast(n2ce_graph *g, n2ce_node x, n2ce_shape shape);
N2CE_API n2ce_node n2ce_reshape(n2ce_graph *g, n2ce_node x, n2ce_shape shape);
N2CE_API n2ce_node n2ce_transpose(n2ce_graph *g, n2ce_node x, int axis_a, int axis_b);
N2CE_API n2ce_node n2ce_concat(n2ce_graph *g, n2ce_node a, n2ce_node b, int axis);
N2CE_API n2ce_node n2ce_slice(n2ce_graph *g, n2ce_node x, int axis, int64_t begin, int64_t length);

/** Rows, along the first axis. gather: out[i] = table[index[i]]. scatter_add:
 *  out[index[i]] += x[i] in `rows` rows of zeros. tile: a b a b. repeat: a a b b. */
N2CE_API n2ce_node n2ce_gather(n2ce_graph *g, n2ce_node table, n2ce_node index);
N2CE_API n2ce_node n2ce_scatter_add(n2ce_graph *g, n2ce_node x, n2ce_node index, int64_t rows);
N2CE_API n2ce_node n2ce_tile_rows(n2ce_graph *g, n2ce_node x, int64_t times);
N2CE_API n2ce_node n2ce_repeat_rows(n2ce_graph *g, n2ce_node x, int64_t times);

/** Pictures are [n x height x width x channels], kernels
 *  [rows x columns x channels in x channels out].
 *
 *  conv2d      products of kernels with windows of the pictures: from one place
 *              to the next `stride` pixels, with zeros around the pictures;
 *              (height + top + bottom - rows) / stride_y + 1 rows, rounded down
 *  conv2d_transposed   pictures of height x width whose conv2d has the shape of
 *              x: the gradient of conv2d by its pictures. Kernels are
 *              [rows x columns x channels out x channels in]
 *  avg_pool2   means of squares of 2 x 2 pixels; height and width are even
 *  upsample2   every pixel as 2 x 2 of them
 *  norm        of every picture, groups of channels that are neighbours are
 *              brought to mean 0 and variance 1, then act(scale x + shift).
 *              `scale` and `shift` are [channels] or [n x channels], or none
 *              (N2CE_NONE). As many groups as channels is instance norm
 *  attention   of qkv [n x positions x 3 c], c channels of queries, then of keys,
 *              then of values: softmax(q k' / sqrt(c / heads)) v for every head,
 *              a run of c / heads channels; [n x positions x c]
 *  dropout     x / (1 - p), or 0 with probability p, drawn anew in every run
 *
 *  Channels side by side are n2ce_concat(g, a, b, 3). */
#define N2CE_NONE ((n2ce_node){0})

typedef struct n2ce_window {
    int stride_y, stride_x;
    int top, bottom, left, right; /**< zeros on each side, pixels */
} n2ce_window;

/** The same stride both ways, as many zeros on every side. */
#define N2CE_WINDOW(stride, padding) \
    ((n2ce_window){(stride), (stride), (padding), (padding), (padding), (padding)})

typedef enum n2ce_activation {
    N2CE_NO_ACTIVATION,
    N2CE_ACTIVATION_SILU,
    N2CE_ACTIVATION_LRELU /**< with slope 0.2 */
} n2ce_activation;

N2CE_API n2ce_node n2ce_conv2d(n2ce_graph *g, n2ce_node x, n2ce_node kernel, n2ce_window window);
N2CE_API n2ce_node n2ce_conv2d_transposed(n2ce_graph *g, n2ce_node x, n2ce_node kernel,
                                          int64_t height, int64_t width, n2ce_window window);
N2CE_API n2ce_node n2ce_avg_pool2(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_upsample2(n2ce_graph *g, n2ce_node x);
N2CE_API n2ce_node n2ce_norm(n2ce_graph *g, n2ce_node x, n2ce_node scale, n2ce_node shift,
                             int64_t groups, double eps, n2ce_activation act);
N2CE_API n2ce_node n2ce_attention(n2ce_graph *g, n2ce_node qkv, int64_t heads);
N2CE_API n2ce_node n2ce_dropout(n2ce_graph *g, n2ce_node x, double p);

/** Losses, single numbers in nats.
 *
 *  n2ce_loss        the N2CE loss of logits f = ln p_num/p_den at samples of
 *                   both, the terms of n2ce_loss_f64(); M >= 1, 1 is NCE
 *  cross_entropy    mean over rows of logits [n x classes] and labels [n]
 *  gaussian_kl      mean over rows of KL(N(mean, exp(logvar)) || N(0, I))
 *  reparameterise   mean + eps exp(logvar / 2), no loss but its neighbour
 *  squared_distances   of rows of a from rows of b, [n_a x n_b] */
N2CE_API n2ce_node n2ce_loss(n2ce_graph *g, n2ce_node f_num, n2ce_node f_den, double magnitude);
N2CE_API n2ce_node n2ce_cross_entropy(n2ce_graph *g, n2ce_node logits, n2ce_node labels);
N2CE_API n2ce_node n2ce_gaussian_kl(n2ce_graph *g, n2ce_node mean, n2ce_node logvar);
N2CE_API n2ce_node n2ce_reparameterise(n2ce_graph *g, n2ce_node mean, n2ce_node logvar,
                                       n2ce_node eps);
N2CE_API n2ce_node n2ce_squared_distances(n2ce_graph *g, n2ce_node a, n2ce_node b);

/* ---------------------------------------------------------------------------
 * 3. Gradient and updates
 * ------------------------------------------------------------------------ */

/** dx[i] = dy/dx[i] of a single number y. Gradients are nodes like others, so
 *  they can be part of a loss and be differentiated again. */
N2CE_API void n2ce_grad(n2ce_graph *g, n2ce_node y, const n2ce_node *x, size_t n, n2ce_node *dx);

/** Writes a tensor, in every run; what is read from it after this call is the
 *  new value. average: tensor <- decay tensor + (1 - decay) x, which is how
 *  averages of weights are kept. */
N2CE_API n2ce_node n2ce_assign(n2ce_graph *g, n2ce_tensor *tensor, n2ce_node x);
N2CE_API n2ce_node n2ce_average(n2ce_graph *g, n2ce_tensor *tensor, n2ce_node x, double decay);

/** A single number that has to stay finite. In a run in which it is not, no
 *  update that was built after it is made, and the run fails with N2CE_ENAN.
 *  Losses given to n2ce_minimise() are watched already. */
N2CE_API void n2ce_watch(n2ce_graph *g, n2ce_node x);

/* ---------------------------------------------------------------------------
 * 4. Layers and the optimiser
 * ------------------------------------------------------------------------ */

/** A list of parameters: what one optimiser trains. `seed` is that of their
 *  initial values. Names of parameters, layers and networks have at most 80
 *  characters, those of optimisers 32. */
typedef struct n2ce_parameters n2ce_parameters;
N2CE_API n2ce_parameters *n2ce_parameters_new(n2ce_store *store, uint64_t seed);
N2CE_API size_t n2ce_parameters_n(const n2ce_parameters *parameters); /**< tensors */
N2CE_API n2ce_tensor *n2ce_parameters_at(const n2ce_parameters *parameters, size_t index);

/** One parameter, drawn from U(-bound, bound). */
N2CE_API n2ce_tensor *n2ce_parameter(n2ce_parameters *parameters, const char *name,
                                     n2ce_shape shape, double bound);

/** y = x W' + b, from `in` to `out` columns. Named as in PyTorch's state dicts,
 *  NAME.weight [out x in] and NAME.bias, with PyTorch's initial values. */
typedef struct n2ce_layer n2ce_layer;
N2CE_API n2ce_layer *n2ce_layer_new(n2ce_parameters *parameters, const char *name, int64_t in,
                                    int64_t out);
N2CE_API n2ce_node n2ce_layer_apply(n2ce_graph *g, const n2ce_layer *layer, n2ce_node x);

/** Linear layers with LeakyReLU(slope) between them: widths[0] columns in,
 *  widths[n - 1] out. Named NAME.0, NAME.2, ... */
typedef struct n2ce_mlp n2ce_mlp;
N2CE_API n2ce_mlp *n2ce_mlp_new(n2ce_parameters *parameters, const char *name,
                                const int64_t *widths, int n_widths, double slope);
N2CE_API n2ce_node n2ce_mlp_apply(n2ce_graph *g, const n2ce_mlp *mlp, n2ce_node x);

/** Convolutions with a bias, in and out being channels, square kernels, the same
 *  stride both ways and as many zeros on every side. deconv: the transposed
 *  convolution, PyTorch's ConvTranspose2d. Numbers are drawn as PyTorch does, and
 *  the parameters are NAME.weight and NAME.bias. NULL: as n2ce_layer_new. */
typedef struct n2ce_conv_layer n2ce_conv_layer;
N2CE_API n2ce_conv_layer *n2ce_conv_layer_new(n2ce_parameters *parameters, const char *name,
                                              int64_t in, int64_t out, int kernel, int stride,
                                              int padding);
N2CE_API n2ce_conv_layer *n2ce_deconv_layer_new(n2ce_parameters *parameters, const char *name,
                                                int64_t in, int64_t out, int kernel, int stride,
                                                int padding);
N2CE_API n2ce_node n2ce_conv_layer_apply(n2ce_graph *g, const n2ce_conv_layer *layer, n2ce_node x);

/** n2ce_norm with a scale and a shift of each channel, 1 and 0 at first:
 *  NAME.weight and NAME.bias. */
typedef struct n2ce_norm_layer n2ce_norm_layer;
N2CE_API n2ce_norm_layer *n2ce_norm_layer_new(n2ce_parameters *parameters, const char *name,
                                              int64_t channels, int64_t groups, double eps);
N2CE_API n2ce_node n2ce_norm_layer_apply(n2ce_graph *g, const n2ce_norm_layer *layer, n2ce_node x,
                                         n2ce_activation act);

/** A factor on the rate as a function of the step, 1 for the first. */
typedef n2ce_node n2ce_schedule(n2ce_graph *g, n2ce_node step, const void *arg);

/** Adam. Start from N2CE_ADAM_INIT. */
typedef struct n2ce_adam {
    size_t struct_size;      /**< sizeof(n2ce_adam) */
    double rate;             /**< 1e-3 */
    double beta1, beta2;     /**< 0.9, 0.999 */
    double eps;              /**< 1e-8 */
    double decay;            /**< of weights, decoupled; 0 */
    double clip;             /**< largest norm of the whole gradient; 0: any */
    n2ce_schedule *schedule; /**< NULL: a constant rate */
    const void *schedule_arg;
} n2ce_adam;

/* clang-format off */
#define N2CE_ADAM_INIT                                                         \
    {sizeof(n2ce_adam), 1e-3, 0.9, 0.999, 1e-8, 0.0, 0.0, NULL, NULL}
/* clang-format on */

/** Half a cosine from 1 to 0 over so many steps; decay^(step - 1). The argument
 *  is a double: the steps, the decay. */
N2CE_API n2ce_node n2ce_schedule_cosine(n2ce_graph *g, n2ce_node step, const void *steps);
N2CE_API n2ce_node n2ce_schedule_exponential(n2ce_graph *g, n2ce_node step, const void *decay);

/** Gradients of a loss and one Adam step of all parameters. `name` begins the
 *  names of the optimiser's own tensors, which no other node of the plan reads. *norm, if not NULL,
 * becomes the norm of the whole gradient before clipping. Loss and norm are watched. */
N2CE_API void n2ce_minimise(n2ce_graph *g, const n2ce_adam *adam, const char *name,
                            const n2ce_parameters *parameters, n2ce_node loss, n2ce_node *norm);

/* ---------------------------------------------------------------------------
 * 5. Samplers
 * ------------------------------------------------------------------------ */

/** A log density, up to a constant, of every row: [n x d] in, [n x 1] out. It
 *  is called while the sampler is built, with the `model` given to it. */
typedef n2ce_node n2ce_log_density(n2ce_graph *g, n2ce_node x, const void *model);

/** The score, the gradient of the log density at rows x: [n x d]. */
N2CE_API n2ce_node n2ce_score(n2ce_graph *g, n2ce_node x, n2ce_log_density *density,
                              const void *model);

/** One step of Langevin dynamics of all rows of a tensor, as an update of it:
 *
 *      x <- x + (step^2 / 2) score(x) + step N(0, I)
 *
 *  With `metropolis` moves are refused with the probability that makes the
 *  chain exact; without, its distribution is a little too wide. Returns the mean
 *  log density before the step, which is watched. */
N2CE_API n2ce_node n2ce_langevin_step(n2ce_graph *g, n2ce_tensor *rows, n2ce_log_density *density,
                                      const void *model, double step, bool metropolis);

/** One step of Stein variational gradient descent of all rows of a tensor, by
 *  Adam with this rate; the kernel's width is the median heuristic's. `name`
 *  begins the names of its own tensors. Returns as n2ce_langevin_step. */
N2CE_API n2ce_node n2ce_svgd_step(n2ce_graph *g, const char *name, n2ce_tensor *rows,
                                  n2ce_log_density *density, const void *model, double rate);

/* ---------------------------------------------------------------------------
 * 6. The plan
 * ------------------------------------------------------------------------ */

/** A graph compiled for a device. The graph must outlive it, unchanged. */
typedef struct n2ce_plan n2ce_plan;

/** Keeps what the outputs and the updates need, and makes a program of it.
 *
 *  device     "cpu", also if NULL; "cuda", "cuda:1": a GPU by number, where
 *             factors of products are rounded to tf32; "cuda, float32",
 *             "cuda:1, float32": without this rounding; "cuda, bf16", "cuda,
 *             half": pictures inside networks are stored in 16 bits; "auto": the
 *             first GPU or, if there is none, the processor. All plans of a store that
 *             run on a GPU run on the same one.
 *  outputs    nodes whose values can be read after a run
 *
 *  Fails with the graph's mistake, N2CE_EDEVICE or N2CE_ENOMEM. */
N2CE_API n2ce_status n2ce_plan_compile(n2ce_graph *g, const char *device, const n2ce_node *outputs,
                                       size_t n_outputs, n2ce_plan **out);
N2CE_API void n2ce_plan_free(n2ce_plan *plan); /**< NULL is fine */

/** Bytes of memory that it has on its device, beside tensors of the store. A plan
 *  that would need more than there is keeps less of what gradients read, and makes
 *  it again; if that does not help, compiling fails, and the message has the parts. */
N2CE_API size_t n2ce_plan_bytes(const n2ce_plan *plan);

/** The name of the device that was chosen, e.g. "cpu". */
N2CE_API const char *n2ce_plan_device(const n2ce_plan *plan);

/** One run; or many, which a GPU is asked for at once and does without waiting
 *  for the host. A run in which something watched is not finite changes no
 *  parameter and fails with N2CE_ENAN: the message names the step, the first
 *  node that is not finite and your line that built it. n2ce_ctx_cancel() ends
 *  run_many between two runs, with N2CE_ECANCELED. */
N2CE_API n2ce_status n2ce_plan_run(n2ce_plan *plan);
N2CE_API n2ce_status n2ce_plan_run_many(n2ce_plan *plan, uint64_t runs);

/** Output k of the last run: a single number, NaN if it is none; or all its
 *  elements. */
N2CE_API double n2ce_plan_scalar(const n2ce_plan *plan, size_t k);
N2CE_API void n2ce_plan_get(const n2ce_plan *plan, size_t k, double *values);

/** Random numbers are a function of the seed, 0 if it is not set, and of the
 *  number of runs so far. */
N2CE_API void n2ce_plan_seed(n2ce_plan *plan, uint64_t seed);
N2CE_API uint64_t n2ce_plan_runs(const n2ce_plan *plan);

/** All tensors of the plan's store with its seed and runs, as one safetensors
 *  file, written whole or not at all; a run that is resumed from it goes on as
 *  if it had not stopped. Loading needs a store with the same tensors; it fails
 *  with N2CE_EDATA, and changes nothing, if the file is damaged or of another
 *  model. */
N2CE_API n2ce_status n2ce_checkpoint_save(const n2ce_plan *plan, const char *path);
N2CE_API n2ce_status n2ce_checkpoint_load(n2ce_plan *plan, const char *path);

/* ---------------------------------------------------------------------------
 * 7. The trainer
 *
 * What a training needs beside its step: averages of weights, checks on held-out
 * rows with patience, a limit of time, checkpoints, the choice of a device.
 *
 *     n2ce_trainer t = N2CE_TRAINER_INIT;
 *     t.store = store;
 *     t.step = build_step;
 *     t.user = &model;
 *     t.steps = 10000;
 *     n2ce_train(&t, &result);
 * ------------------------------------------------------------------------ */

/** Builds what is computed: one iteration with its updates, or a check. Returns
 *  a single number, the loss. */
typedef n2ce_node n2ce_build(n2ce_graph *g, void *user);

/** What to train, and how. Start from N2CE_TRAINER_INIT. */
typedef struct n2ce_trainer {
    size_t struct_size;                /**< sizeof(n2ce_trainer) */
    n2ce_store *store;                 /**< with all that the step reads and writes */
    n2ce_build *step;                  /**< one iteration, n2ce_minimise() included */
    n2ce_build *check;                 /**< a loss of held-out rows; NULL: none */
    void *user;                        /**< for both */
    uint64_t steps;                    /**< at most */
    uint64_t seed;                     /**< of random numbers */
    const n2ce_parameters *parameters; /**< what is averaged, and kept where the
                                            check was best */
    double average;                    /**< after a step: average <- average * this +
                                            parameter * (1 - this); 0: none */
    uint64_t check_every;              /**< steps between checks, 200 */
    uint64_t patience;                 /**< checks without a better loss after which to stop;
                                            0: never */
    double time_limit;                 /**< seconds; 0: none */
    const char *device;                /**< as in n2ce_plan_compile(), but "auto" is whichever
                                            is faster, measured on these steps */
    const char *checkpoint;            /**< a file for the state, written every 20 seconds
                                            and when training stops; NULL: none */
    bool resume;                       /**< go on from it, if it is there; what was over stays so */
} n2ce_trainer;

/* clang-format off */
#define N2CE_TRAINER_INIT                                                      \
    {sizeof(n2ce_trainer), NULL, NULL, NULL, NULL, 0, 0, NULL, 0.0, 200, 0,    \
     0.0, NULL, NULL, false}
/* clang-format on */

/** What became of it. */
typedef struct n2ce_training {
    uint64_t steps;     /**< that were run, before resuming too */
    double loss;        /**< of the last step */
    double best_loss;   /**< of the best check; NaN without checks */
    uint64_t best_step; /**< after so many steps */
    bool stopped_early; /**< by patience */
    bool out_of_time;
    char device[64]; /**< where; a name for n2ce_plan_compile() */
} n2ce_training;

/** Runs the steps. In the end the parameters are those that the best check saw,
 *  or else the averages, if there are any. Progress is the context's. The same
 *  bytes whether it was stopped and resumed or not, on the same device.
 *
 *  Fails with the graph's mistake; N2CE_ENAN, as n2ce_plan_run(), with parameters
 *  of a good step; N2CE_ECANCELED, with the checkpoint written; N2CE_EDATA for a
 *  checkpoint of something else; N2CE_EDEVICE, N2CE_ENOMEM, N2CE_EINVAL. */
N2CE_API n2ce_status n2ce_train(const n2ce_trainer *trainer, n2ce_training *out);

/** The same layers with the averages of their parameters, for a check while
 *  averages are kept. */
N2CE_API n2ce_layer *n2ce_layer_averaged(const n2ce_layer *layer);
N2CE_API n2ce_mlp *n2ce_mlp_averaged(const n2ce_mlp *mlp);
N2CE_API n2ce_conv_layer *n2ce_conv_layer_averaged(const n2ce_conv_layer *layer);
N2CE_API n2ce_norm_layer *n2ce_norm_layer_averaged(const n2ce_norm_layer *layer);

/* ---------------------------------------------------------------------------
 * Lines: nothing to read below
 * ------------------------------------------------------------------------ */

/** Notes where the nodes that have no line yet, or a mistake, come from; for
 *  bindings that know their caller's line. The one returns `node`. */
N2CE_API n2ce_node n2ce_built_at(n2ce_graph *g, n2ce_node node, const char *file, int line);
N2CE_API void n2ce_done_at(n2ce_graph *g, const char *file, int line);

#ifndef N2CE_INSIDE
#define N2CE_BUILT(g, call)            n2ce_built_at((g), (call), __FILE__, __LINE__)
#define N2CE_DONE(g, call)             ((call), n2ce_done_at((g), __FILE__, __LINE__))
#define n2ce_constant(g, ...)          N2CE_BUILT(g, (n2ce_constant)(g, __VA_ARGS__))
#define n2ce_read(g, ...)              N2CE_BUILT(g, (n2ce_read)(g, __VA_ARGS__))
#define n2ce_normal(g, ...)            N2CE_BUILT(g, (n2ce_normal)(g, __VA_ARGS__))
#define n2ce_uniform(g, ...)           N2CE_BUILT(g, (n2ce_uniform)(g, __VA_ARGS__))
#define n2ce_integers(g, ...)          N2CE_BUILT(g, (n2ce_integers)(g, __VA_ARGS__))
#define n2ce_permutation(g, ...)       N2CE_BUILT(g, (n2ce_permutation)(g, __VA_ARGS__))
#define n2ce_neg(g, ...)               N2CE_BUILT(g, (n2ce_neg)(g, __VA_ARGS__))
#define n2ce_exp(g, ...)               N2CE_BUILT(g, (n2ce_exp)(g, __VA_ARGS__))
#define n2ce_log(g, ...)               N2CE_BUILT(g, (n2ce_log)(g, __VA_ARGS__))
#define n2ce_sqrt(g, ...)              N2CE_BUILT(g, (n2ce_sqrt)(g, __VA_ARGS__))
#define n2ce_reciprocal(g, ...)        N2CE_BUILT(g, (n2ce_reciprocal)(g, __VA_ARGS__))
#define n2ce_sin(g, ...)               N2CE_BUILT(g, (n2ce_sin)(g, __VA_ARGS__))
#define n2ce_cos(g, ...)               N2CE_BUILT(g, (n2ce_cos)(g, __VA_ARGS__))
#define n2ce_tanh(g, ...)              N2CE_BUILT(g, (n2ce_tanh)(g, __VA_ARGS__))
#define n2ce_sigmoid(g, ...)           N2CE_BUILT(g, (n2ce_sigmoid)(g, __VA_ARGS__))
#define n2ce_log_sigmoid(g, ...)       N2CE_BUILT(g, (n2ce_log_sigmoid)(g, __VA_ARGS__))
#define n2ce_softplus(g, ...)          N2CE_BUILT(g, (n2ce_softplus)(g, __VA_ARGS__))
#define n2ce_silu(g, ...)              N2CE_BUILT(g, (n2ce_silu)(g, __VA_ARGS__))
#define n2ce_gelu(g, ...)              N2CE_BUILT(g, (n2ce_gelu)(g, __VA_ARGS__))
#define n2ce_positive(g, ...)          N2CE_BUILT(g, (n2ce_positive)(g, __VA_ARGS__))
#define n2ce_detach(g, ...)            N2CE_BUILT(g, (n2ce_detach)(g, __VA_ARGS__))
#define n2ce_affine(g, ...)            N2CE_BUILT(g, (n2ce_affine)(g, __VA_ARGS__))
#define n2ce_scale(g, ...)             N2CE_BUILT(g, (n2ce_scale)(g, __VA_ARGS__))
#define n2ce_lrelu(g, ...)             N2CE_BUILT(g, (n2ce_lrelu)(g, __VA_ARGS__))
#define n2ce_add(g, ...)               N2CE_BUILT(g, (n2ce_add)(g, __VA_ARGS__))
#define n2ce_sub(g, ...)               N2CE_BUILT(g, (n2ce_sub)(g, __VA_ARGS__))
#define n2ce_mul(g, ...)               N2CE_BUILT(g, (n2ce_mul)(g, __VA_ARGS__))
#define n2ce_div(g, ...)               N2CE_BUILT(g, (n2ce_div)(g, __VA_ARGS__))
#define n2ce_maximum(g, ...)           N2CE_BUILT(g, (n2ce_maximum)(g, __VA_ARGS__))
#define n2ce_minimum(g, ...)           N2CE_BUILT(g, (n2ce_minimum)(g, __VA_ARGS__))
#define n2ce_equal(g, ...)             N2CE_BUILT(g, (n2ce_equal)(g, __VA_ARGS__))
#define n2ce_greater(g, ...)           N2CE_BUILT(g, (n2ce_greater)(g, __VA_ARGS__))
#define n2ce_matmul(g, ...)            N2CE_BUILT(g, (n2ce_matmul)(g, __VA_ARGS__))
#define n2ce_linear(g, ...)            N2CE_BUILT(g, (n2ce_linear)(g, __VA_ARGS__))
#define n2ce_sum(g, ...)               N2CE_BUILT(g, (n2ce_sum)(g, __VA_ARGS__))
#define n2ce_max(g, ...)               N2CE_BUILT(g, (n2ce_max)(g, __VA_ARGS__))
#define n2ce_mean(g, ...)              N2CE_BUILT(g, (n2ce_mean)(g, __VA_ARGS__))
#define n2ce_logsumexp(g, ...)         N2CE_BUILT(g, (n2ce_logsumexp)(g, __VA_ARGS__))
#define n2ce_total(g, ...)             N2CE_BUILT(g, (n2ce_total)(g, __VA_ARGS__))
#define n2ce_softmax(g, ...)           N2CE_BUILT(g, (n2ce_softmax)(g, __VA_ARGS__))
#define n2ce_broadcast(g, ...)         N2CE_BUILT(g, (n2ce_broadcast)(g, __VA_ARGS__))
#define n2ce_reshape(g, ...)           N2CE_BUILT(g, (n2ce_reshape)(g, __VA_ARGS__))
#define n2ce_transpose(g, ...)         N2CE_BUILT(g, (n2ce_transpose)(g, __VA_ARGS__))
#define n2ce_concat(g, ...)            N2CE_BUILT(g, (n2ce_concat)(g, __VA_ARGS__))
#define n2ce_slice(g, ...)             N2CE_BUILT(g, (n2ce_slice)(g, __VA_ARGS__))
#define n2ce_gather(g, ...)            N2CE_BUILT(g, (n2ce_gather)(g, __VA_ARGS__))
#define n2ce_scatter_add(g, ...)       N2CE_BUILT(g, (n2ce_scatter_add)(g, __VA_ARGS__))
#define n2ce_tile_rows(g, ...)         N2CE_BUILT(g, (n2ce_tile_rows)(g, __VA_ARGS__))
#define n2ce_repeat_rows(g, ...)       N2CE_BUILT(g, (n2ce_repeat_rows)(g, __VA_ARGS__))
#define n2ce_conv2d(g, ...)            N2CE_BUILT(g, (n2ce_conv2d)(g, __VA_ARGS__))
#define n2ce_conv2d_transposed(g, ...) N2CE_BUILT(g, (n2ce_conv2d_transposed)(g, __VA_ARGS__))
#define n2ce_avg_pool2(g, ...)         N2CE_BUILT(g, (n2ce_avg_pool2)(g, __VA_ARGS__))
#define n2ce_upsample2(g, ...)         N2CE_BUILT(g, (n2ce_upsample2)(g, __VA_ARGS__))
#define n2ce_norm(g, ...)              N2CE_BUILT(g, (n2ce_norm)(g, __VA_ARGS__))
#define n2ce_attention(g, ...)         N2CE_BUILT(g, (n2ce_attention)(g, __VA_ARGS__))
#define n2ce_dropout(g, ...)           N2CE_BUILT(g, (n2ce_dropout)(g, __VA_ARGS__))
#define n2ce_loss(g, ...)              N2CE_BUILT(g, (n2ce_loss)(g, __VA_ARGS__))
#define n2ce_cross_entropy(g, ...)     N2CE_BUILT(g, (n2ce_cross_entropy)(g, __VA_ARGS__))
#define n2ce_gaussian_kl(g, ...)       N2CE_BUILT(g, (n2ce_gaussian_kl)(g, __VA_ARGS__))
#define n2ce_reparameterise(g, ...)    N2CE_BUILT(g, (n2ce_reparameterise)(g, __VA_ARGS__))
#define n2ce_squared_distances(g, ...) N2CE_BUILT(g, (n2ce_squared_distances)(g, __VA_ARGS__))
#define n2ce_grad(g, ...)              N2CE_DONE(g, (n2ce_grad)(g, __VA_ARGS__))
#define n2ce_assign(g, ...)            N2CE_BUILT(g, (n2ce_assign)(g, __VA_ARGS__))
#define n2ce_average(g, ...)           N2CE_BUILT(g, (n2ce_average)(g, __VA_ARGS__))
#define n2ce_watch(g, ...)             N2CE_DONE(g, (n2ce_watch)(g, __VA_ARGS__))
#define n2ce_layer_apply(g, ...)       N2CE_BUILT(g, (n2ce_layer_apply)(g, __VA_ARGS__))
#define n2ce_mlp_apply(g, ...)         N2CE_BUILT(g, (n2ce_mlp_apply)(g, __VA_ARGS__))
#define n2ce_conv_layer_apply(g, ...)  N2CE_BUILT(g, (n2ce_conv_layer_apply)(g, __VA_ARGS__))
#define n2ce_norm_layer_apply(g, ...)  N2CE_BUILT(g, (n2ce_norm_layer_apply)(g, __VA_ARGS__))
#define n2ce_minimise(g, ...)          N2CE_DONE(g, (n2ce_minimise)(g, __VA_ARGS__))
#define n2ce_score(g, ...)             N2CE_BUILT(g, (n2ce_score)(g, __VA_ARGS__))
#define n2ce_langevin_step(g, ...)     N2CE_BUILT(g, (n2ce_langevin_step)(g, __VA_ARGS__))
#define n2ce_svgd_step(g, ...)         N2CE_BUILT(g, (n2ce_svgd_step)(g, __VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif /* N2CE_ENGINE_H */
