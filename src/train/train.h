/* The trainer: runs the steps of a learning problem, and what belongs to that: averages of weights,
 * checks on held-out rows with patience, deadlines, checkpoints, the choice of a device, progress,
 * the end of a run that goes bad. May use engine, nn, and the backends it chooses from.
 *
 * A problem is a store with parameters and data, and a function that builds an iteration:
 *
 *     static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
 *         const model *m = user;
 *         const n2_node pick = n2g_randint(g, n2_dims(128), m->rows);
 *         const n2_node loss = loss_of(g, m, n2g_gather(g, n2g_read(g, m->x), pick));
 *         n2_minimise(g, &adam, "adam", &m->parameters, loss, NULL);
 *         n2_output(out, loss);
 *         return N2CE_OK;
 *     }
 *
 *     const n2_phase fit = {.build = build_step, .steps = 30000, .seed = 1,
 *                           .parameters = &m.parameters, .average = 0.999,
 *                           .check = held_out_loss, .check_every = 200, .patience = 10};
 *     const n2_trainer t = {.store = m.store, .user = &m, .phases = &fit, .n_phases = 1,
 *                           .checkpoint = path, .resume = true, .choice = &choice};
 *     n2_phase_record record;
 *     N2_TRY(n2_train(&t, &record));
 *
 * The same problem gives the same bytes, whatever the number of threads, and whether it was
 * stopped and resumed or not, on the same device. */
#ifndef N2_TRAIN_H
#define N2_TRAIN_H

#include "device_choice.h"
#include "nn/nn.h"

enum { N2_TRAIN_OUTPUTS = 8, N2_TRAIN_MEMBERS = 16, N2_TRAIN_INNER = 6 };

/* Numbers of one element that are read after the last step of a phase: losses, as a rule. */
typedef struct n2_outputs {
    n2_node node[N2_TRAIN_OUTPUTS];
    size_t n;
} n2_outputs;
static inline void n2_output(n2_outputs *out, n2_node x) {
    if (out->n < N2_TRAIN_OUTPUTS) out->node[out->n] = x;
    out->n++; /* too many fail later */
}

/* Builds what one iteration does: draws, losses, updates (n2_minimise). Mistakes stay in the graph;
 * a status is for what else may fail. */
typedef n2ce_status n2_build_step(void *user, n2_graph *g, n2_outputs *out);

/* A graph that every step runs `times` times before its own: drawing a batch, moving chains. */
typedef struct n2_inner_loop {
    n2_build_step *build;
    uint64_t times, seed;
    uint64_t every; /* in steps 0, every, 2 every, ... alone; 0: in all of them */
} n2_inner_loop;

/* What held-out rows say after so many steps: a loss for each member, the less the better, of the
 * averages where there are any (n2_averaged_mlp), else of the parameters. */
typedef n2ce_status n2_train_check(void *user, uint64_t step, double *losses);

/* Steps with one graph. Zero where not said otherwise: no such thing. */
typedef struct n2_phase {
    n2_build_step *build;
    uint64_t steps; /* 0: the phase is left out */
    uint64_t seed;  /* of random numbers, which else depend on node and step only: graphs differ */
    n2_inner_loop inner[N2_TRAIN_INNER]; /* in this order, up to the first without `build` */

    /* What is averaged, checked and kept. Several members are networks that are trained at once
     * and judged one by one: equally many tensors each, one member after the other. */
    const n2_parameters *parameters;
    size_t members; /* 0: one */
    double average; /* from the parameters as they are at first, after every step:
                       average <- average * this + parameter * (1 - this) */

    /* Checks: before the first step, every so many steps, and at the end. What was best is kept,
     * and becomes the parameters (and averages) when the phase ends. Without a check averages,
     * if there are any, become the parameters. */
    n2_train_check *check;
    uint64_t check_every;
    uint64_t patience; /* ends the phase after so many checks without a better loss; 0: never */
    bool check_later;  /* the check at step 0 needs no network: it may wait for the first steps */

    /* What the host does before the first and after every so many steps: fresh samples, say. */
    n2ce_status (*renew)(void *user, uint64_t step);
    uint64_t renew_every;

    double deadline; /* n2_seconds() at which it ends; 0: none */
} n2_phase;

/* What became of a phase. After resuming, of all of it. */
typedef struct n2_phase_record {
    uint64_t steps;                  /* that were run */
    double output[N2_TRAIN_OUTPUTS]; /* of the last step */
    double loss[N2_TRAIN_MEMBERS];   /* the least that was seen of each member, */
    uint64_t best[N2_TRAIN_MEMBERS]; /* and after how many steps */
    uint64_t since_best;             /* checks since then, of any member */
    bool stopped_early;              /* by patience */
    bool out_of_time;
} n2_phase_record;

typedef struct n2_trainer {
    n2_store *store;
    void *user; /* of all functions but progress */
    const n2_phase *phases;
    size_t n_phases;

    /* The plans are compiled for this backend, for which `ready` may write data (n2_tensor_fill)
     * and compile plans of its own. Called again if another device is tried. Or NULL. */
    n2ce_status (*ready)(void *user, const n2_backend *backend);
    /* Called while a device works on steps that it was asked for, for what the host may do
     * meanwhile; on the processor after each. Or NULL. */
    n2ce_status (*meanwhile)(void *user);
    /* Told at most a thousand times, in steps of all phases. NULL: the context's. */
    void (*progress)(void *progress_user, double done, double total);
    void *progress_user;

    const char *checkpoint; /* all tensors of the store but those given; NULL: none */
    double save_seconds;    /* between two of them; 0: 20 */
    bool resume;            /* go on from it, if it is there */
    /* What the training is of, a line NAME=VALUE for each option and the data's sum: a checkpoint
     * that has other lines is refused, with the name of the first that differs. Or NULL. */
    const char *identity;
    /* After that: whether the checkpoint is of this problem. Or NULL. */
    n2ce_status (*resumed)(void *user);

    n2_device_choice *choice; /* NULL: the processor. Settled by timing the steps at hand */
    /* Measure however little there is to do, and speak of all steps, not of one. */
    bool measure_all;
} n2_trainer;

/* Runs all phases; records has n_phases elements. Fails with N2CE_EINVAL for phases that are not
 * complete or beyond a limit above; N2CE_ENOMEM; N2CE_ENAN, when
 * parameters and checkpoint are those of a good step, and the sentence names the line that built
 * the bad node; N2CE_ECANCELED, with the checkpoint written; N2CE_EDEVICE, after which
 * n2_choice_retreat may help; N2CE_EDATA for a checkpoint of something else; and as the functions
 * of `t` do. */
n2ce_status n2_train(const n2_trainer *t, n2_phase_record *records);

/* ---- averages ---- */

/* Adds a tensor average.NAME for each parameter, with its values, unless there is one already; and
 * kept.NAME, for what checks liked best. n2_train does it too: for who needs them earlier, or cares
 * about the order of tensors, on which initial values depend. */
n2ce_status n2_averages_add(const n2_parameters *p);
n2ce_status n2_kept_add(const n2_parameters *p);

/* The average of a parameter, NULL where it has none; copies of layers with averages in the place
 * of their parameters: memory of the store. */
n2_tensor *n2_average_of(const n2_store *store, const n2_tensor *parameter);
n2_layer n2_averaged_layer(const n2_store *store, n2_layer layer);
n2ce_status n2_averaged_layers(n2_store *store, const n2_layer *layers, int n, n2_layer **out);
n2ce_status n2_averaged_mlp(n2_store *store, const n2_mlp *mlp, n2_mlp *out);

#endif
