/* The search: chains from the best designs known, each of which gives one proposal. */
#include "base/numerics.h"
#include "base/random.h"
#include "design/design_space.h"
#include "design_set.h"
#include "latent_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double SMALLEST_STEP = 0.004, LARGEST_STEP = 0.5, BEHIND = 0.25;
static const double MOST_NOISE = 0.8, TEMPERATURE = 2, LEAST_SPACING = 1e-18, STRUCTURED = 0.5;
static const double LARGEST_NEAR = 0.1, MOST_STAY = 0.95, MOST_STAY_OUTDONE = 0.6;
enum { GROUP = 256, MOST_LOOKS = 16 }; /* chains at a time; designs that each looks at at once */

/* ---- chains -------------------------------------------------------------- */

typedef struct search {
    n2_latent *m;
    size_t chains, columns, width, nz; /* of a group */
    size_t looks;                      /* of a chain at once: all fill the appraisal */
    n2_design_set known;               /* tried */
    n2_latent_plan move, decode;
    n2_tensor *z, *moment[3];
    double target, best_seen;     /* standardised */
    double spacing, wide_spacing; /* squared distances that proposals keep from one another */
    const double *others;         /* proposals of earlier groups */
    size_t n_others;
    double *from;   /* chains x columns: where a chain is */
    double *best;   /* what it found, */
    double *value;  /* how good that is, standardised; -inf: nothing yet */
    double *oddest; /* -ln p(x|z) that a chain which stays may have */
    double *decoded, *decoded_from, *codes, *members, *prior, *misfit, *penalty, *found;
    float *coded, *uniform, *normal;
    size_t looked; /* designs of each chain so far */
    uint32_t draws;
} search;

static n2ce_status build_move(search *s, const char *name) {
    N2_TRY(n2_latent_build_move(s->m, name, s->z, fmin(s->target, s->best_seen + 2), &s->move));
    if (s->m->o.sampler != N2_LATENT_SVGD) return N2CE_OK;
    static const char *const kinds[] = {"m", "v", "step"};
    for (size_t i = 0; i < 3; i++) {
        char full[64];
        snprintf(full, sizeof full, "%s.%s", name, kinds[i]);
        s->moment[i] = n2_store_find(s->m->store, full);
    }
    return N2CE_OK;
}

static n2ce_status allocate(search *s) {
    n2ce_ctx *ctx = s->m->ctx;
    const size_t n = s->chains;
    s->from = n2_alloc(ctx, n * s->columns, sizeof(double));
    s->best = n2_alloc(ctx, n * s->columns, sizeof(double));
    s->found = n2_alloc(ctx, s->looks * n * s->columns, sizeof(double));
    s->value = n2_alloc(ctx, n, sizeof(double));
    s->oddest = n2_alloc(ctx, n, sizeof(double));
    s->prior = n2_alloc(ctx, s->looks * n, sizeof(double));
    s->misfit = n2_alloc(ctx, s->looks * n, sizeof(double));
    s->penalty = n2_alloc(ctx, s->looks * n, sizeof(double));
    s->decoded = n2_alloc(ctx, n * s->width, sizeof(double));
    s->decoded_from = n2_alloc(ctx, n * s->width, sizeof(double));
    s->codes = n2_alloc(ctx, n * s->nz, sizeof(double));
    s->members = n2_alloc(ctx, s->looks * n * s->m->o.members, sizeof(double));
    s->coded = n2_alloc(ctx, s->looks * n * s->width, sizeof(float));
    s->uniform = n2_alloc(ctx, s->looks * n * 2 * s->columns, sizeof(float));
    s->normal = n2_alloc(ctx, s->looks * n * s->columns, sizeof(float));
    return s->from && s->best && s->found && s->value && s->oddest && s->prior && s->misfit &&
                   s->penalty && s->decoded && s->decoded_from && s->codes && s->members &&
                   s->coded && s->uniform && s->normal
               ? N2CE_OK
               : N2CE_ENOMEM;
}

