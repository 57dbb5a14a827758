/* optimize: what was tried, and how good it was, in; what to try next out. */
#include "verb_optimize.h"

#include "base/numerics.h"
#include "checkpoint_options.h"
#include "device_options.h"
#include "io/bundle.h"
#include "io/file.h"
#include "vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
static const n2ce_option optimize_options[] = {
    {"designs", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "DESIGNS",
     "designs that were tried, one a row, with their values: CSV or NPY, - for standard input"},
    {"maximize", 'm', N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLUMN",
     "the column to make large; several, also of --minimize and --target, count in standard deviations, "
     "with weights as in \"yield,2*purity\""},
    {"minimize", 0, N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLUMN",
     "the column to make small, or several"},
    {"target", 0, N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLUMN=VALUE",
     "a column that is to be near a value, or several"},
    {"pareto", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "with several objectives: proposals for five weightings of them, a fifth of Q each, instead of one"},
    {"append", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILES",
     "more rows, in files of the same columns: what was tried since; separated by commas. Rows without a value are "
     "left out"},
    {"count", 'Q', N2CE_OPTION_COUNT, "256", 1, 100000, NULL, "Q", "designs to propose"},
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "write the proposals here, as CSV; default: standard output"},
    N2_FORCE_OPTION,
    {"columns", 'c', N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS",
     "columns to use as designs, by name or zero-based number or range; default: all others"},
    {"categorical", 0, N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS",
     "columns whose values are names of levels, besides those that hold no number"},
    {"continuous", 0, N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS",
     "columns that may have fractions although all their values are whole"},
    {"bounds", 'b', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "CSV with rows column,low,high; default: the range of the data"},
    {"require", 0, N2CE_OPTION_TEXT, "", 0, 0, NULL, "CONDITIONS",
     "what other columns, which are no part of a design, must likely be, as \"purity >= 0.9; cost <= 3\""},
    {"fix", 0, N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLUMN=VALUE",
     "columns that have one value in every proposal, separated by commas; what has commas itself is in quotes"},
    {"sum", 0, N2CE_OPTION_TEXT, "auto", 0, 0, NULL, "COLUMNS=TOTAL",
     "columns that add up in every proposal, as \"a,b,c = 100\"; several sums separated by semicolons; auto: one that "
     "holds in all rows, if there is one; none"},
    N2_HEADER_OPTION,
    N2_DROP_MISSING_OPTION,
    {"max-rows", 0, N2CE_OPTION_COUNT, "50000", 8, 10000000, NULL, "N",
     "use a random subset of so many rows of a longer file"},
    {"backtest", 0, N2CE_OPTION_REAL, "0", 0, 90, NULL, "PERCENT",
     "hide the best rows, propose from the others, and compare with what was hidden"},
    {"preset", 0, N2CE_OPTION_WORD, "fast", 0, 0, "fast|paper", "NAME",
     "settings by name: fast, minutes on two cores; paper, the publication's sizes and steps, hours"},
    {"prior", 0, N2CE_OPTION_WORD, "n2ce", 0, 0, "n2ce|gaussian|mle", "NAME",
     "of the codes: learnt by N2CE, none but the Gaussian, or by maximum likelihood"},
    {"sampler", 0, N2CE_OPTION_WORD, "svgd", 0, 0, "svgd|langevin", "NAME",
     "how chains move"},
    {"M", 'M', N2CE_OPTION_REAL, "100", 1, 1e6, NULL, "M", "noise magnitude of the prior"},
    {"stages", 'k', N2CE_OPTION_COUNT, "6", 1, N2_LATENT_STAGES_MAX, NULL, "K",
     "ratios of the prior's telescope"},
    {"effort", 0, N2CE_OPTION_REAL, "1", 0.001, 100, NULL, "F",
     "factor on the steps of training"},
    {"joint", 0, N2CE_OPTION_COUNT, "auto", 0, 1e6, NULL, "N",
     "steps of joint refinement of code and prior; auto: those of the preset"},
    {"rounds", 0, N2CE_OPTION_COUNT, "auto", 1, 1e6, NULL, "N",
     "rounds of every chain; auto: those of the preset"},
    {"ambition", 'a', N2CE_OPTION_REAL, "auto", 0, 100, NULL, "A",
     "standard deviations above the best value beyond which no prediction is believed; auto: as trials "
     "with hidden rows say"},
    {"device", 0, N2CE_OPTION_TEXT, "cpu", 0, 0, NULL, "DEVICE",
     "where to compute: auto (whichever is faster, by measurement), cpu, cuda, cuda:N for GPU N; another device "
     "rounds otherwise, and proposes other designs"},
    N2_PRECISION_OPTION,
    N2_TIME_LIMIT_OPTION,
    N2_CHECKPOINT_OPTIONS,
    N2_SEED_OPTION,
    N2_REPORT_OPTION,
    {0},
};
/* clang-format on */

