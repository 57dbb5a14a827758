/* A trained model in a file, and out of it again. What needs steps is kept: the weights, and what
 * training saw. The rest (the code, the forests, what is usual among designs) is worked out anew
 * from the designs, which gives the same bytes. */
#include "io/bundle.h"
#include "latent_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- options and record as numbers --------------------------------------- */

enum {
    N_OPTIONS = 21,
    N_TRIALS = N2_LATENT_DEPTHS * N2_LATENT_AMBITIONS,
    N_TRIAL = sizeof(n2_latent_trial) / sizeof(double),
    N_RECORD = 9 + N2_LATENT_MEMBERS_MAX + N_TRIALS * N_TRIAL
};

static void write_options(const n2_latent_options *o, double x[N_OPTIONS]) {
    const double all[N_OPTIONS] = {
        (double)o->seed,        (double)o->prior,       (double)o->sampler,
        o->magnitude,           (double)o->stages,      (double)o->members,
        (double)o->width,       (double)o->latent,      (double)o->code_width,
        (double)o->ratio_width, (double)o->blocks,      (double)o->batch,
        (double)o->noise,       (double)o->value_steps, (double)o->code_steps,
        (double)o->prior_steps, (double)o->joint_steps, o->divergence_weight,
        (double)o->rounds,      (double)o->moves,       isnan(o->ambition) ? -1 : o->ambition};
    memcpy(x, all, sizeof all);
}

/* Whether a number is whole and within bounds, as *to says then. */
static bool whole(double x, size_t least, size_t most, size_t *to) {
    const bool fits = x >= (double)least && x <= (double)most && x == floor(x);
    *to = fits ? (size_t)x : 0;
    return fits;
}

static const size_t most_steps = (size_t)1 << 40;

static bool read_options(const double x[N_OPTIONS], n2_latent_options *o) {
    enum { MOST = 1 << 16 };
    const size_t most_seed = (size_t)1 << 53;
    size_t seed, prior, sampler;
    const bool fit = whole(x[0], 0, most_seed, &seed) && whole(x[1], 0, N2_LATENT_MLE, &prior) &&
                     whole(x[2], 0, N2_LATENT_LANGEVIN, &sampler) && x[3] >= 1 &&
                     whole(x[4], 1, N2_LATENT_STAGES_MAX, &o->stages) &&
                     whole(x[5], 1, N2_LATENT_MEMBERS_MAX, &o->members) &&
                     whole(x[6], 1, MOST, &o->width) && whole(x[7], 1, MOST, &o->latent) &&
                     whole(x[8], 1, MOST, &o->code_width) &&
                     whole(x[9], 1, MOST, &o->ratio_width) && whole(x[10], 0, 64, &o->blocks) &&
                     whole(x[11], 1, MOST, &o->batch) && whole(x[12], 1, MOST, &o->noise) &&
                     whole(x[13], 0, most_steps, &o->value_steps) &&
                     whole(x[14], 0, most_steps, &o->code_steps) &&
                     whole(x[15], 0, most_steps, &o->prior_steps) &&
                     whole(x[16], 0, most_steps, &o->joint_steps) && isfinite(x[17]) &&
                     whole(x[18], 1, most_steps, &o->rounds) &&
                     whole(x[19], 1, most_steps, &o->moves) && (x[20] >= 0 || x[20] == -1);
    if (!fit) return false;
    o->seed = seed;
    o->prior = (n2_latent_prior)prior;
    o->sampler = (n2_latent_sampler)sampler;
    o->magnitude = x[3];
    o->divergence_weight = x[17];
    o->ambition = x[20] < 0 ? (double)NAN : x[20];
    return true;
}

static void write_record(const n2_latent_record *r, double x[N_RECORD]) {
    const double all[] = {r->network_r2, /* forests and process are fitted again */
                          r->misfit,
                          r->divergence,
                          r->prior_loss,
                          (double)r->steps_done,
                          (double)r->steps_all,
                          (double)r->out_of_time,
                          r->ambition,
                          (double)r->trials};
    memcpy(x, all, sizeof all);
    x += sizeof all / sizeof all[0];
    for (size_t e = 0; e < N2_LATENT_MEMBERS_MAX; e++) x[e] = (double)r->best_step[e];
    memcpy(x + N2_LATENT_MEMBERS_MAX, r->trial, N_TRIALS * N_TRIAL * sizeof *x);
}

