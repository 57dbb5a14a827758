/* A device with memory of its own, as the engine sees it: memory, copies, and programs.
 *
 * Kernels of a device backend do not compute when they are called. They note what is to be
 * done in a queue; the queue becomes a program; the program is run as often as one likes,
 * without the host's doing. All work of a device is done in the order in which it was asked
 * for, so a download sees what the runs before it made.
 *
 * What changes from run to run without being recorded again is in the state, which lives in
 * the device's memory: seed, step, and whether a watched number was not finite. */
#ifndef N2_DEVICE_H
#define N2_DEVICE_H

#include "base/text.h"

/* Followed in memory by the addresses of the watched numbers, in the order of their nodes. */
typedef struct n2_device_state {
    uint64_t seed;
    uint32_t step;   /* the number of runs so far; the end of a good run adds one */
    uint32_t bad;    /* 1 + place of the first watched number that was not finite; 0: none.
                        Stays until the host clears it: no later run changes anything */
    uint32_t frozen; /* no update is made */
    uint32_t n_watched;
} n2_device_state;

/* n numbers that are added up by a tree, neighbours first: of shards, which lie `stride` numbers
 * apart but for the first, and then of ranks. No shards: this rank has nothing to add. */
typedef struct n2_rank_sum {
    const void *first, *rest;
    size_t shards, stride, n;
    void *to; /* where the sum goes; it may be the first */
} n2_rank_sum;

typedef struct n2_queue n2_queue;
typedef struct n2_device_program n2_device_program;
typedef struct n2_device n2_device;

/* Writes rows first .. first + n - 1 of a matrix to `out`. */
typedef void n2_rows_fn(void *arg, size_t first, size_t n, void *out);

/* Has rows first .. first + n - 1 written to `out`, by all threads. */
n2ce_status n2_write_rows(n2ce_ctx *ctx, n2_rows_fn *write, void *arg, size_t first, size_t n,
                          size_t row_bytes, void *out);

/* All return N2CE_EDEVICE with a sentence if the device fails, N2CE_ENOMEM if the host's
 * memory is short. */
struct n2_device {
    /* Memory, zeroed, aligned to 256 bytes. */
    n2ce_status (*alloc)(n2_device *d, n2ce_ctx *ctx, size_t bytes, void **out);
    void (*free)(n2_device *d, void *memory); /* NULL is fine */
    /* Bytes that have been taken and not given back, and bytes that are left to be taken. */
    void (*memory)(n2_device *d, size_t *taken, size_t *left);

    /* Copies. The host's side is done with when they return. */
    n2ce_status (*upload)(n2_device *d, n2ce_ctx *ctx, void *to, const void *from, size_t bytes);
    n2ce_status (*download)(n2_device *d, n2ce_ctx *ctx, void *to, const void *from, size_t bytes);

    /* An upload of what is written on the way there, some rows at a time on all threads. */
    n2ce_status (*fill)(n2_device *d, n2ce_ctx *ctx, void *to, size_t rows, size_t row_bytes,
                        n2_rows_fn *write, void *arg);

    /* A queue that kernels note their work in (n2_call.queue), for programs that use `state`
     * and the numbers watched there, whose addresses are given once more, with a NULL behind them,
     * and must stay.
     * program_new takes the queue over; a failure inside a kernel shows there. With `ends`
     * the program ends a run: it looks at the watched numbers and counts. */
    n2ce_status (*queue_new)(n2_device *d, n2ce_ctx *ctx, n2_device_state *state,
                             void *const *watched, n2_queue **out);
    n2ce_status (*program_new)(n2_queue *queue, bool ends, n2_device_program **out);
    void (*program_free)(n2_device_program *program); /* NULL is fine */

    /* Asks for n runs; does not wait. */
    n2ce_status (*program_run)(n2_device_program *program, n2ce_ctx *ctx, uint64_t n);
    /* What became of the exchanges between ranks of the runs so far, which are over. */
    n2ce_status (*program_exchanged)(const n2_device_program *program, n2ce_ctx *ctx);
    size_t (*program_launches)(const n2_device_program *program); /* kernels of a run */
    /* Some runs in which launches follow one another, and the time of each in words. */
    n2ce_status (*program_profile)(n2_device_program *program, n2ce_ctx *ctx, n2_text *out);

    /* Ranks. Row programs of so many flops or more are cut into shards, whose sums are added up by
     * a tree (plan_ranks.h): a fixed number of them, so that results do not depend on the ranks,
     * or, if it is 0, as many as there are ranks. lonely: one rank exchanges its sums with itself,
     * to see what that costs. */
    int shards;
    double worth_sharing;
    bool lonely;
    /* Notes n sums over shards and then over ranks 0 .. contributors - 1, a power of two of them;
     * all ranks have them then. All ranks call it, in the same order; 0: this one alone. */
    void (*note_sums)(n2_queue *queue, const n2_rank_sum *sums, size_t n, int contributors);
};

#endif