static void search_close(search *s) {
    n2ce_ctx *ctx = s->m->ctx;
    void *const blocks[] = {s->from,   s->best,    s->found,        s->value,   s->prior,
                            s->misfit, s->decoded, s->decoded_from, s->codes,   s->members,
                            s->coded,  s->uniform, s->normal,       s->penalty, s->oddest};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) n2_free(ctx, blocks[i]);
    n2_latent_plan_free(&s->move);
    n2_latent_plan_free(&s->decode);
    n2_design_set_close(&s->known);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool within_bounds(const n2_space *space, const double *x) {
    for (size_t j = 0; j < space->n; j++) {
        const n2_factor *f = &space->factor[j];
        if (f->kind != N2_CATEGORY && (x[j] < f->low || x[j] > f->high)) return false;
    }
    return true;
}

/* Everything that does not depend on the chains' starts. */
static n2ce_status search_open(n2_latent *m, size_t wanted, double best, search *s) {
    const n2_designs *d = m->designs;
    char name[32];
    *s = (search){.m = m, .columns = d->space.n, .width = m->code->width, .nz = m->o.latent};
    s->chains = wanted < GROUP ? wanted : GROUP;
    s->best_seen = best;
    s->target = best + m->record.ambition;
    s->looks =
        N2_APPRAISE_ROWS / s->chains < MOST_LOOKS ? N2_APPRAISE_ROWS / s->chains : MOST_LOOKS;
    N2_TRY(n2_design_set_open(m->ctx, s->columns, d->rows + m->o.n_taken, &s->known));
    for (size_t i = 0; i < d->rows; i++) n2_design_set_add(&s->known, d->x + i * s->columns);
    for (size_t i = 0; i < m->o.n_taken; i++)
        n2_design_set_add(&s->known, m->o.taken + i * s->columns);
    N2_TRY(allocate(s));
    if (m->o.value_only) return N2CE_OK; /* nothing but values is known */
    snprintf(name, sizeof name, "search.%zu", m->searches++);
    s->z = n2_store_add(m->store, name, n2_dims((int64_t)s->chains, (int64_t)s->nz));
    if (!s->z) return N2CE_ENOMEM;
    N2_TRY(build_move(s, name));
    return n2_latent_build_decode(s->m, s->z, &s->decode);
}

/* Best first. */
typedef struct ranked {
    double value;
    size_t index;
} ranked;

static int by_rank(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* ---- a round ------------------------------------------------------------- */

/* A stream of its own for every draw. */
static n2_stream next_draw(search *s) {
    return (n2_stream){s->m->o.seed, 0x40000000u + s->draws++, 1};
}

static n2ce_status decode_into(search *s, double *out) {
    N2_TRY(n2_plan_run(s->decode.plan));
    n2_plan_get(s->decode.plan, 0, out);
    return N2CE_OK;
}

static void clear(const n2_store *store, n2_tensor *t) {
    memset(t->data, 0, (size_t)n2_elements(t->shape) * sizeof(float));
    n2_tensor_push(store, t);
}

/* Codes of where the chains are, what these decode to, and then a push in a random
 * direction, of a random size up to `noise`. */
static n2ce_status set_out(search *s, double noise) {
    float *z = s->z->data, unit[N2_DRAW_GROUP * 8];
    for (size_t i = 0; i < s->chains; i++)
        n2_latent_code_write(s->m->code, s->from + i * s->columns, s->coded + i * s->width);
    N2_TRY(n2_latent_say(s->m, s->coded, s->chains, &(n2_latent_words){.codes = s->codes}));
    for (size_t i = 0; i < s->chains * s->nz; i++) z[i] = (float)s->codes[i];
    n2_tensor_push(s->m->store, s->z);
    N2_TRY(decode_into(s, s->decoded_from));
    for (size_t i = 0; i < 3; i++)
        if (s->moment[i]) clear(s->m->store, s->moment[i]);
    const n2_stream normal = next_draw(s), size = next_draw(s);
    for (size_t i = 0; i < s->chains && noise > 0; i++) {
        float scale;
        const size_t n =
            s->nz < sizeof unit / sizeof unit[0] ? s->nz : sizeof unit / sizeof unit[0];
        n2_fill_uniform(size, i, 1, &scale);
        n2_fill_normal(normal, i * s->nz, n, unit);
        for (size_t k = 0; k < n; k++) z[i * s->nz + k] += (float)noise * scale * unit[k];
    }
    n2_tensor_push(s->m->store, s->z);
    return N2CE_OK;
}

static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += x[k];
    return sum / (double)n;
}

