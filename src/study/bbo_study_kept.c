/* Runs of earlier studies, from their JSON: read, and taken over into another study. */
#include "base/numerics.h"
#include "bbo_study.h"
#include "kept_answers.h"

#include <math.h>
#include <string.h>

/* ---- reading --------------------------------------------------------------------------------- */

/* One file in the reading. */
typedef struct reader {
    n2_json json;
    n2_bbo_kept *kept;
    size_t queries, scale; /* as its options say; 0: the tasks' usual Q, or said row by row */
    size_t first_row;      /* of this file, in kept */
    size_t at_row;         /* the last one of which another list said something */
} reader;

/* An entry of one of its lists: the keys that any of them has. */
typedef struct entry {
    const char *task, *method, *device;
    double seed, queries, scale, max, median, distinct, inside, seconds, rows, best, drawn;
    n2_bbo_aim aim;
    double *x; /* of a sample */
    size_t n;
} entry;

/* Room for one more; what is there may move. */
static void *grown(n2_arena *arena, void *items, size_t n, size_t size) {
    if (n > 0 && (n & (n - 1)) != 0) return items;
    void *larger = n2_arena_alloc(arena, n ? 2 * n : 1, size);
    if (larger && n) memcpy(larger, items, n * size);
    return larger;
}

static n2ce_status read_numbers(reader *r, entry *e) {
    bool more;
    N2_TRY(n2_json_enter(&r->json, '['));
    for (;;) {
        N2_TRY(n2_json_next(&r->json, ']', &more));
        if (!more) return N2CE_OK;
        e->x = grown(r->kept->arena, e->x, e->n, sizeof *e->x);
        if (!e->x) return N2CE_ENOMEM;
        N2_TRY(n2_json_number(&r->json, &e->x[e->n++]));
    }
}

static n2ce_status read_entry_value(reader *r, const char *key, entry *e) {
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"seed", &e->seed},         {"queries", &e->queries}, {"scale", &e->scale},
                   {"max", &e->max},           {"median", &e->median},   {"distinct", &e->distinct},
                   {"inside", &e->inside},     {"seconds", &e->seconds}, {"rows", &e->rows},
                   {"best", &e->best},         {"drawn", &e->drawn},     {"scaled", &e->aim.scaled},
                   {"target", &e->aim.target}, {"mean", &e->aim.mean},   {"sd", &e->aim.sd},
                   {"low", &e->aim.low},       {"high", &e->aim.high}};
    if (strcmp(key, "task") == 0) return n2_json_string(&r->json, &e->task);
    if (strcmp(key, "method") == 0) return n2_json_string(&r->json, &e->method);
    if (strcmp(key, "device") == 0) return n2_json_string(&r->json, &e->device);
    if (strcmp(key, "x") == 0) return read_numbers(r, e);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(key, numbers[i].key) == 0) return n2_json_number(&r->json, numbers[i].to);
    return n2_json_skip(&r->json);
}

static n2ce_status read_entry(reader *r, entry *e) {
    const char *key;
    bool more;
    *e = (entry){.task = "", .method = "", .max = N2_NAN, .median = N2_NAN, .inside = N2_NAN};
    e->best = N2_NAN;
    N2_TRY(n2_json_enter(&r->json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(&r->json, '}', &more));
        if (!more) return N2CE_OK;
        N2_TRY(n2_json_key(&r->json, &key));
        N2_TRY(read_entry_value(r, key, e));
    }
}

static bool is_whole(double x) { return x >= 0 && x <= 9007199254740992.0 && x == floor(x); }

static n2ce_status find_task(const reader *r, const entry *e, const n2_design_task **task) {
    *task = n2_design_task_find(e->task);
    if (!*task)
        return n2_fail(r->json.ctx, N2CE_EDATA, "%s: there is no task \"%.40s\".", r->json.source,
                       e->task);
    if (!is_whole(e->seed) || !is_whole(e->queries) || !is_whole(e->distinct) ||
        !is_whole(e->rows) || !is_whole(e->scale))
        return n2_fail(r->json.ctx, N2CE_EDATA,
                       "%s: a seed, or a number of designs, is no whole number.", r->json.source);
    return N2CE_OK;
}