typedef struct session {
    n2ce_ctx *ctx;
    const n2ce_options *options;
    n2_design_table t;
    n2_requirements required;
    n2_objectives objectives;
    double *chance; /* room for that of the proposals */
    n2_design_rules rules;
    n2_backtest backtest; /* its visible designs are what is learnt from */
    n2_latent_options latent;
    n2_device_choice choice;
    n2_optimize_result r;
    n2_checkpoint_use checkpoint;
    char *identity;
} session;

static size_t scaled(size_t steps, double factor) {
    const double n = floor((double)steps * factor + 0.5);
    return steps == 0 ? 0 : n < 1 ? 1 : (size_t)n;
}

static bool is(const n2ce_options *o, const char *name, const char *word) {
    return strcmp(n2ce_options_get(o, name), word) == 0;
}

static void read_sizes(const n2ce_options *o, n2_latent_options *l) {
    const double factor = n2ce_options_number(o, "effort");
    if (!n2_options_is_auto(o, "joint")) l->joint_steps = (size_t)n2_options_count(o, "joint");
    if (!n2_options_is_auto(o, "rounds")) l->rounds = (size_t)n2_options_count(o, "rounds");
    l->value_steps = scaled(l->value_steps, factor);
    l->code_steps = scaled(l->code_steps, factor);
    l->prior_steps = scaled(l->prior_steps, factor);
    if (!n2_options_is_auto(o, "time-limit")) l->seconds = n2ce_options_number(o, "time-limit");
}

void n2_optimize_model(const n2ce_options *o, n2_latent_options *l) {
    *l = is(o, "preset", "paper") ? n2_latent_paper() : n2_latent_defaults();
    l->prior = is(o, "prior", "mle")        ? N2_LATENT_MLE
               : is(o, "prior", "gaussian") ? N2_LATENT_GAUSSIAN
                                            : N2_LATENT_N2CE;
    l->sampler = is(o, "sampler", "langevin") ? N2_LATENT_LANGEVIN : N2_LATENT_SVGD;
    l->magnitude = n2ce_options_number(o, "M");
    l->stages = (size_t)n2_options_count(o, "stages");
    l->ambition =
        n2_options_is_auto(o, "ambition") ? (double)NAN : n2ce_options_number(o, "ambition");
    l->seed = n2_options_count(o, "seed");
    l->resume = n2_options_flag(o, "resume");
    read_sizes(o, l);
}

static n2ce_status choose_device(session *s) {
    s->latent.choice = &s->choice;
    N2_TRY(n2_choice_of_options(s->ctx, s->options, &s->choice));
    return n2_checkpoint_choose_device(s->ctx, &s->checkpoint, &s->choice);
}

/* What a checkpoint must have in common with a run that goes on from it. */
static n2ce_status identify(session *s) {
    const n2_designs *d = &s->backtest.visible;
    const n2_st_tensor data[] = {
        {.name = "x", .dtype = N2_ST_F64, .data = d->x, .bytes = d->rows * d->space.n * 8},
        {.name = "y", .dtype = N2_ST_F64, .data = d->y, .bytes = d->rows * 8}};
    char sum[N2_CHECKSUM_ROOM];
    n2_text lines = n2_text_new(s->ctx);
    n2_options_lines(s->options,
                     " designs output force report checkpoint resume time-limit device precision "
                     "count ",
                     &lines);
    n2_checksum(data, 2, NULL, 0, sum);
    n2_text_add(&lines, "designs=%s\n", sum);
    N2_TRY(n2_text_take(&lines, &s->identity));
    s->latent.identity = s->identity;
    return N2CE_OK;
}

