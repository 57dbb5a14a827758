#include "surrogate.h"

#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EMBEDDING = 256, BOOTSTRAP_STREAM = 0x53420000 };
static const double SLOPE = 0.3;

n2_surrogate_options n2_surrogate_ensemble(double rate) {
    return (n2_surrogate_options){
        .members = 5, .layers = 1, .width = 256, .epochs = 100, .batch = 100, .rate = rate};
}

/* ---- networks -------------------------------------------------------------------------------- */

static n2_tensor *named(n2_parameters *p, const char *name, const char *what, n2_shape shape,
                        double bound) {
    char full[96];
    snprintf(full, sizeof full, "%s.%s", name, what);
    return n2_parameter(p, full, shape, bound);
}

n2_first_layer n2_first_layer_new(n2_parameters *p, const char *name, const n2_code *code,
                                  int64_t out) {
    const bool embed = code->kind == N2_CODE_ONE_HOT && n2_space_is_sequence(code->space);
    const int64_t positions = (int64_t)code->space->n, width = (int64_t)code->width;
    const double bound = 1 / sqrt((double)(embed ? positions * EMBEDDING : width));
    n2_first_layer l = {.positions = positions, .out = out};
    if (embed)
        l.embedding = named(p, name, "embedding", n2_dims(width / positions, EMBEDDING), 0.05);
    l.weight = named(p, name, "weight",
                     embed ? n2_dims(positions * out, EMBEDDING) : n2_dims(out, width), bound);
    l.bias = named(p, name, "bias", n2_dims(out), bound);
    return l;
}

/* Every level at every position has its own sum: a table [positions * levels x out] that is the
 * same for all rows, so that rows cost no more than without an embedding. The weight, which is
 * large, stands first, so that it is never transposed. */
static n2_node table_of_sums(n2_graph *g, const n2_first_layer *l) {
    const n2_node e = n2g_read(g, l->embedding);
    const int64_t levels = n2_shape_at(g, e).dim[0];
    n2_node t = n2g_matmul(g, n2g_read(g, l->weight), e, false, true);
    t = n2g_transpose(g, n2g_reshape(g, t, n2_dims(l->positions, l->out, levels)), 1, 2);
    return n2g_reshape(g, t, n2_dims(l->positions * levels, l->out));
}

n2_node n2_first_layer_apply(n2_graph *g, const n2_first_layer *l, n2_node x) {
    if (!l->weight || !l->bias) return N2_NONE; /* out of memory, which minimise reports */
    if (!l->embedding) return n2g_linear(g, x, n2g_read(g, l->weight), n2g_read(g, l->bias));
    return n2g_add(g, n2g_matmul(g, x, table_of_sums(g, l), false, false), n2g_read(g, l->bias));
}

static n2_member new_member(n2_surrogate *s, size_t m) {
    const double start[2] = {log(0.1), log(0.2)};
    const int64_t width = n2_effort_width(s->ws->effort, s->options.width);
    const int64_t widths[] = {width, width, 2};
    const int skip = s->options.layers == 1;
    n2_parameters *p = &s->parameters;
    char name[64];
    n2_member member;
    snprintf(name, sizeof name, "member.%zu.first", m);
    member.first = n2_first_layer_new(p, name, s->code, width);
    snprintf(name, sizeof name, "member.%zu.rest", m);
    member.rest = n2_mlp_new(p, name, widths + skip, 3 - skip, SLOPE);
    snprintf(name, sizeof name, "member.%zu.bounds", m);
    member.bounds = n2_parameter(p, name, n2_dims(2), 0);
    if (member.bounds) n2_tensor_set(s->ws->store, member.bounds, start);
    return member;
}

n2_node n2_soft_clamp(n2_graph *g, n2_node x, n2_node bounds) {
    const n2_node low = n2g_slice(g, bounds, 0, 0, 1), high = n2g_slice(g, bounds, 0, 1, 1);
    x = n2g_sub(g, high, n2g_softplus(g, n2g_sub(g, high, x)));
    return n2g_add(g, low, n2g_softplus(g, n2g_sub(g, x, low)));
}

