/* Inside a plan: shared by plan.c (stages), plan_steps.c, plan_storage.c (types), plan_memory.c
 * (places), plan_split.c (shares), walk.c (running), watch.c (numbers that are not finite),
 * plan_device.c, plan_ranks.c (several processes), plan_room.c and plan_print.c. */
#ifndef N2_PLAN_DATA_H
#define N2_PLAN_DATA_H

#include "plan.h"

enum {
    N2_LEAST_ROWS = 16,         /* fewer rows are worth a program only if they are heavy, */
    N2_HEAVY_ROWS = 64000000,   /* which is to say, of so many flops in all */
    N2_GRAIN = 32768,           /* work (n2_work) that is worth handing to a thread: 10 us */
    N2_MOST_TILE = 144,         /* rows of a tile, */
    N2_LEAST_TILE = 4,          /* and of one whose rows are too big for any cache: pictures */
    N2_TILE_BYTES = 1536 << 10, /* of a tile's values: a second-level cache and a half */
    /* On a device, bytes up to which a value has a place to itself, in the block and in a
     * tile: what shares memory cannot run at the same time. In a tile the larger limit is for
     * values that are summed over rows, which happens apart from the rest, if a row has few
     * numbers: of pictures there are too many, and each fills the device by itself. */
    N2_OWN_PLACE = 16 << 20,
    N2_OWN_TILE_PLACE = 2 << 20,
    N2_OWN_SUMMED_PLACE = 32 << 20,
    N2_OWN_SUMMED_NUMBERS = 2047
};

/* What the planner knows of a node. */
typedef struct n2_planned {
    bool live;
    n2_rows rows;   /* WHOLE, or its role in a row program */
    int64_t n_rows; /* of that program */
    bool row_input[N2_MAX_INPUTS];
    int stage;
    int level;       /* of a whole node in its stage: behind those it needs */
    uint32_t root;   /* whose storage it shares: itself, or what it is a view of */
    uint32_t killer; /* the update that overwrites its storage, 0: none */
    n2_dtype dtype;  /* how it lies in memory */
    bool stored;     /* as a whole, in the block; else only in tiles */
    bool output;     /* read after the run */
    bool watched;    /* must be finite before later updates are made */
    int step, last_step;
    int uses;             /* how many read it, the caller included */
    uint32_t absorbs;     /* the input whose kernel does this op along the way, 0: none */
    n2_epilogue epilogue; /* what this op is to that kernel */
    bool absorbed;        /* by its only reader: never stored */
    int order;            /* place in its row program, -1: not yet placed */
    size_t place;         /* bytes from the block's start, or numbers per row in a tile */
    size_t partials;      /* of a sum over rows: bytes from the block's start */
    void *data;           /* resolved address, when stored */
} n2_planned;

/* Where an operand lives: at an address, as a whole or by rows; or in the tile. */
typedef struct n2_operand {
    char *base; /* NULL: in the tile, at `tile` numbers per row */
    size_t tile;
    bool by_rows; /* else the whole is passed, whatever the rows */
    int64_t row_bytes;
    n2_shape shape;
    n2_dtype dtype;
} n2_operand;

typedef struct n2_instruction {
    n2_kernel *kernel;
    const n2_node_data *node;
    uint32_t id;
    uint32_t made; /* the node that `out` is the value of: what absorbed this one, or itself */
    n2_operand out, in[N2_MAX_INPUTS];
    n2_operand gate, addend; /* of a matrix product that absorbed others; rank 0: none */
    double slope;
    char *partials;      /* sums over rows: of all chunks but the first; NULL: none */
    size_t fold_numbers; /* of one partial sum */
    size_t sum_at;       /* numbers from the start of p->rank_sums */
    bool passed_on;      /* to other ranks, row by row */
    double flops;
    _Atomic int64_t nanoseconds; /* of all threads, while the plan is timed */
} n2_instruction;

/* What a thread does of a step at a time: instructions [first, first + n), or a part of one. */
typedef struct n2_share {
    size_t first, n;
    int part, parts;
} n2_share;

typedef struct n2_shares {
    n2_share *list;
    size_t n;
} n2_shares;

typedef enum n2_step_kind { N2_STEP_SERIAL, N2_STEP_SPLIT, N2_STEP_ROWS } n2_step_kind;

typedef struct n2_step {
    n2_step_kind kind;
    int stage;
    n2_instruction *code;
    size_t n_code;
    n2_shares shares; /* of all but row programs, whose shares are the chunks */
    n2_shares sums;   /* of adding up what the chunks of a row program summed */
    /* row programs */
    int64_t n_rows, tile_rows, chunk_rows;
    int n_chunks;
    size_t tile_numbers; /* per row */
    size_t tile_at;      /* where its tile begins in a worker's memory */
    bool is_shared;      /* between ranks (plan_ranks.h) */
    size_t sum_numbers;  /* of all its sums */
    /* accounts */
    double flops, seconds;
} n2_step;