/* ---- rows ---------------------------------------------------------------- */

/* Of matrices: y is the value, to be made large or small. */
static n2ce_status find_direction(n2ce_ctx *ctx, const n2ce_options *from,
                                  n2_design_table_options *o) {
    const char *max = n2ce_options_get(from, "maximize");
    const char *min = n2ce_options_get(from, "minimize");
    static const char *const files_only[] = {"append", "target"};
    o->minimize = *min;
    o->target = *min ? min : max;
    if (*max && *min) return n2_fail(ctx, N2CE_EINVAL, "Give --maximize or --minimize, not both.");
    for (size_t i = 0; i < 2; i++) {
        const char *value = n2ce_options_get(from, files_only[i]);
        if (value && *value)
            return n2_fail(ctx, N2CE_EINVAL, "--%s needs a file of designs.", files_only[i]);
    }
    return N2CE_OK;
}

/* The first objective is the value, the others and what is required are aside. */
static n2ce_status find_columns(n2ce_ctx *ctx, const n2_requirements *r, const n2_objectives *w,
                                const char **aside, n2_design_table_options *o) {
    if (w->n == 0)
        return n2_fail(ctx, N2CE_EINVAL,
                       "optimize needs --maximize COLUMN or --minimize COLUMN. Try: n2ce help "
                       "optimize");
    o->target = w->each[0].column;
    o->minimize = w->each[0].sign < 0;
    if (r->n + w->n - 1 > N2_DESIGN_ASIDE)
        return n2_fail(ctx, N2CE_EINVAL,
                       "--require and several objectives name %zu columns; at "
                       "most %d may be.",
                       r->n + w->n - 1, (int)N2_DESIGN_ASIDE);
    for (size_t k = 0; k < r->n; k++) aside[k] = r->column[k];
    for (size_t k = 1; k < w->n; k++) aside[r->n + k - 1] = w->each[k].column;
    o->aside = aside;
    o->n_aside = r->n + w->n - 1;
    return N2CE_OK;
}

/* The options that ask something of columns, "--maximize, --require". */
static void name_asking(const n2ce_options *o, char *out, size_t room) {
    static const char *const asking[] = {"maximize", "minimize", "target", "require"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++)
        if (*n2ce_options_get(o, asking[i]))
            n += (size_t)snprintf(out + n, room - n, "%s--%s", n ? ", " : "", asking[i]);
}

static n2ce_status read_designs(n2ce_ctx *ctx, const n2ce_options *from, const n2_requirements *r,
                                n2_objectives *w, n2_design_table_options *o,
                                n2_design_table *out) {
    const char *aside[N2_DESIGN_ASIDE], *path = n2ce_options_get(from, "designs");
    char asked_by[64];
    if (!path)
        return n2_fail(ctx, N2CE_EINVAL,
                       "optimize needs a file of designs. Try: n2ce help optimize");
    N2_TRY(find_columns(ctx, r, w, aside, o));
    name_asking(from, asked_by, sizeof asked_by);
    o->asked_by = asked_by;
    N2_TRY(n2_design_table_read(ctx, path, o, out));
    if (o->append && *o->append)
        n2_log(ctx, N2CE_LOG_INFO, "%zu rows were appended; %zu without a value were left out.",
               out->appended, out->unfinished);
    return n2_objectives_take(w, out, r->n);
}

n2ce_status n2_optimize_designs(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                                const n2_requirements *required, n2_objectives *objectives,
                                n2_design_table *out) {
    n2_design_table_options to = {.header = n2_header_of(o),
                                  .columns = n2ce_options_get(o, "columns"),
                                  .categorical = n2ce_options_get(o, "categorical"),
                                  .continuous = n2ce_options_get(o, "continuous"),
                                  .bounds = n2ce_options_get(o, "bounds"),
                                  .append = n2ce_options_get(o, "append"),
                                  .drop_missing = n2_options_flag(o, "drop-missing"),
                                  .max_rows = (size_t)n2_options_count(o, "max-rows"),
                                  .seed = n2_options_count(o, "seed")};
    *out = (n2_design_table){.ctx = ctx};
    if (!data) return read_designs(ctx, o, required, objectives, &to, out);
    N2_TRY(find_direction(ctx, o, &to));
    return n2_design_table_of_matrices(ctx, data, &to, out);
}