static n2ce_status add_row(reader *r, const entry *e, bool asked) {
    n2_bbo_kept *k = r->kept;
    n2_bbo_row row = {.method = n2_method_find(e->method), .asked = asked};
    N2_TRY(find_task(r, e, &row.task));
    if (!row.method)
        return n2_fail(r->json.ctx, N2CE_EDATA, "%s: there is no method \"%.40s\".", r->json.source,
                       e->method);
    const size_t queries = e->queries > 0 ? (size_t)e->queries : r->queries;
    row.queries = queries ? queries : row.task->queries;
    row.run = (n2_bbo_run){.seed = (uint64_t)e->seed,
                           .max = e->max,
                           .median = e->median,
                           .unmoved_max = N2_NAN,
                           .unmoved_median = N2_NAN,
                           .inside = e->inside,
                           .seconds = e->seconds,
                           .distinct = (size_t)e->distinct,
                           .scale = e->scale > 0 ? (size_t)e->scale : r->scale,
                           .done = true,
                           .failed = !isfinite(e->max)};
    if (e->device) row.run.device = n2_arena_strdup(k->arena, e->device);
    if (e->device && !row.run.device) return N2CE_ENOMEM;
    k->rows = grown(k->arena, k->rows, k->n_rows, sizeof *k->rows);
    if (!k->rows) return N2CE_ENOMEM;
    k->rows[k->n_rows++] = row;
    return N2CE_OK;
}

/* The row of this file that an entry of another list belongs to; they come in the same order. */
static n2_bbo_row *row_of(reader *r, const entry *e) {
    const size_t n = r->kept->n_rows - r->first_row;
    for (size_t i = 0; i < n; i++) {
        const size_t at = (r->at_row + i) % n;
        n2_bbo_row *row = &r->kept->rows[r->first_row + at];
        if (strcmp(row->task->name, e->task) != 0 || (double)row->run.seed != e->seed ||
            strcmp(row->method->method->name, e->method) != 0 ||
            (e->queries > 0 && (double)row->queries != e->queries))
            continue;
        r->at_row = at;
        return row;
    }
    return NULL;
}

static n2ce_status add_aim(reader *r, n2_bbo_run *run, const n2_bbo_aim *aim) {
    run->aims = grown(r->kept->arena, run->aims, run->n_aims, sizeof *aim);
    if (!run->aims) return N2CE_ENOMEM;
    run->aims[run->n_aims++] = *aim;
    return N2CE_OK;
}

/* What other lists say of a row. */
static n2ce_status add_to_row(reader *r, const char *list, const entry *e) {
    n2_bbo_row *row = row_of(r, e);
    if (!row) return N2CE_OK;
    if (strcmp(list, "targets") == 0) return add_aim(r, &row->run, &e->aim);
    if (strcmp(list, "samples") == 0) {
        *(e->drawn > 0 ? &row->run.drawn : &row->run.proposed) = (n2_bbo_points){e->x, e->n / 2};
    } else {
        row->run.unmoved_max = e->max;
        row->run.unmoved_median = e->median;
    }
    return N2CE_OK;
}

static n2ce_status add_offline(reader *r, const entry *e) {
    n2_bbo_kept *k = r->kept;
    n2_bbo_offline o = {NULL, (uint64_t)e->seed, (size_t)e->rows, e->best};
    N2_TRY(find_task(r, e, &o.task));
    k->offline = grown(k->arena, k->offline, k->n_offline, sizeof *k->offline);
    if (!k->offline) return N2CE_ENOMEM;
    k->offline[k->n_offline++] = o;
    return N2CE_OK;
}

static n2ce_status read_list(reader *r, const char *key) {
    bool more;
    N2_TRY(n2_json_enter(&r->json, '['));
    for (;;) {
        entry e;
        N2_TRY(n2_json_next(&r->json, ']', &more));
        if (!more) return N2CE_OK;
        N2_TRY(read_entry(r, &e));
        if (strcmp(key, "offline") == 0)
            N2_TRY(add_offline(r, &e));
        else if (strcmp(key, "rows") == 0 || strcmp(key, "trivial") == 0)
            N2_TRY(add_row(r, &e, strcmp(key, "rows") == 0));
        else
            N2_TRY(add_to_row(r, key, &e));
    }
}