void n2_surrogate_apply(n2_graph *g, const n2_surrogate *s, size_t m, n2_node x, n2_node *mean,
                        n2_node *log_spread) {
    const n2_member *member = &s->members[m];
    const n2_node h = n2g_lrelu(g, n2_first_layer_apply(g, &member->first, x), SLOPE);
    const n2_node out = n2_mlp_apply(g, &member->rest, h);
    *mean = n2g_slice(g, out, 1, 0, 1);
    if (log_spread)
        *log_spread = n2_soft_clamp(g, n2g_slice(g, out, 1, 1, 1), n2g_read(g, member->bounds));
}

/* ---- training -------------------------------------------------------------------------------- */

static n2ce_status draw_bootstraps(n2_surrogate *s) {
    const size_t rows = s->code->rows, members = s->options.members;
    s->bootstraps = n2_arena_alloc(&s->ws->arena, rows * members, sizeof *s->bootstraps);
    if (!s->bootstraps) return N2CE_ENOMEM;
    for (size_t i = 0; i < rows * members; i++) {
        const n2_stream stream = {s->ws->seed, BOOTSTRAP_STREAM + (uint32_t)(i % members), 0};
        s->bootstraps[n2_random_below(stream, i / members, rows) * members + i % members]++;
    }
    s->counts = n2_workspace_table(s->ws, "surrogate.counts", rows, members, s->bootstraps);
    return s->counts ? N2CE_OK : N2CE_ENOMEM;
}

static n2_node member_loss(n2_graph *g, const n2_surrogate *s, size_t m, n2_node x, n2_node y,
                           n2_node counts) {
    n2_node mean, log_spread;
    n2_surrogate_apply(g, s, m, x, &mean, &log_spread);
    const n2_node z = n2g_mul(g, n2g_sub(g, y, mean), n2g_exp(g, n2g_neg(g, log_spread)));
    const n2_node nll = n2g_add(g, n2g_scale(g, n2g_mul(g, z, z), 0.5), log_spread);
    return n2_mean_all(g, n2g_mul(g, nll, n2g_slice(g, counts, 1, (int64_t)m, 1)));
}

static n2ce_status make_tables(n2_surrogate *s) {
    s->x = n2_workspace_table(s->ws, "surrogate.x", s->code->rows, s->code->width, s->code->x);
    s->y = n2_workspace_table(s->ws, "surrogate.y", s->code->rows, 1, s->code->y);
    return s->x && s->y ? draw_bootstraps(s) : N2CE_ENOMEM;
}