n2ce_status n2_optimize_rules(const n2ce_options *o, const n2_design_table *t,
                              n2_design_rules *out) {
    N2_TRY(n2_design_rules_read(t, n2ce_options_get(o, "fix"), n2ce_options_get(o, "sum"), out));
    for (size_t i = 0; i < out->n_sums; i++) {
        const n2_design_sum *s = &out->sums[i];
        if (s->found)
            n2_log(t->ctx, N2CE_LOG_INFO,
                   "%zu columns, \"%s\" to \"%s\", add up to %.6g in all rows: so they do in every "
                   "proposal. --sum none lets them free.",
                   s->n, t->names[s->column[0]], t->names[s->column[s->n - 1]], s->total);
    }
    return N2CE_OK;
}

static void turn(n2_best_and_median *v, double sign) {
    *v = (n2_best_and_median){sign * v->best, sign * v->median};
}

/* Values are told as they were given. */
static n2ce_status appraise(session *s) {
    n2_appraisal *a = &s->r.worth;
    N2_TRY(n2_appraise(&s->backtest, &s->r.proposals, s->r.record.y_best, a));
    turn(&a->neighbours, s->t.sign);
    turn(&a->visible, s->t.sign);
    turn(&a->truth, s->t.sign);
    return N2CE_OK;
}

/* ---- the run ------------------------------------------------------------- */

enum { NEAR_TRIES = 4 }; /* proposals for each that is kept, where a column is to be near a value */

static bool is_near(const session *s) {
    return s->objectives.n == 1 && s->objectives.each[0].sign == 0;
}

static n2ce_status make_room(session *s) {
    const size_t tries = is_near(s) ? NEAR_TRIES : 1, c = s->t.designs.space.n;
    const size_t n = tries * (size_t)n2_options_count(s->options, "count");
    n2_proposals *p = &s->r.proposals;
    p->x = n2_alloc(s->ctx, n * c, sizeof *p->x);
    p->predicted = n2_alloc(s->ctx, n, sizeof *p->predicted);
    p->log_prior = n2_alloc(s->ctx, n, sizeof *p->log_prior);
    s->r.spread = n2_alloc(s->ctx, n, sizeof *s->r.spread);
    s->chance = p->chance = n2_alloc(s->ctx, n, sizeof *p->chance);
    return p->x && p->predicted && p->log_prior && s->r.spread && p->chance ? N2CE_OK : N2CE_ENOMEM;
}

/* Fills p, which says how many are wanted, and the spread of its predictions. */
static n2ce_status propose_some(session *s, n2_proposals *p, double *spread) {
    n2_latent *m;
    N2_TRY(n2_latent_fit(s->ctx, &s->backtest.visible, &s->latent, &m));
    s->r.record = *n2_latent_seen(m);
    n2ce_status status = n2_latent_propose(m, p);
    if (status == N2CE_OK && p->rows == 0)
        status = n2_fail(s->ctx, N2CE_EDATA,
                         "No design was found that is new and plausible: all that the columns "
                         "allow may have been tried.");
    if (status == N2CE_OK)
        status = n2_requirements_keep(s->ctx, m, &s->required, s->t.designs.space.n, p);
    if (status == N2CE_OK) status = n2_latent_appraise(m, p->x, p->rows, NULL, spread, NULL);
    n2_latent_free(m);
    return status;
}

/* A weighting of the objectives after the other, a share of the proposals each, into what is left
 * of the room. */
