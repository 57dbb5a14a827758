/* What an engineer does second: three networks learn the values, and the best of 40,000 candidates
 * by their mean are changed a little, and ranked again, three times.
 *
 * Networks are scikit-learn's MLPRegressor: two hidden layers of 64, ReLU, Adam 0.001, batches of
 * 200, at most 150 epochs, stopped when 10 epochs have not lowered the error on a tenth of the
 * rows, which are those of the best epoch then. */
#include "base/random.h"
#include "candidates.h"
#include "design_code.h"
#include "workspace.h"

#include <stdio.h>
#include <string.h>

enum { MEMBERS = 3, WIDTH = 64, EPOCHS = 150, BATCH = 200, PATIENCE = 10, HELD_OUT = 10 };
enum { ROUNDS = 3, KEPT = 512, CHANGES = 6000, BLOCK = 1024, STREAM = 0x4D450000 };
static const double SIZE = 0.05, RATE = 1e-3;

typedef struct networks {
    n2_workspace *ws;
    n2_code code;
    n2_parameters parameters;
    n2_mlp member[MEMBERS];
    size_t train, check;       /* rows to learn from, and to check by */
    double *check_x, *check_y; /* coded */
    n2_tensor *x, *y, *rows;   /* rows: what is asked */
    n2_plan *ask;
    double *coded, *means; /* of a block */
} networks;

/* ---- learning -------------------------------------------------------------------------------- */

static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    const networks *n = user;
    n2_node sum = N2_NONE;
    for (size_t m = 0; m < MEMBERS; m++) {
        const n2_node pick = n2g_randint(g, n2_dims(BATCH), (int64_t)n->train);
        const n2_node x = n2g_gather(g, n2g_read(g, n->x), pick);
        const n2_node y = n2g_gather(g, n2g_read(g, n->y), pick);
        const n2_node off = n2g_sub(g, n2_mlp_apply(g, &n->member[m], x), y);
        const n2_node loss = n2_mean_all(g, n2g_mul(g, off, off));
        sum = m ? n2g_add(g, sum, loss) : loss;
    }
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = RATE};
    n2_minimise(g, &adam, "adam", &n->parameters, sum, NULL);
    n2_output(out, sum);
    return N2CE_OK;
}

static n2ce_status build_asking(void *user, const n2_backend *backend) {
    networks *n = user;
    n2_graph *g = n2_workspace_graph(n->ws);
    n2_node out[MEMBERS];
    if (!g) return N2CE_ENOMEM;
    n->ws->backend = backend;
    for (size_t m = 0; m < MEMBERS; m++)
        out[m] = n2_mlp_apply(g, &n->member[m], n2g_read(g, n->rows));
    return n2_workspace_compile(n->ws, g, out, MEMBERS, &n->ask);
}

/* What the members say of n <= BLOCK coded rows: member by member, BLOCK numbers each. */
static n2ce_status ask_block(networks *n, const double *x, size_t rows) {
    const size_t width = n->code.width;
    memset(n->coded, 0, BLOCK * width * sizeof *n->coded);
    memcpy(n->coded, x, rows * width * sizeof *x);
    n2_tensor_set(n->ws->store, n->rows, n->coded);
    N2_TRY(n2_plan_run(n->ask));
    for (size_t m = 0; m < MEMBERS; m++) n2_plan_get(n->ask, m, n->means + m * BLOCK);
    return N2CE_OK;
}

static n2ce_status held_out_error(void *user, uint64_t step, double *losses) {
    networks *n = user;
    (void)step;
    for (size_t m = 0; m < MEMBERS; m++) losses[m] = 0;
    for (size_t i = 0; i < n->check; i += BLOCK) {
        const size_t rows = n->check - i < BLOCK ? n->check - i : BLOCK;
        N2_TRY(ask_block(n, n->check_x + i * n->code.width, rows));
        for (size_t k = 0; k < rows * MEMBERS; k++) {
            const double off =
                n->means[k % MEMBERS * BLOCK + k / MEMBERS] - n->check_y[i + k / MEMBERS];
            losses[k % MEMBERS] += off * off / (double)n->check;
        }
    }
    return N2CE_OK;
}

