/* Layers, initial values, optimiser, checkpoints: what turns the engine into a trainer.
 *
 * Parameters are tensors of a store, named as PyTorch's state dict would name them
 * ("blocks.3.weight"), with weights [out x in] and the same default initial values, so
 * that models can be exchanged as safetensors files. */
#ifndef N2_NN_H
#define N2_NN_H

#include "engine/plan.h"

/* ---- parameters ---- */

/* A list of parameters: what one optimiser trains. It is memory of the store. */
typedef struct n2_parameters {
    n2_store *store;
    uint64_t seed;      /* of the initial values */
    const char *prefix; /* NULL, or what names begin with, before a dot: networks of one kind */
    n2_tensor **list;
    size_t n, capacity;
    bool failed; /* out of memory, or a name is taken; the context says which */
    bool only_counted;
    int64_t counted; /* numbers that were asked for and not made */
} n2_parameters;

n2_parameters n2_parameters_new(n2_store *store, uint64_t seed);
/* A list that makes none: layers of it have no tensors and can only be counted. */
n2_parameters n2_parameters_to_count(n2_store *store);
int64_t n2_parameters_count(const n2_parameters *p); /* numbers in all */

/* A parameter drawn from U(-bound, bound), by its place in the list. */
n2_tensor *n2_parameter(n2_parameters *p, const char *name, n2_shape shape, double bound);

/* All numbers the same. */
n2_tensor *n2_parameter_of(n2_parameters *p, const char *name, n2_shape shape, double value);

/* How a layer's numbers are drawn, from what a unit of it reads (fan_in) and what reads a number
 * (fan_out): in k k and out k k of a convolution with kernels k x k. */
typedef enum n2_init_mode {
    N2_INIT_PYTORCH,         /* U(-1, 1) sqrt(1 / fan_in) */
    N2_INIT_XAVIER_UNIFORM,  /* U(-1, 1) sqrt(6 / (fan_in + fan_out)) */
    N2_INIT_XAVIER_NORMAL,   /* N(0, 1) sqrt(2 / (fan_in + fan_out)) */
    N2_INIT_KAIMING_UNIFORM, /* U(-1, 1) sqrt(3 / fan_in) */
    N2_INIT_KAIMING_NORMAL   /* N(0, 1) sqrt(1 / fan_in) */
} n2_init_mode;

/* Weights and biases are drawn alike and multiplied by a factor each; 0: zeros. */
typedef struct n2_init {
    n2_init_mode mode;
    double weight, bias;
} n2_init;
#define N2_INIT_DEFAULT ((n2_init){N2_INIT_PYTORCH, 1, 1})

typedef struct n2_drawn {
    n2_init_mode mode;
    double factor;
    int64_t fan_in, fan_out;
} n2_drawn;
n2_tensor *n2_parameter_drawn(n2_parameters *p, const char *name, n2_shape shape, n2_drawn how);

/* Drawn once from N(0, scale^2) and not trained: no parameter. */
n2_tensor *n2_fixed_normal(n2_parameters *p, const char *name, n2_shape shape, double scale);

/* y = x W' + b, W and b drawn as PyTorch does, from U(-1/sqrt(in), 1/sqrt(in)), or as asked for;
 * or x W'. */
typedef struct n2_layer {
    n2_tensor *weight, *bias; /* bias NULL: none */
} n2_layer;
n2_layer n2_layer_new(n2_parameters *p, const char *name, int64_t in, int64_t out);
n2_layer n2_layer_drawn(n2_parameters *p, const char *name, int64_t in, int64_t out, n2_init init,
                        bool bias);
#define n2_layer_apply(g, ...) N2_BUILT(g, n2_build_layer(g, __VA_ARGS__))
n2_node n2_build_layer(n2_graph *g, const n2_layer *layer, n2_node x);

/* A list of n layers as memory of the store, copied from `from`, or empty if that is NULL.
 * Parameters in a copy may be replaced without touching the original. NULL: out of memory. */
n2_layer *n2_layers_new(n2_store *store, const n2_layer *from, int n);

/* Linear layers with LeakyReLU(slope) between them, named NAME.0, NAME.2, ... */
typedef struct n2_mlp {
    n2_layer *layers; /* memory of the store: copies of the struct share them */
    int n;
    double slope;
} n2_mlp;
n2_mlp n2_mlp_new(n2_parameters *p, const char *name, const int64_t *widths, int n_widths,
                  double slope);
#define n2_mlp_apply(g, ...) N2_BUILT(g, n2_build_mlp(g, __VA_ARGS__))
n2_node n2_build_mlp(n2_graph *g, const n2_mlp *mlp, n2_node x);

/* Fixed sinusoids, rows 0 .. n-1: angle t 10000^(-2i/width) for pair i, sine and cosine
 * interleaved. */