static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    const n2_surrogate *s = user;
    const n2_node pick = n2g_randint(g, n2_dims((int64_t)s->options.batch), (int64_t)s->code->rows);
    const n2_node x = n2g_gather(g, n2g_read(g, s->x), pick);
    const n2_node y = n2g_gather(g, n2g_read(g, s->y), pick);
    const n2_node counts = n2g_gather(g, n2g_read(g, s->counts), pick);
    n2_node loss = member_loss(g, s, 0, x, y, counts);
    for (size_t m = 1; m < s->options.members; m++)
        loss = n2g_add(g, loss, member_loss(g, s, m, x, y, counts));
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-7, 0}, .rate = s->options.rate};
    n2_minimise(g, &adam, "surrogate.adam", &s->parameters, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

static n2ce_status build_asking(n2_surrogate *s) {
    n2_workspace *ws = s->ws;
    n2_graph *g = n2_workspace_graph(ws);
    n2_node out[2 * N2_MOST_MEMBERS];
    s->rows = n2_workspace_table(ws, "surrogate.rows", N2_SURROGATE_ROWS, s->code->width, NULL);
    s->answer = n2_arena_alloc(&ws->arena, N2_SURROGATE_ROWS, sizeof *s->answer);
    if (!g || !s->rows || !s->answer) return N2CE_ENOMEM;
    const n2_node x = n2g_read(g, s->rows);
    for (size_t m = 0; m < s->options.members; m++)
        n2_surrogate_apply(g, s, m, x, &out[2 * m], &out[2 * m + 1]);
    return n2_workspace_compile(ws, g, out, 2 * s->options.members, &s->ask);
}

n2ce_status n2_surrogate_fit(n2_workspace *ws, const n2_code *code, const n2_surrogate_options *o,
                             double upto, n2_surrogate *s) {
    *s = (n2_surrogate){.ws = ws, .code = code, .options = *o};
    s->parameters = n2_parameters_new(ws->store, ws->seed);
    for (size_t m = 0; m < o->members; m++) s->members[m] = new_member(s, m);
    if (s->parameters.failed) return N2CE_ENOMEM;
    N2_TRY(make_tables(s));
    const n2_phase fit = {.build = build_step,
                          .steps = n2_workspace_steps(ws, code->rows, o->batch, o->epochs),
                          .seed = n2_workspace_seed(ws)};
    N2_TRY(n2_workspace_train(ws, s, &fit, 1, upto));
    return build_asking(s);
}

n2ce_status n2_surrogate_refit(n2_surrogate *s, const double *weight, uint64_t steps, double upto) {
    const size_t members = s->options.members, n = s->code->rows * members;
    double *counts = n2_alloc(s->ws->ctx, n, sizeof *counts);
    if (!counts) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) counts[i] = s->bootstraps[i] * weight[i / members];
    n2_tensor_set(s->ws->store, s->counts, counts);
    n2_free(s->ws->ctx, counts);
    const n2_phase fit = {.build = build_step, .steps = steps, .seed = n2_workspace_seed(s->ws)};
    return n2_workspace_train(s->ws, s, &fit, 1, upto);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Rows beyond n are zeros: what they answer is not looked at. */
static void set_rows(n2_surrogate *s, const double *x, size_t n) {
    const size_t width = s->code->width;
    const size_t bytes = n2_store_bytes(s->ws->store);
    memset(s->rows->data, 0, N2_SURROGATE_ROWS * width * bytes);
    for (size_t i = 0; i < n * width; i++) {
        if (bytes == sizeof(float))
            ((float *)s->rows->data)[i] = (float)x[i];
        else
            ((double *)s->rows->data)[i] = x[i];
    }
    n2_tensor_push(s->ws->store, s->rows);
}

static n2ce_status ask_block(n2_surrogate *s, const double *x, size_t n, double *means,
                             double *spreads) {
    const size_t members = s->options.members;
    set_rows(s, x, n);
    N2_TRY(n2_plan_run(s->ask));
    for (size_t k = 0; k < 2 * members; k++) {
        double *to = k % 2 ? spreads : means;
        if (!to) continue;
        n2_plan_get(s->ask, k, s->answer);
        for (size_t i = 0; i < n; i++)
            to[i * members + k / 2] = k % 2 ? exp(s->answer[i]) : s->answer[i];
    }
    return N2CE_OK;
}

n2ce_status n2_surrogate_ask(n2_surrogate *s, const double *x, size_t n, double *means,
                             double *spreads) {
    const size_t members = s->options.members;
    for (size_t i = 0; i < n; i += N2_SURROGATE_ROWS) {
        const size_t count = n - i < N2_SURROGATE_ROWS ? n - i : N2_SURROGATE_ROWS;
        N2_TRY(ask_block(s, x + i * s->code->width, count, means + i * members,
                         spreads ? spreads + i * members : NULL));
    }
    return N2CE_OK;
}

n2ce_status n2_surrogate_mean(n2_surrogate *s, const double *x, size_t n, double *mean) {
    const size_t members = s->options.members;
    double means[N2_SURROGATE_ROWS * N2_MOST_MEMBERS];
    for (size_t i = 0; i < n; i += N2_SURROGATE_ROWS) {
        const size_t count = n - i < N2_SURROGATE_ROWS ? n - i : N2_SURROGATE_ROWS;
        N2_TRY(ask_block(s, x + i * s->code->width, count, means, NULL));
        for (size_t k = 0; k < count; k++) {
            double sum = 0;
            for (size_t m = 0; m < members; m++) sum += means[k * members + m];
            mean[i + k] = sum / (double)members;
        }
    }
    return N2CE_OK;
}