/* Where designs are a small part of what the bounds allow, what a model says of other ones was
 * never put to the test: all rows that could be hidden from it are of that part. So some chains
 * stay: each is the best of a number of small changes of its start, and no odder than that or than
 * a usual design. As many as values are not explained: who cannot tell even known designs apart
 * should not go far; fewer where chance did better than the search in the trials. */
static double share_that_stays(const search *s) {
    const n2_latent_record *r = &s->m->record;
    if (s->m->o.value_only || fmax(r->structure, r->narrow) < STRUCTURED) return 0;
    return fmin(MOST_STAY * (1 - fmax(r->r2, 0)), r->outdone ? MOST_STAY_OUTDONE : 1);
}

static bool stays(const search *s, size_t i) {
    const double golden = 0.6180339887498949 * (double)(i + 1);
    return golden - floor(golden) < share_that_stays(s);
}

/* Some chains wander: each is the best of a number of designs by chance, and so nothing that is
 * only good far from all designs, for a model that is wrong there. One of eight; more where columns
 * depend on one another, since then most of the space is far from all designs, where little is
 * explained, and where chance did better than the search in the trials. */
static size_t wanderers_period(const search *s) {
    const n2_latent_record *r = &s->m->record;
    if (r->outdone) return 2;
    return r->r2 < 0.5 || r->structure > STRUCTURED ? 3 : 8;
}

static bool is_wanderer(const search *s, size_t i) {
    enum { FEW = 8 }; /* of so few proposals none is by chance */
    return s->chains >= FEW && i % wanderers_period(s) == 1 && !stays(s, i);
}

/* How many designs a wanderer, or a chain that stays, chooses from. Few trust the model less, and
 * one not at all, which is best where the model says nothing of designs by chance. */
static size_t patience(const search *s, size_t i) {
    enum { TURNS = 12 };
    static const size_t usual[TURNS] = {1, 32, 1, 1024, 1, 4, 256, 1, 16, 128, 2, 512};
    static const size_t doubtful[TURNS] = {1, 1, 32, 1, 1, 4, 1, 1, 256, 1, 1, 16};
    const n2_latent_record *r = &s->m->record;
    const bool doubt = !stays(s, i) && (r->outdone || r->structure > STRUCTURED);
    return (doubt ? doubtful : usual)[i / wanderers_period(s) % TURNS];
}

/* One of four chains explores: it keeps far from the others, believes a value of its own that could
 * be the truth as well as the mean of all members, and is never moved elsewhere, in case all
 * others are wrong together. */
static bool is_explorer(const search *s, size_t i) {
    return (i % 4 == 3 && !stays(s, i)) || is_wanderer(s, i);
}

/* A mixture of what the members are off by, as wide as that is, drawn once a chain. */
static double belief(const search *s, size_t i, const double *members) {
    const size_t e = s->m->o.members;
    const double mean = mean_of(members, e);
    float weight[N2_LATENT_MEMBERS_MAX];
    if (!is_explorer(s, i) || e < 2) return mean;
    n2_fill_normal((n2_stream){s->m->o.seed, 80, (uint32_t)i}, 0, e, weight);
    double off = 0;
    for (size_t k = 0; k < e; k++) off += (double)weight[k] * (members[k] - mean);
    return mean + off / sqrt((double)e - 1);
}

/* Whether another chain's design is nearer than proposals should be. */
static bool is_crowded(const search *s, size_t i, const double *x) {
    const n2_space *space = &s->m->designs->space;
    const double spacing = is_explorer(s, i) ? s->wide_spacing
                           : stays(s, i)     ? LEAST_SPACING
                                             : s->spacing;
    for (size_t k = 0; k < s->chains; k++)
        if (k != i && s->value[k] > -N2_INFINITY &&
            n2_space_distance(space, x, s->best + k * s->columns, spacing) < spacing)
            return true;
    for (size_t k = 0; k < s->n_others; k++)
        if (n2_space_distance(space, x, s->others + k * s->columns, spacing) < spacing) return true;
    return false;
}

/* The distance that proposals keep, squared, over that which a typical design has from the nearest
 * other one: less the more of the values is explained. Who knows where the best is need not
 * spread; who knows nothing should, since what is like a failure will fail as well. */
