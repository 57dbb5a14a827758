/* Sums over shards and ranks, of programs that several processes run together: calls of a lane like
 * those of cuBLASLt, captured into the same graph. Shards are added up by a kernel. Ranks do so by
 * NCCL (nccl.h) where every one has a GPU to itself and the library is there; else by way of the
 * host, over whatever transport they have. That it is a call keeps everybody from doing a sum in
 * another order. */
#ifndef N2_CUDA_RANKS_H
#define N2_CUDA_RANKS_H

#include "library.h"

/* What one call adds up. Owned by its queue. */
typedef struct rank_exchange {
    n2ce_ctx *ctx;
    n2_rank_sum *sums;
    size_t n, total;    /* sums, and their numbers */
    int contributors;   /* 0: no rank but this one */
    float *host;        /* the numbers there; NULL: by NCCL */
    void *nccl;         /* a communicator; */
    int ranks;          /* of so many; */
    float *gathered;    /* and room for everybody's numbers, if they are added up by the tree */
    n2ce_status status; /* of the first exchange that failed */
    struct rank_exchange *next;
} rank_exchange;

/* The op of such jobs: no graph has it. */
enum { RANKS_OP = N2_OP_COUNT };
extern const library_lane n2_ranks_lane;

/* By the tree: numbers of parts that lie `stride` apart, but for the first. */
void n2_add_by_tree(const n2_rank_sum *sum, cudaStream_t stream);

/* n2_device.note_sums */
void n2_cuda_note_sums(n2_queue *queue, const n2_rank_sum *sums, size_t n, int contributors);
/* n2_device.program_exchanged */
n2ce_status n2_cuda_program_exchanged(const n2_device_program *program, n2ce_ctx *ctx);
void n2_exchanges_free(n2_queue *queue);

#endif