static void read_record(const double x[N_RECORD], n2_latent_record *r) {
    r->r2 = x[0];
    r->misfit = x[1];
    r->divergence = x[2];
    r->prior_loss = x[3];
    (void)whole(x[4], 0, most_steps, &r->steps_done);
    (void)whole(x[5], 0, most_steps, &r->steps_all);
    r->out_of_time = x[6] > 0;
    r->ambition = x[7] >= 0 ? x[7] : 0;
    r->trials = x[8] >= 0 && x[8] <= N_TRIALS ? (size_t)x[8] : 0;
    for (size_t e = 0; e < N2_LATENT_MEMBERS_MAX; e++)
        (void)whole(x[9 + e], 0, most_steps, &r->best_step[e]);
    memcpy(r->trial, x + 9 + N2_LATENT_MEMBERS_MAX, N_TRIALS * N_TRIAL * sizeof *x);
    for (size_t i = 0; i < N_TRIALS; i++)
        if (!(r->trial[i].n >= 0 && r->trial[i].n <= N2_LATENT_TRIED)) r->trials = 0;
}

/* ---- weights ------------------------------------------------------------- */

/* The weights are what the model reads when it is asked, rows aside; NULL if node k is no such
 * thing. */
static n2_tensor *weight_at(const n2_latent *m, uint32_t k) {
    const n2_node_data *d = n2_at(m->appraise.g, (n2_node){k});
    n2_tensor *t = d->op->id == N2_OP_tensor ? d->attr->tensor[0] : NULL;
    return t == m->rows ? NULL : t;
}

static const char *name_of(const n2_tensor *t, char name[160]) {
    snprintf(name, 160, "model.%s", t->name);
    return name;
}

n2ce_status n2_latent_put(const n2_latent *m, n2_bundle *b) {
    double *options = n2_bundle_room(b, N_OPTIONS), *record = n2_bundle_room(b, N_RECORD);
    char name[160];
    if (b->failed) return N2CE_ENOMEM;
    write_options(&m->o, options);
    write_record(&m->record, record);
    n2_bundle_put_doubles(b, "options", N_OPTIONS, 0, options);
    n2_bundle_put_doubles(b, "record", N_RECORD, 0, record);
    for (uint32_t k = 1; k <= n2_graph_size(m->appraise.g); k++) {
        n2_tensor *t = weight_at(m, k);
        if (!t) continue;
        N2_TRY(n2_tensor_pull(m->store, t));
        n2_bundle_put(b, name_of(t, name), N2_ST_F32, t->shape.rank, t->shape.dim, t->data);
    }
    return N2CE_OK;
}

static bool same_shape(const n2_st_tensor *a, n2_shape b) {
    if (a->rank != b.rank) return false;
    for (int i = 0; i < b.rank; i++)
        if (a->shape[i] != b.dim[i]) return false;
    return true;
}

n2ce_status n2_latent_take(n2_latent *m, const n2_st_file *f) {
    char name[160];
    double *record = NULL;
    for (uint32_t k = 1; k <= n2_graph_size(m->appraise.g); k++) {
        n2_tensor *t = weight_at(m, k);
        if (!t) continue;
        const n2_st_tensor *from = n2_st_find(f, name_of(t, name));
        if (!from || !same_shape(from, t->shape))
            return n2_fail(m->ctx, N2CE_EDATA, "The weights \"%s\" are missing or do not fit.",
                           t->name);
        N2_TRY(n2_st_to_f32(m->ctx, from, t->data, (size_t)n2_elements(t->shape)));
        n2_tensor_push(m->store, t);
    }
    const n2ce_status status = n2_bundle_take(m->ctx, f, "record", N_RECORD, &record);
    if (status == N2CE_OK) read_record(record, &m->record);
    n2_free(m->ctx, record);
    return status;
}

/* Networks that are much larger than the file are not begun. That of the prior, which is not in the
 * file if nobody asks it, is small. */
static bool can_be_held(const n2_st_file *f, const n2_latent_options *o) {
    enum { SMALL = 1 << 22, SQUARES = 5 };
    const double value = (double)o->width * (double)o->width * (double)o->members;
    const double code = (double)o->code_width * (double)(o->code_width + o->latent);
    const double ratio =
        (double)o->ratio_width * (double)(o->ratio_width * (o->blocks + SQUARES) + o->latent);
    return n2_bundle_can_hold(f, value + code + ratio - SMALL);
}

n2ce_status n2_latent_load(n2ce_ctx *ctx, const n2_designs *designs, const n2_st_file *f,
                           const n2_design_rules *rules, n2_device_choice *choice,
                           n2_latent **out) {
    n2_latent_options o = {.rules = rules, .choice = choice, .trained = f};
    double *numbers = NULL;
    *out = NULL;
    n2ce_status status = n2_bundle_take(ctx, f, "options", N_OPTIONS, &numbers);
    if (status == N2CE_OK && !(read_options(numbers, &o) && can_be_held(f, &o)))
        status = N2CE_EDATA;
    n2_free(ctx, numbers);
    return status == N2CE_OK ? n2_latent_fit(ctx, designs, &o, out) : status;
}