static double roominess(double explained) {
    const double left = fmin(fmax(1 - explained, 0), 1);
    return left / 4 + 1.25 * pow(left, 4);
}

/* More than none, so that no proposal is another one. */
static n2ce_status choose_spacing(search *s) {
    enum { SOME = 200 };
    const n2_designs *d = s->m->designs;
    const size_t n = d->rows < SOME ? d->rows : SOME, step = d->rows / n;
    double nearest[SOME];
    for (size_t i = 0; i < n; i++) {
        const double *x = d->x + i * step * d->space.n;
        nearest[i] = N2_INFINITY;
        for (size_t k = 0; k < d->rows; k++)
            if (k != i * step)
                nearest[i] = fmin(
                    nearest[i], n2_space_distance(&d->space, x, d->x + k * d->space.n, nearest[i]));
    }
    qsort(nearest, n, sizeof *nearest, by_size);
    s->spacing = fmax(roominess(s->m->record.r2) * nearest[n / 2], LEAST_SPACING);
    s->wide_spacing = fmax(nearest[n / 2] / 4, s->spacing);
    return N2CE_OK;
}

/* Where columns depend on one another, one of four chains stays with designs that the code can
 * hold; the others go further, in case the best is nothing like what was tried. */
static bool is_careful(const search *s, size_t i) {
    return s->m->record.structure > STRUCTURED && !s->m->o.value_only && i % 4 == 0 &&
           !is_wanderer(s, i) && !stays(s, i);
}

static bool is_plausible(const search *s, size_t i, size_t k) {
    const n2_latent_record *r = &s->m->record;
    if (!is_careful(s, i) && !stays(s, i)) return true;
    return s->prior[k] >= r->prior_floor &&
           s->misfit[k] <= (stays(s, i) ? s->oddest[i] : r->misfit_ceiling);
}

/* A design as it would be proposed, and its code. */
static void settle(search *s, size_t k) {
    double *x = s->found + k * s->columns;
    if (s->m->o.rules) n2_design_rules_apply(s->m->o.rules, x);
    n2_latent_code_write(s->m->code, x, s->coded + k * s->width);
}

/* Keeps what is better than the best of chain i, new and plausible; k is its place among what was
 * found. */
static void consider(search *s, size_t i, size_t k) {
    const size_t e = s->m->o.members;
    const double *x = s->found + k * s->columns;
    const bool settled = (is_wanderer(s, i) || stays(s, i)) && s->looked >= patience(s, i);
    if (settled && s->value[i] > -N2_INFINITY) return;
    double value = belief(s, i, s->members + k * e);
    if (value > s->target) value = s->target; /* beyond this nothing is believed */
    value -= s->penalty[k];
    if (!(value > s->value[i]) || !is_plausible(s, i, k) || n2_design_set_has(&s->known, x)) return;
    if (is_crowded(s, i, x) || (s->m->o.rules && !n2_design_rules_hold(s->m->o.rules, x))) return;
    memcpy(s->best + i * s->columns, x, s->columns * sizeof *x);
    s->value[i] = value;
}

/* All that was found. */
static n2ce_status judge(search *s) {
    const size_t n = s->looks * s->chains;
    const n2_latent_words words = {s->members, s->prior, s->misfit, NULL};
    N2_TRY(n2_latent_say(s->m, s->coded, n, &words));
    N2_TRY(n2_latent_penalise(s->m, s->coded, n, s->penalty));
    for (size_t k = 0; k < n; k++) {
        consider(s, k % s->chains, k);
        s->looked += k % s->chains + 1 == s->chains;
    }
    return N2CE_OK;
}

static void wander(search *s, size_t k) {
    const size_t turn = k / s->chains + k % s->chains / wanderers_period(s);
    n2_latent_code_scatter(s->m->code, turn / 2 % 2, s->uniform + k * 2 * s->columns,
                           s->found + k * s->columns);
}

/* Decodes the particles, by chance where that is in it, and looks at the designs: in turns the
 * whole move of a chain, and a part of it. */