struct n2_plan {
    n2ce_ctx *ctx;
    const n2_graph *graph;
    n2_graph *copy;      /* of it, in which cheap values are made again; NULL: it is the caller's */
    const n2_plan *like; /* what it would be without them, while it is made: rows are cut as there,
                            so that sums are added up in the same order */
    const n2_backend *backend;
    n2_arena arena;
    n2_planned *nodes; /* by id */
    uint32_t n_nodes;
    n2_step *steps;
    size_t n_steps;
    char *block; /* all stored values */
    size_t block_bytes;
    char **tiles; /* one per worker, with the worker's scratch memory behind it */
    size_t tile_bytes, scratch_bytes;
    n2_node *outputs;
    size_t n_outputs;
    uint32_t *watched; /* ids of numbers that must stay finite, rising */
    size_t n_watched;
    uint32_t bad; /* the watched one that was not finite in the runs just made; 0: none */
    bool frozen;  /* no update is made: a run that failed is looked at again */
    uint64_t seed;
    uint32_t runs;
    int workers;
    /* ranks that run it together */
    int rank, ranks;
    n2ce_status ranks_status; /* of the exchanges of a run */
    char *rank_sums;          /* sums of a step on their way; NULL: not needed so far */
    size_t sum_numbers;       /* that it has room for */
    bool timing;
    uint64_t timed_runs;
    double phase_began; /* seconds, of the step that is being timed */
    uint32_t bad_node;  /* found by a checked run */
    /* tensors that the plan uses; on a device they have a copy there */
    n2_store *store;
    n2_tensor **tensors;
    bool *writes; /* by place in tensors */
    size_t n_tensors;
    /* on a device (plan_device.c); else NULL */
    n2_device *device;
    n2_device_state *state; /* in its memory */
    void **watched_at;      /* addresses of the watched numbers there */
    n2_device_program *program;
    size_t kernel_bytes; /* that recording took: jobs, partial sums, packed weights, workspaces */
    n2_queue *queue;     /* what is being recorded */
    bool state_moved;    /* seed or runs are not those of the device's state */
};

static inline const n2_node_data *n2_node_at(const n2_plan *p, uint32_t id) {
    return n2_at(p->graph, (n2_node){id});
}

/* Leaves are there before the run; views share the storage of what they look at. Neither
 * has a kernel. */
static inline bool n2_is_leaf(n2_op_id op) { return op == N2_OP_tensor || op == N2_OP_constant; }
static inline bool n2_is_view(n2_op_id op) { return op == N2_OP_reshape || op == N2_OP_detach; }
static inline bool n2_needs_kernel(n2_op_id op) { return !n2_is_leaf(op) && !n2_is_view(op); }

/* The step of p->like that step k is like; NULL: none. */
static inline const n2_step *n2_like_step(const n2_plan *p, size_t k) {
    if (!p->like || k >= p->like->n_steps) return NULL;
    const n2_step *s = &p->like->steps[k];
    return s->kind == p->steps[k].kind && s->n_rows == p->steps[k].n_rows ? s : NULL;
}

/* plan_split.c. Floating-point operations of a node; its work, in numbers that could be read or
 * written meanwhile. */
double n2_flops(const n2_graph *g, const n2_node_data *d);
double n2_work(const n2_graph *g, const n2_node_data *d);

n2ce_status n2_plan_steps(n2_plan *plan);
n2ce_status n2_plan_storage(n2_plan *plan); /* how values lie in memory */
void n2_plan_chunks(n2_plan *plan); /* of row programs: before there is memory for their sums */
n2ce_status n2_plan_places(n2_plan *plan); /* where values will be; how much memory that is */
n2ce_status n2_plan_memory(n2_plan *plan); /* the memory, and instructions that use it */
n2ce_status n2_plan_split(n2_plan *plan);

/* plan_room.c. Whether there is as much memory as the plan needs, before any is asked for: fails
 * with N2CE_EDEVICE or, on the host, N2CE_ENOMEM, and a sentence that names the parts. */
n2ce_status n2_plan_check_room(const n2_plan *plan);

/* plan_device.c. Memory of the plan: the device's or the host's. */
n2ce_status n2_plan_tensors(n2_plan *plan);
n2ce_status n2_plan_mirror(n2_plan *plan); /* copies of tensors on the device */
n2ce_status n2_plan_alloc(n2_plan *plan, size_t bytes, char **out);
n2ce_status n2_plan_write(n2_plan *plan, void *to, const void *from, size_t bytes);
n2ce_status n2_plan_read(const n2_plan *plan, void *to, const void *from, size_t bytes);
void n2_plan_leave_device(n2_plan *plan);

/* Around a run on the host, if the tensors have copies on a device. */
n2ce_status n2_plan_pull_tensors(n2_plan *plan);
void n2_plan_push_tensors(n2_plan *plan);

/* Runs on the device: `record` calls all kernels once, noting their work. In the end *bad becomes
 * the watched node that is not finite, 0: all are. */
n2ce_status n2_plan_begin_on_device(n2_plan *plan, uint64_t n, void (*record)(n2_plan *plan));
n2ce_status n2_plan_end_on_device(n2_plan *plan, uint32_t *bad);

/* Runs what `body` notes, once, with updates or without. */
n2ce_status n2_plan_profile_on_device(n2_plan *p, n2_text *out);
n2ce_status n2_plan_run_now(n2_plan *plan, void (*body)(n2_plan *plan, const void *arg),
                            const void *arg);

#endif