/* A tenth of the rows, by chance, come last. */
static n2ce_status deal_rows(networks *n) {
    const size_t rows = n->code.rows, width = n->code.width;
    const n2_stream stream = {n->ws->seed, STREAM, 0};
    double *x = n2_arena_alloc(&n->ws->arena, rows * width, sizeof *x);
    double *y = n2_arena_alloc(&n->ws->arena, rows, sizeof *y);
    size_t *order = n2_arena_alloc(&n->ws->arena, rows, sizeof *order);
    if (!x || !y || !order) return N2CE_ENOMEM;
    for (size_t i = 0; i < rows; i++) order[i] = i;
    for (size_t i = 0; i < rows; i++) {
        const size_t k = i + n2_random_below(stream, i, rows - i), row = order[k];
        order[k] = order[i];
        memcpy(x + i * width, n->code.x + row * width, width * sizeof *x);
        y[i] = n->code.y[row];
    }
    n->check = rows / HELD_OUT ? rows / HELD_OUT : 1;
    n->train = rows > n->check ? rows - n->check : rows;
    n->check_x = x + (rows - n->check) * width;
    n->check_y = y + (rows - n->check);
    n->x = n2_workspace_table(n->ws, "x", n->train, width, x);
    n->y = n2_workspace_table(n->ws, "y", n->train, 1, y);
    return n->x && n->y ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status make_networks(networks *n) {
    const int64_t widths[] = {(int64_t)n->code.width, WIDTH, WIDTH, 1};
    n->parameters = n2_parameters_new(n->ws->store, n->ws->seed);
    for (size_t m = 0; m < MEMBERS; m++) {
        char name[32];
        snprintf(name, sizeof name, "member.%zu", m);
        n->member[m] = n2_mlp_new(&n->parameters, name, widths, 4, 0);
    }
    n->rows = n2_workspace_table(n->ws, "rows", BLOCK, n->code.width, NULL);
    n->coded = n2_arena_alloc(&n->ws->arena, BLOCK * n->code.width, sizeof *n->coded);
    n->means = n2_arena_alloc(&n->ws->arena, (size_t)BLOCK * MEMBERS, sizeof *n->means);
    if (n->parameters.failed || !n->rows || !n->coded || !n->means) return N2CE_ENOMEM;
    return deal_rows(n);
}

/* Once the rows are dealt. */
static n2ce_status learn(networks *n) {
    const uint64_t epoch = (n->train + BATCH - 1) / BATCH;
    const n2_phase fit = {.build = build_step,
                          .steps = n2_effort_steps(n->ws->effort, epoch * EPOCHS),
                          .seed = n2_workspace_seed(n->ws),
                          .parameters = &n->parameters,
                          .members = MEMBERS,
                          .check = held_out_error,
                          .check_every = epoch,
                          .patience = PATIENCE};
    n->ws->ready = build_asking;
    return n2_workspace_train(n->ws, n, &fit, 1, 0.8);
}

/* ---- designs --------------------------------------------------------------------------------- */

static n2ce_status rank(void *user, const double *x, size_t rows, double *score) {
    networks *n = user;
    const size_t cols = n->code.space->n, width = n->code.width;
    double *coded = n2_alloc(n->ws->ctx, BLOCK * width, sizeof *coded);
    n2ce_status status = coded ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < rows && status == N2CE_OK; i += BLOCK) {
        const size_t count = rows - i < BLOCK ? rows - i : BLOCK;
        for (size_t k = 0; k < count; k++)
            n2_code_encode(&n->code, x + (i + k) * cols, coded + k * width);
        status = ask_block(n, coded, count);
        for (size_t k = 0; k < count; k++)
            score[i + k] = n->means[k] + n->means[BLOCK + k] + n->means[2 * BLOCK + k];
    }
    n2_free(n->ws->ctx, coded);
    return status;
}

static n2ce_status evolve(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    networks n = {.ws = ws};
    n2_candidates c;
    N2_TRY(n2_code_new(&ws->arena, offline, N2_CODE_ONE_HOT, &n.code));
    N2_TRY(make_networks(&n));
    N2_TRY(learn(&n));
    N2_TRY(n2_candidates_first(&ws->arena, offline, ws->seed, &c));
    for (size_t round = 0; round < ROUNDS; round++) {
        N2_TRY(n2_candidates_rank(&c, rank, &n));
        N2_TRY(n2_candidates_renew(&c, KEPT, CHANGES, SIZE));
        N2_TRY(n2_workspace_report(ws, 0.8 + 0.05 * (double)(round + 1)));
    }
    N2_TRY(n2_candidates_rank(&c, rank, &n));
    return n2_candidates_propose(&c, out);
}

n2ce_status n2_mlp_evolve_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                               const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, evolve, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_mlp_evolve_with)

const n2_method n2_mlp_evolve_method = {
    "mlp-evolve", "three networks rank candidates and changes of the best, as with scikit-learn",
    propose};