static n2ce_status look(search *s) {
    const size_t n = s->chains;
    n2_fill_uniform(next_draw(s), 0, s->looks * n * 2 * s->columns, s->uniform);
    for (size_t k = 0; k < s->looks * n; k++) {
        const size_t i = k % n;
        double *x = s->found + k * s->columns;
        const n2_latent_move move = {s->decoded + i * s->width, s->decoded_from + i * s->width,
                                     s->from + i * s->columns, s->uniform + k * 2 * s->columns};
        if (is_wanderer(s, i))
            wander(s, k);
        else if (k / n % 2)
            n2_latent_code_read_part(s->m->code, &move, x);
        else
            n2_latent_code_read(s->m->code, &move, TEMPERATURE, x);
        settle(s, k);
    }
    return judge(s);
}

/* Looks at changes of where the chains are that ask no decoder: steps along some columns, of any
 * size, and along the difference of two other chains, which knows how columns go together. */
static void change(search *s, size_t k, n2_stream draw) {
    const size_t n = s->chains, i = k % n;
    float u[4];
    n2_fill_uniform(draw, 4 * k, 4, u);
    const double largest = stays(s, i) ? LARGEST_NEAR : LARGEST_STEP;
    n2_latent_change h = {.from = s->from + i * s->columns,
                          .along = (double)u[0],
                          .size = largest * pow(SMALLEST_STEP / largest, (double)u[1]),
                          .share = 0.5 * (double)(u[2] * u[2]),
                          .always = (size_t)((double)u[3] * (double)s->columns) % s->columns,
                          .uniform = s->uniform + k * 2 * s->columns,
                          .normal = s->normal + k * s->columns};
    if (k / n % 2 && !stays(s, i)) {
        h.toward = s->from + n2_random_below(draw, 4 * s->looks * n + 2 * k, n) * s->columns;
        h.away = s->from + n2_random_below(draw, 4 * s->looks * n + 2 * k + 1, n) * s->columns;
    }
    n2_latent_code_change(s->m->code, &h, s->found + k * s->columns);
}

static n2ce_status look_around(search *s) {
    const size_t n = s->looks * s->chains;
    const n2_stream draw = next_draw(s);
    n2_fill_uniform(next_draw(s), 0, n * 2 * s->columns, s->uniform);
    n2_fill_normal(next_draw(s), 0, n * s->columns, s->normal);
    for (size_t k = 0; k < n; k++) {
        if (is_wanderer(s, k % s->chains))
            wander(s, k);
        else
            change(s, k, draw);
        settle(s, k);
    }
    return judge(s);
}

static void go_on(search *s) {
    for (size_t i = 0; i < s->chains; i++)
        if (s->value[i] > -N2_INFINITY && !stays(s, i))
            memcpy(s->from + i * s->columns, s->best + i * s->columns, s->columns * sizeof(double));
}

/* Among the chains that are careful, or among those that are not, one that is left behind the best
 * quarter, by half of what is believed possible, goes on from where one of that quarter is: there
 * may be room for more. Others stay with their starts, so that proposals do not all come from one
 * place. */
static void regroup(search *s, bool careful) {
    ranked order[GROUP];
    const n2_stream draw = next_draw(s);
    size_t n = 0;
    for (size_t i = 0; i < s->chains; i++)
        if (is_careful(s, i) == careful && !is_explorer(s, i) && !stays(s, i))
            order[n++] = (ranked){s->value[i], i};
    const size_t quarter = n / 4;
    if (quarter == 0) return;
    qsort(order, n, sizeof *order, by_rank);
    const double behind = order[quarter].value - BEHIND;
    for (size_t k = n; k-- > quarter && order[k].value < behind;) {
        const size_t from = order[n2_random_below(draw, k, quarter)].index;
        memcpy(s->from + order[k].index * s->columns, s->best + from * s->columns,
               s->columns * sizeof(double));
    }
}

/* Small pushes first, so that a chain finds what is near its start before what is far. */
static n2ce_status move_codes(search *s, size_t round, bool push) {
    const double share = (double)(round + 1) / (double)s->m->o.rounds;
    N2_TRY(set_out(s, round > 0 || push ? MOST_NOISE * share : 0));
    for (int half = 0; half < 2; half++) {
        N2_TRY(n2_plan_run_many(s->move.plan, (s->m->o.moves + 1) / 2));
        N2_TRY(decode_into(s, s->decoded));
        N2_TRY(look(s));
    }
    go_on(s);
    return N2CE_OK;
}