static n2ce_status propose_weighted(session *s, size_t k, n2_proposals *all) {
    const size_t q = (size_t)n2_options_count(s->options, "count"), cols = s->t.designs.space.n;
    const size_t done = all->rows, rows = q * (k + 1) / N2_WEIGHTINGS - q * k / N2_WEIGHTINGS;
    double factor[N2_OBJECTIVES_MAX];
    n2_proposals p = *all;
    p.rows = rows;
    p.x += done * cols;
    p.predicted += done;
    p.log_prior += done;
    p.chance = s->chance + done;
    if (rows == 0) return N2CE_OK;
    n2_objectives_weighting(&s->objectives, k, factor);
    n2_objectives_weigh(&s->objectives, factor, &s->t);
    n2_backtest_end(&s->backtest);
    N2_TRY(n2_backtest_begin(s->ctx, &s->t.designs, 0, &s->backtest));
    s->latent.taken = all->x;
    s->latent.n_taken = done;
    N2_TRY(propose_some(s, &p, s->r.spread + done));
    all->rows += p.rows;
    all->chance = p.chance ? s->chance : NULL;
    return N2CE_OK;
}

/* What is predicted of the column itself, which has no kink where it is wanted. */
static n2ce_status predict_column(session *s, const n2_proposals *p, double *value) {
    n2_designs seen = s->t.designs;
    n2_latent_options o = s->latent;
    n2_latent *m;
    seen.y = (double *)(uintptr_t)s->objectives.each[0].value;
    o.value_only = true;
    o.checkpoint = NULL;
    o.needs = NULL;
    o.n_needs = 0;
    N2_TRY(n2_latent_fit(s->ctx, &seen, &o, &m));
    const n2ce_status status = n2_latent_appraise(m, p->x, p->rows, value, NULL, NULL);
    n2_latent_free(m);
    return status;
}