n2_tensor *n2_sinusoid_table(n2_store *store, const char *name, int64_t n, int64_t width);

/* ---- optimiser ---- */

typedef struct n2_optimiser {
    n2_adam adam;
    double rate;
    double clip;      /* largest global norm of the gradient; 0: none */
    double clip_each; /* largest magnitude of each of its numbers, before that; 0: none */
    /* The loss is multiplied by this before it is differentiated, and the updates divide by it: for
     * --precision half, in which gradients below 6e-8 vanish. A power of two, so that in float32
     * nothing changes; 0: 1. The gradient's norm is watched then: one that is too large for half
     * (65504) stops the run before the update. */
    double loss_scale;
    /* Optional: a factor on the rate as a function of the step (1 for the first). */
    n2_node (*schedule)(n2_graph *g, n2_node step, const void *arg);
    const void *schedule_arg;
} n2_optimiser;
/* What suits means over pictures of sums over pixels. */
#define N2_HALF_LOSS_SCALE 4096.0
#define N2_OPTIMISER_DEFAULTS \
    { .adam = {0.9, 0.999, 1e-8, 0}, .rate = 1e-3 }

/* Adds gradients of a scalar loss and the updates of all parameters to the graph; a name
 * for moments and step counter, which become tensors of the store, or are those of before: losses
 * with one name have one optimiser. *norm, if not NULL, becomes the gradient's global norm before
 * clipping. The loss is watched, and the norm where it is computed: a run in which one is not
 * finite changes no parameter and fails. */
#define n2_minimise(g, ...) N2_BUILT_ALL(g, n2_build_minimise(g, __VA_ARGS__))
void n2_build_minimise(n2_graph *g, const n2_optimiser *optimiser, const char *name,
                       const n2_parameters *p, n2_node loss, n2_node *norm);

/* Schedules. arg: double[1] decay per step; double[1] steps of half a cosine. */
n2_node n2_schedule_exponential(n2_graph *g, n2_node step, const void *arg);
n2_node n2_schedule_cosine(n2_graph *g, n2_node step, const void *arg);

/* average <- decay average + (1 - decay) tensor. */
#define n2_average(g, ...) N2_BUILT_ALL(g, n2_build_average(g, __VA_ARGS__))
void n2_build_average(n2_graph *g, n2_tensor *average, n2_tensor *tensor, double decay);

/* ---- files ---- */

/* All tensors of the store but those that are given (is_given), and the state of the plan (seed,
 * runs), so that a resumed run continues bit for bit, on the same device. Kernels of convolutions
 * are [out, in, rows, columns] in files, as PyTorch has them. Written whole or not at all, with a
 * check sum: what differs from what was written by a bit is refused. */
n2ce_status n2_checkpoint_save(const n2_store *store, const n2_plan *plan, const char *path);

/* The same with a text of the caller's, over a file of the context's own alone (io/own_file.h); and
 * that text again: added to `note`, nothing if there is none. */
n2ce_status n2_checkpoint_save_own(const n2_store *store, const n2_plan *plan, const char *note,
                                   const char *path);
n2ce_status n2_checkpoint_note(n2ce_ctx *ctx, const char *path, n2_text *note);

/* Into a store with the same tensors. Fails with N2CE_EDATA, naming the first tensor
 * that is missing or has another shape; nothing is changed then. Warns if it was made on another
 * device than the plan's. */
n2ce_status n2_checkpoint_load(n2_store *store, n2_plan *plan, const char *path);

/* A list of parameters alone, by PyTorch's names and in its order of kernels: what save_file of the
 * Python package safetensors makes of a state dict, and load_file reads. Loading leaves everything
 * else alone, and fails as above. */
n2ce_status n2_parameters_save(const n2_parameters *p, const char *path);
n2ce_status n2_parameters_load(const n2_parameters *p, const char *path);

/* A tensor as files have it, for files of one's own: what the host has to copy is the arena's; and
 * out of one again. N2CE_EDATA, without a sentence: it has another shape. */
struct n2_st_tensor;
n2ce_status n2_tensor_to_file(const n2_store *store, const n2_tensor *t, n2_arena *arena,
                              struct n2_st_tensor *out);
n2ce_status n2_tensor_from_file(n2_store *store, n2_tensor *t, const struct n2_st_tensor *from);

/* Whether a file is one of these, whatever it is of; false for what cannot be read, too. */
bool n2_is_checkpoint(n2ce_ctx *ctx, const char *path);

/* What it was made on, as n2_backend_device() has it; "" where it does not say. */
enum { N2_DEVICE_NAME = 64 };
n2ce_status n2_checkpoint_device(n2ce_ctx *ctx, const char *path, char name[N2_DEVICE_NAME]);

#endif
