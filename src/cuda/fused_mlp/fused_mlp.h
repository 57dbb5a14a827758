/* The fused MLP, as runtime and kernels know it: all that they may include of this folder.
 *
 * A chain of products over the same rows is a network, and one kernel takes rows through all of its
 * layers (mlp.h). Runtime asks three things: does it want this job, make what you want of a level,
 * launch it. */
#ifndef N2_CUDA_FUSED_MLP_H
#define N2_CUDA_FUSED_MLP_H

#include "update.h"

#include "cuda/runtime/queue.h"

/* Lets kernels have the memory they need. able: the GPU has the instructions; afterwards, whether
 * the build has code for them, too. */
cudaError_t n2_fused_mlp_prepare(bool *able);

/* ---- does it want this? ---- */

/* Of a product, while it is recorded: if it can be a layer it becomes one (product.mlp_layer), and
 * what prepares its weights is noted before it. */
void n2_fused_mlp_offer(n2_queue *q, job *j);
/* A layer reads its weights as they were prepared. */
void n2_fused_mlp_note_weights(const n2_queue *q, noted *n, const job *j);
/* If this product may be a weight's gradient that it makes, slices of the inner axis are multiples
 * of this; 0: they need not. */
int64_t n2_fused_mlp_slice_unit(const n2_queue *q, const job_product *p);
/* True if job i, which conflicts with this chain only, may become a layer of it. */
bool n2_fused_mlp_admits(const n2_queue *q, size_t chain, size_t i);
/* Of the chain that begins with a layer: its blocks, and about how long it takes, in half layers of
 * a small one. */
int64_t n2_fused_mlp_blocks(const n2_queue *q, size_t chain);
int64_t n2_fused_mlp_time(const n2_queue *q, size_t chain);
/* The sums of columns that go along with gradient i; SIZE_MAX: none. */
size_t n2_sums_of(const n2_queue *q, size_t i);

/* ---- make it ---- */

/* Layers find their rows themselves where they can, and jobs that made them are dropped. */
void n2_fused_mlp_simplify(n2_queue *q);
/* Levels of all jobs, and which gradients it makes (noted.fused_gradient); ends: of a program that
 * ends a run, gradients may be united. Returns how many levels there are. */
size_t n2_fused_mlp_schedule(n2_queue *q, bool ends);

/* Launches of a level, by kind, in the order in which a level has them: weights' gradients, then
 * fused MLPs by their size. */
enum { N_FUSED_KINDS = 4 };

/* The first blocks of what a launch consists of, but for those of very many: with the kernel's
 * arguments, for looking at one after the other in the device's memory takes microseconds. */
enum { MOST_STARTS = 32 };
typedef struct block_starts {
    int32_t n, first[MOST_STARTS];
} block_starts;

typedef struct fused_launch {
    int kind;
    const void *list; /* on the device */
    block_starts starts;
    uint32_t blocks; /* 0: the level has none */
    int until;       /* on the side stream: the level before which it must be through */
} fused_launch;

/* What kernels read, as the host fills it and where it will be on the device. */
typedef struct fused_table {
    char *host;
    const char *device; /* at a multiple of 16 */
    size_t at;          /* bytes that are filled */
} fused_table;

/* Bytes of the table of all launches. */
size_t n2_fused_mlp_bytes(const n2_queue *q);
/* What a level has of a kind; side: of gradients, those that go to the side stream, or the others.
 */
void n2_fused_mlp_make(n2_queue *q, int level, int kind, bool side, fused_table *table,
                       fused_launch *out);

/* ---- launch it ---- */

/* early: gpu.h. */
void n2_fused_mlp_launch(const fused_launch *l, bool strict, cudaStream_t stream, bool early);

/* ---- updates ---- */

/* Blocks of an update of n numbers, before it is settled. */
int64_t n2_update_blocks(int64_t n);
/* Updates whose gradients are two matrices side by side read both; */
void n2_queue_update_from_both(n2_queue *q);
/* and once their operands are known, if `packed`, updates of weights update what layers read, too.
 */
void n2_queue_settle_updates(n2_queue *q, bool packed);
/* Whether a job changes what an update reads ahead: numbers, moments, rate, number of the step, and
 * how weights are scaled. */
bool n2_update_reads_ahead(const job *update, const noted *n);

#endif