static void swap(double *a, double *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

/* Of more proposals than were asked for, those that are predicted to be nearest. */
static n2ce_status propose_near(session *s) {
    const size_t q = (size_t)n2_options_count(s->options, "count"), cols = s->t.designs.space.n;
    n2_proposals *p = &s->r.proposals;
    p->rows = NEAR_TRIES * q;
    N2_TRY(propose_some(s, p, s->r.spread));
    N2_TRY(predict_column(s, p, p->predicted));
    for (size_t i = 0; i < p->rows; i++)
        p->predicted[i] = -fabs(p->predicted[i] - s->objectives.each[0].aim);
    const size_t kept = p->rows < q ? p->rows : q;
    for (size_t i = 0; i < kept; i++) {
        size_t best = i;
        for (size_t k = i + 1; k < p->rows; k++)
            if (p->predicted[k] > p->predicted[best]) best = k;
        swap(p->x + i * cols, p->x + best * cols, cols);
        swap(p->predicted + i, p->predicted + best, 1);
        swap(p->log_prior + i, p->log_prior + best, 1);
        swap(s->r.spread + i, s->r.spread + best, 1);
        if (p->chance) swap(p->chance + i, p->chance + best, 1);
    }
    p->rows = kept;
    p->low = p->high = 0;
    return N2CE_OK;
}

static n2ce_status propose_here(session *s) {
    n2_proposals *p = &s->r.proposals;
    p->chance = s->chance;
    p->rows = (size_t)n2_options_count(s->options, "count");
    if (is_near(s)) return propose_near(s);
    if (!n2_options_flag(s->options, "pareto")) return propose_some(s, p, s->r.spread);
    p->rows = 0;
    for (size_t k = 0; k < N2_WEIGHTINGS; k++) N2_TRY(propose_weighted(s, k, p));
    p->low = p->high = 0;
    return N2CE_OK;
}

/* What is to be said of each objective. */
static n2ce_status predict_objectives(session *s) {
    const size_t rows = s->r.proposals.rows;
    n2_objectives *w = &s->objectives;
    double *predicted, *front;
    if (!w->combined) return N2CE_OK;
    N2_TRY(n2_objectives_predict(w, &s->t.designs, s->r.proposals.x, rows, &predicted, &front));
    double *all = n2_arena_alloc(&w->arena, (w->n + 1) * rows, sizeof *all);
    if (!all) return N2CE_ENOMEM;
    memcpy(all, predicted, w->n * rows * sizeof *all);
    memcpy(all + w->n * rows, front, rows * sizeof *all);
    for (size_t k = 0; k < w->n; k++) {
        char *name = n2_arena_alloc(&w->arena, strlen(w->each[k].column) + 16, 1);
        if (!name) return N2CE_ENOMEM;
        snprintf(name, strlen(w->each[k].column) + 16, "%s_predicted", w->each[k].column);
        s->t.also_name[k] = name;
    }
    s->t.also_name[w->n] = "front";
    s->t.n_also = w->n + (w->n > 1);
    s->t.also = all;
    return N2CE_OK;
}

/* All of it once more on the processor, if a device that nobody insists on failed. */
static n2ce_status propose(session *s) {
    n2ce_status status = propose_here(s);
    if (n2_choice_retreat(&s->choice, s->ctx, status)) status = propose_here(s);
    s->r.device = n2_choice_name(&s->choice);
    s->r.reason = s->choice.reason;
    return status;
}

static n2ce_status write_proposals(session *s) {
    if (!s->r.path) return N2CE_OK;
    n2_text csv = n2_text_new(s->ctx);
    n2_design_csv(&s->t, &s->r.proposals, &csv);
    n2ce_status status = csv.failed ? N2CE_ENOMEM : N2CE_OK;
    const bool force = n2_options_flag(s->options, "force");
    if (status == N2CE_OK)
        status = (force ? n2_file_write : n2_file_create)(s->ctx, s->r.path, csv.data, csv.length);
    n2_text_free(&csv);
    if (status == N2CE_OK) n2_checkpoint_used_up(s->ctx, &s->checkpoint);
    return status;
}

/* What a stopped run leaves: nothing, if it was stopped before the training. */
static n2ce_status stopped(session *s, n2ce_answer *answer) {
    n2_writer w = n2_writer_new(s->ctx);
    if (s->latent.checkpoint && access(s->checkpoint.path, F_OK) == 0) {
        n2_text_add(&w.text, "The state of training is in %s; go on with --resume.\n",
                    s->checkpoint.path);
        n2_text_add(&w.kept, "the state of training\n");
        n2_text_add(&w.brief, "0\n");
        n2_text_add(&w.json, "{\"proposals\": [], \"checkpoint\": ");
        n2_text_add_json_string(&w.json, s->checkpoint.path);
        n2_text_add(&w.json, "}\n");
        (void)n2_writer_take(&w, answer);
    } else {
        n2_writer_free(&w);
    }
    return N2CE_ECANCELED;
}

/* What is required is of all rows, in a file. */
static n2ce_status read_required(session *s, const n2ce_matrix *data) {
    N2_TRY(n2_requirements_read(s->ctx, n2ce_options_get(s->options, "require"), &s->required));
    if (s->required.n > 0 && data)
        return n2_fail(s->ctx, N2CE_EINVAL, "--require needs a file with the columns it names.");
    if (s->required.n > 0 && n2ce_options_number(s->options, "backtest") > 0)
        return n2_fail(s->ctx, N2CE_EINVAL, "Give --backtest or --require, not both.");
    return N2CE_OK;
}

/* Several models leave no one state of training, and hide no rows. */
static n2ce_status read_objectives(session *s, const n2ce_matrix *data) {
    if (!data) N2_TRY(n2_objectives_read(s->ctx, s->options, &s->objectives));
    if (!n2_options_flag(s->options, "pareto")) return N2CE_OK;
    if (s->objectives.n < 2)
        return n2_fail(s->ctx, N2CE_EINVAL, "--pareto needs a file and at least two objectives.");
    if (n2_options_flag(s->options, "resume") || n2ce_options_number(s->options, "backtest") > 0)
        return n2_fail(s->ctx, N2CE_EINVAL, "Give --pareto, or --resume or --backtest, not both.");
    s->latent.checkpoint = NULL;
    return N2CE_OK;
}

static n2ce_status run_session(session *s, const n2ce_matrix *data, n2ce_answer *answer) {
    const n2ce_options *o = s->options;
    s->r.path = data ? NULL : n2ce_options_get(o, "output");
    if (s->r.path) N2_TRY(n2_file_check_output(s->ctx, s->r.path, n2_options_flag(o, "force")));
    n2_optimize_model(s->options, &s->latent);
    N2_TRY(n2_checkpoint_of_options(s->ctx, o, n2ce_options_get(o, "output"), &s->checkpoint));
    if (*s->checkpoint.path) s->latent.checkpoint = s->checkpoint.path;
    N2_TRY(choose_device(s));
    N2_TRY(read_required(s, data));
    N2_TRY(read_objectives(s, data));
    N2_TRY(n2_optimize_designs(s->ctx, s->options, data, &s->required, &s->objectives, &s->t));
    N2_TRY(n2_requirements_fill(&s->t, &s->required));
    if (isnan(s->latent.ambition)) s->latent.ambition = n2_objectives_reach(&s->objectives);
    s->latent.needs = s->required.need;
    s->latent.n_needs = s->required.n;
    N2_TRY(n2_optimize_rules(o, &s->t, &s->rules));
    s->latent.rules = &s->rules;
    N2_TRY(
        n2_backtest_begin(s->ctx, &s->t.designs, n2ce_options_number(o, "backtest"), &s->backtest));
    N2_TRY(identify(s));
    N2_TRY(make_room(s));
    const n2ce_status status = propose(s);
    if (status == N2CE_ECANCELED) return stopped(s, answer);
    N2_TRY(status);
    N2_TRY(appraise(s));
    N2_TRY(predict_objectives(s));
    N2_TRY(write_proposals(s));
    s->r.t = &s->t;
    s->r.backtest = &s->backtest;
    s->r.options = o;
    s->r.asked = (size_t)n2_options_count(o, "count");
    return n2_optimize_answer(s->ctx, &s->r, answer);
}

static n2ce_status run_optimize(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                                n2ce_answer *answer) {
    session *s = n2_alloc(ctx, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    *s = (session){.ctx = ctx,
                   .options = o,
                   .t = {.ctx = ctx},
                   .required = {.arena = n2_arena_new(ctx)},
                   .objectives = {.arena = n2_arena_new(ctx)},
                   .backtest = {.ctx = ctx},
                   .r = {.worth = {.ctx = ctx}}};
    const n2ce_status status = run_session(s, data, answer);
    void *const blocks[] = {s->r.proposals.x, s->r.proposals.predicted, s->r.proposals.log_prior,
                            s->r.spread};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) n2_free(ctx, blocks[i]);
    n2_free(ctx, s->chance);
    n2_requirements_free(&s->required);
    n2_objectives_free(&s->objectives);
    n2_appraisal_free(&s->r.worth);
    n2_backtest_end(&s->backtest);
    n2_design_rules_free(&s->rules);
    n2_design_table_close(&s->t);
    n2_free(ctx, s->identity);
    n2_free(ctx, s);
    return status;
}

const n2ce_task n2_optimize_task = {
    .name = "optimize",
    .summary = "designs to try next, from designs that were tried",
    .description =
        "Learns from a file of designs with their values, without trying any, and proposes\n"
        "designs that are new, within the bounds, plausible under a latent model whose prior is\n"
        "learnt by N2CE, and predicted to be better. Columns are numbers, whole numbers (where\n"
        "all values are) or categories: texts, and what --categorical names. The CSV has the\n"
        "file's own columns, the predicted value and the logarithm of the density, up to a\n"
        "constant.\n"
        "\n"
        "Ctrl-C keeps the state of training beside the output; --resume goes on from there\n"
        "and gives what an uninterrupted run gives.\n",
    .examples = "n2ce optimize designs.csv --maximize y --count 256 -o proposals.csv\n"
                "n2ce optimize designs.csv --minimize cost --categorical colour --bounds box.csv\n"
                "n2ce optimize designs.csv --maximize y --backtest 20\n"
                "n2ce optimize designs.csv --maximize yield --minimize cost --pareto -o next.csv\n"
                "n2ce optimize designs.csv --maximize y --append tried.csv -o next.csv\n",
    .page = "optimize.html",
    .data = "optimize.json",
    .options = optimize_options,
    .operands = "designs",
    .run_on = run_optimize,
    .matrices = 2,
};