static n2ce_status run_round(search *s, size_t round, bool push) {
    if (!s->m->o.value_only) N2_TRY(move_codes(s, round, push));
    for (int half = 0; half < 2; half++) {
        N2_TRY(look_around(s));
        go_on(s);
    }
    if (2 * round < s->m->o.rounds) return N2CE_OK;
    regroup(s, true);
    regroup(s, false);
    return N2CE_OK;
}

/* ---- proposals ----------------------------------------------------------- */

/* What the members expect of the designs that were tried, standardised, and what these lose for
 * needs. */
static n2ce_status expect(n2_latent *m, double *expected, double *penalty) {
    const n2_designs *d = m->designs;
    const size_t e = m->o.members, width = m->code->width;
    double *members = n2_alloc(m->ctx, d->rows * e, sizeof *members);
    float *rows = n2_alloc(m->ctx, d->rows * width, sizeof *rows);
    n2ce_status status = members && rows ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < d->rows && status == N2CE_OK; i++)
        n2_latent_code_write(m->code, d->x + i * d->space.n, rows + i * width);
    if (status == N2CE_OK)
        status = n2_latent_say(m, rows, d->rows, &(n2_latent_words){.members = members});
    for (size_t i = 0; i < d->rows && status == N2CE_OK; i++)
        expected[i] = mean_of(members + i * e, e);
    if (status == N2CE_OK) status = n2_latent_penalise(m, rows, d->rows, penalty);
    n2_free(m->ctx, members);
    n2_free(m->ctx, rows);
    return status;
}

/* All designs, best first: by their own value as far as values can be explained at all, by what
 * similar designs say beyond that. A noisy value that is high is mostly luck. */
static n2ce_status rank_designs(n2_latent *m, ranked *list, double *best) {
    const n2_designs *d = m->designs;
    const double trust = fmax(m->record.r2, 0);
    double *expected = n2_alloc(m->ctx, 2 * d->rows, sizeof *expected);
    double *penalty = expected + d->rows;
    n2ce_status status = expected ? expect(m, expected, penalty) : N2CE_ENOMEM;
    *best = n2_latent_scaled(m, m->record.y_best);
    for (size_t i = 0; i < d->rows && status == N2CE_OK; i++) {
        const double own = n2_latent_scaled(m, d->y[i]);
        list[i] = (ranked){trust * own + (1 - trust) * expected[i] - penalty[i], i};
        *best = fmax(*best, expected[i]);
    }
    if (status == N2CE_OK) qsort(list, d->rows, sizeof *list, by_rank);
    n2_free(m->ctx, expected);
    return status;
}

/* Keeps distinct designs within the bounds. */
static n2ce_status choose_starts(n2_latent *m, ranked *list, size_t *n) {
    const n2_designs *d = m->designs;
    n2_design_set seen;
    n2ce_status status = n2_design_set_open(m->ctx, d->space.n, d->rows, &seen);
    *n = 0;
    for (size_t i = 0; i < d->rows && status == N2CE_OK; i++) {
        const double *x = d->x + list[i].index * d->space.n;
        if (!within_bounds(&d->space, x) || n2_design_set_has(&seen, x)) continue;
        n2_design_set_add(&seen, x);
        list[(*n)++] = list[i];
    }
    n2_design_set_close(&seen);
    if (status == N2CE_OK && *n == 0)
        status = n2_fail(m->ctx, N2CE_EDATA,
                         "The bounds exclude all %zu designs; widen them, so that there is one to "
                         "start from.",
                         d->rows);
    return status;
}

/* How odd a chain that stays may become. */
static n2ce_status note_oddness(search *s) {
    for (size_t i = 0; i < s->chains; i++)
        n2_latent_code_write(s->m->code, s->from + i * s->columns, s->coded + i * s->width);
    N2_TRY(n2_latent_say(s->m, s->coded, s->chains, &(n2_latent_words){.misfit = s->oddest}));
    for (size_t i = 0; i < s->chains; i++)
        s->oddest[i] = fmax(s->oddest[i], s->m->record.misfit_median);
    return N2CE_OK;
}