/* A number that options may have as text, "auto" and lists among them: those are 0. */
static n2ce_status read_option(n2_json *json, size_t *out) {
    double x = 0;
    if (n2_json_at_string(json)) {
        const char *text;
        size_t n = 0;
        N2_TRY(n2_json_string(json, &text));
        for (; text[n] >= '0' && text[n] <= '9' && n < 9; n++) x = 10 * x + (text[n] - '0');
        if (text[n]) x = 0;
    } else {
        N2_TRY(n2_json_number(json, &x));
    }
    *out = is_whole(x) ? (size_t)x : 0;
    return N2CE_OK;
}

static n2ce_status read_options(reader *r) {
    const char *key;
    bool more;
    N2_TRY(n2_json_enter(&r->json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(&r->json, '}', &more));
        if (!more) return N2CE_OK;
        N2_TRY(n2_json_key(&r->json, &key));
        if (strcmp(key, "queries") == 0)
            N2_TRY(read_option(&r->json, &r->queries));
        else if (strcmp(key, "scale") == 0)
            N2_TRY(read_option(&r->json, &r->scale));
        else
            N2_TRY(n2_json_skip(&r->json));
    }
}

static bool is_list(const char *key) {
    static const char *const lists[] = {"rows",    "trivial", "unmoved",
                                        "targets", "offline", "samples"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (strcmp(key, lists[i]) == 0) return true;
    return false;
}

static n2ce_status read_study(reader *r) {
    const char *key, *study = "";
    bool more;
    N2_TRY(n2_json_enter(&r->json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(&r->json, '}', &more));
        if (!more) break;
        N2_TRY(n2_json_key(&r->json, &key));
        if (strcmp(key, "study") == 0)
            N2_TRY(n2_json_string(&r->json, &study));
        else if (strcmp(key, "options") == 0)
            N2_TRY(read_options(r));
        else if (is_list(key) && strcmp(study, "bbo") == 0)
            N2_TRY(read_list(r, key));
        else
            N2_TRY(n2_json_skip(&r->json));
    }
    if (strcmp(study, "bbo") == 0) return n2_json_end(&r->json);
    return n2_fail(
        r->json.ctx, N2CE_EDATA,
        "%s is not an answer of \"n2ce study bbo --json\", nor a bbo.json of its report.",
        r->json.source);
}

static n2ce_status read_answer(n2_json *json, void *kept) {
    n2_bbo_kept *k = kept;
    reader r = {.json = *json, .kept = k, .scale = 1, .first_row = k->n_rows};
    return read_study(&r);
}

n2ce_status n2_bbo_kept_read(n2ce_ctx *ctx, const char *paths, n2_arena *arena, n2_bbo_kept *out) {
    *out = (n2_bbo_kept){.arena = arena};
    return n2_answers_read(ctx, paths, "bbo.json", read_answer, out);
}

/* ---- a study of what was read ---------------------------------------------------------------- */

static size_t place_of_task(const n2_bbo_study *s, const n2_design_task *task, size_t queries) {
    size_t t = 0;
    while (t < s->n_tasks && (s->tasks[t] != task || s->queries[t] != queries)) t++;
    return t;
}

static size_t place_of_method(const n2_bbo_study *s, const n2_listed_method *method) {
    size_t m = 0;
    while (m < s->n_methods && s->methods[m] != method) m++;
    return m;
}

/* Tasks in the order of their table, each with its Q from the smallest on. */
static n2ce_status choose_tasks(n2ce_ctx *ctx, const n2_bbo_kept *k, n2_bbo_study *s) {
    const n2_design_task *task;
    for (size_t i = 0; (task = n2_design_task_at(i)); i++)
        for (size_t above = 0, next = 1; next > 0; above = next) {
            next = 0;
            for (size_t j = 0; j < k->n_rows; j++) {
                const size_t q = k->rows[j].queries;
                if (k->rows[j].task == task && q > above && (next == 0 || q < next)) next = q;
            }
            if (next == 0) break;
            if (s->n_tasks == N2_BBO_TASKS)
                return n2_fail(ctx, N2CE_EINVAL, "--merge: the files have more than %d tasks.",
                               N2_BBO_TASKS);
            s->queries[s->n_tasks] = next;
            s->tasks[s->n_tasks++] = task;
        }
    return N2CE_OK;
}

/* In the order of their table; those that nobody asked for last. */
static void choose_methods(const n2_bbo_kept *k, n2_bbo_study *s) {
    for (int asked = 1; asked >= 0; asked--) {
        for (size_t i = 0; i < n2_method_count; i++)
            for (size_t j = 0; j < k->n_rows; j++)
                if (k->rows[j].method == &n2_methods[i] && k->rows[j].asked == (asked == 1) &&
                    place_of_method(s, &n2_methods[i]) == s->n_methods)
                    s->methods[s->n_methods++] = &n2_methods[i];
        if (asked) s->n_asked = s->n_methods;
    }
}

n2ce_status n2_bbo_kept_choose(n2ce_ctx *ctx, const n2_bbo_kept *k, n2_bbo_study *s) {
    uint64_t last = 0;
    if (k->n_rows == 0)
        return n2_fail(ctx, N2CE_EDATA, "--merge: there is no finished run in these files.");
    N2_TRY(choose_tasks(ctx, k, s));
    choose_methods(k, s);
    s->first_seed = k->rows[0].run.seed;
    for (size_t i = 0; i < k->n_rows; i++) {
        const uint64_t seed = k->rows[i].run.seed;
        if (seed < s->first_seed) s->first_seed = seed;
        if (seed > last) last = seed;
    }
    if (last - s->first_seed >= 10000)
        return n2_fail(
            ctx, N2CE_EINVAL,
            "--merge: the files have seeds from %llu to %llu; at most 10000 in a row can "
            "be shown together.",
            (unsigned long long)s->first_seed, (unsigned long long)last);
    s->n_seeds = (size_t)(last - s->first_seed) + 1;
    return N2CE_OK;
}

/* Whether a run has drawn for all values that the study asks for, if its method can. */
static bool has_targets(const n2_bbo_row *row, const n2_bbo_study *s) {
    if (!row->method->aim || row->run.failed) return true;
    for (size_t i = 0; i < s->n_targets; i++) {
        size_t k = 0;
        while (k < row->run.n_aims && row->run.aims[k].scaled != s->targets[i]) k++;
        if (k == row->run.n_aims) return false;
    }
    return true;
}

static void take_row(const n2_bbo_row *row, bool any_scale, n2_bbo_study *s) {
    const size_t t = place_of_task(s, row->task, row->queries);
    const size_t m = place_of_method(s, row->method);
    const uint64_t k = row->run.seed - s->first_seed;
    const bool scaled = row->method->with && row->run.scale != s->effort.scale;
    if (t == s->n_tasks || m == s->n_methods || k >= s->n_seeds || (scaled && !any_scale)) return;
    n2_bbo_run *run = n2_bbo_run_at(s, t, m, (size_t)k);
    if (run->done || !has_targets(row, s)) return;
    *run = row->run;
    s->n_done++;
}

void n2_bbo_kept_take(const n2_bbo_kept *kept, bool any_scale, n2_bbo_study *s) {
    for (size_t i = 0; i < kept->n_rows; i++) take_row(&kept->rows[i], any_scale, s);
    for (size_t i = 0; i < kept->n_offline; i++)
        for (size_t t = 0; t < s->n_tasks; t++) {
            const n2_bbo_offline *o = &kept->offline[i];
            if (s->tasks[t] != o->task || o->seed - s->first_seed >= s->n_seeds) continue;
            s->offline_best[t * s->n_seeds + (size_t)(o->seed - s->first_seed)] = o->best;
            s->offline_rows[t] = o->rows;
        }
}