static n2ce_status start_chains(search *s, const ranked *starts, size_t n_starts, size_t first) {
    const n2_designs *d = s->m->designs;
    s->looked = 0;
    for (size_t i = 0; i < s->chains; i++) {
        const size_t row = starts[(first + i) % n_starts].index;
        memcpy(s->from + i * s->columns, d->x + row * s->columns, s->columns * sizeof(double));
        if (s->m->o.rules) n2_design_rules_apply(s->m->o.rules, s->from + i * s->columns);
        s->value[i] = -N2_INFINITY;
    }
    return share_that_stays(s) > 0 ? note_oddness(s) : N2CE_OK;
}

/* One group of chains; their designs go into out at *n. */
static n2ce_status run_group(search *s, const ranked *starts, size_t n_starts, size_t first,
                             n2_proposals *out, size_t wanted, size_t *n) {
    const bool push = first + s->chains > n_starts; /* some start from the same place */
    N2_TRY(start_chains(s, starts, n_starts, first));
    for (size_t r = 0; r < s->m->o.rounds; r++) {
        if (n2_cancelled(s->m->ctx)) return N2CE_ECANCELED;
        N2_TRY(run_round(s, r, push));
    }
    for (size_t i = 0; i < s->chains && *n < wanted; i++) {
        if (!(s->value[i] > -N2_INFINITY)) continue;
        memcpy(out->x + (*n)++ * s->columns, s->best + i * s->columns, s->columns * sizeof(double));
    }
    return N2CE_OK;
}

/* Best prediction first; what was believed of it does not matter any more. */
static n2ce_status sort_proposals(n2_latent *m, n2_proposals *out) {
    const size_t n = out->rows, columns = m->designs->space.n;
    double *x = n2_alloc(m->ctx, n * (columns + 2), sizeof *x);
    ranked *list = n2_alloc(m->ctx, n, sizeof *list);
    double *predicted = x + n * columns, *prior = predicted + n, sway = 0;
    n2ce_status status = x && list ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_latent_appraise(m, out->x, n, predicted, NULL, prior);
    if (status == N2CE_OK) {
        for (size_t i = 0; i < n; i++) list[i] = (ranked){predicted[i], i};
        qsort(list, n, sizeof *list, by_rank);
        memcpy(x, out->x, n * columns * sizeof *x);
    }
    for (size_t i = 0; i < n && status == N2CE_OK; i++) {
        memcpy(out->x + i * columns, x + list[i].index * columns, columns * sizeof *x);
        if (out->predicted) out->predicted[i] = list[i].value;
        if (out->log_prior) out->log_prior[i] = prior[list[i].index];
    }
    const bool tried = !m->o.value_only; /* else it is a trial, of what the model itself says */
    if (status == N2CE_OK && tried) status = n2_latent_sway(m, out->x, n, &sway);
    if (status == N2CE_OK && tried) n2_latent_expect(m, predicted, sway, out);
    if (out->unmoved && status == N2CE_OK) memcpy(out->unmoved, out->x, n * columns * sizeof *x);
    n2_free(m->ctx, x);
    n2_free(m->ctx, list);
    return status;
}

n2ce_status n2_latent_propose(n2_latent *m, n2_proposals *out) {
    enum { EXTRA = 3 }; /* groups more, for chains that found nothing */
    const size_t wanted = out->rows;
    size_t n_starts = 0, n = 0;
    double best;
    ranked *starts = n2_alloc(m->ctx, m->designs->rows, sizeof *starts);
    search s = {.m = m, .known = {.ctx = m->ctx}};
    n2ce_status status = starts ? rank_designs(m, starts, &best) : N2CE_ENOMEM;
    if (status == N2CE_OK) status = choose_starts(m, starts, &n_starts);
    if (status == N2CE_OK) status = search_open(m, wanted, best, &s);
    const size_t groups = s.chains ? (wanted + s.chains - 1) / s.chains : 0;
    if (status == N2CE_OK) status = choose_spacing(&s);
    for (size_t k = 0; status == N2CE_OK && n < wanted && k < groups + EXTRA; k++) {
        s.draws = (uint32_t)(k << 16);
        s.others = out->x;
        s.n_others = n;
        status = run_group(&s, starts, n_starts, k * s.chains, out, wanted, &n);
    }
    search_close(&s);
    n2_free(m->ctx, starts);
    out->rows = n;
    out->inside = 1; /* the decoder is bounded */
    if (status == N2CE_OK && n > 0) status = sort_proposals(m, out);
    return status;
}
