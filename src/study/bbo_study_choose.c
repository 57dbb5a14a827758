/* "study bbo": from options to tasks, methods and Q. */
#include "bbo_study.h"

#include <math.h>
#include <string.h>

/* ---- presets --------------------------------------------------------------------------------- */

enum { PRESET_OPTIONS = 4 };

typedef struct preset {
    const char *name;
    const char *set[PRESET_OPTIONS + 1][2]; /* options and their values */
} preset;

static const preset presets[] = {
    {"branin",
     {{"tasks", "branin,branin-50,branin-all,branin-50-all"},
      {"methods",
       "n2ce,n2ce-m1,n2ce-m10,gaussian,mle,mle-ld,gradient-ascent,ddom,random,top-offline"},
      {"targets", "0,0.2,0.4,0.6,0.8,0.9,0.95,1,1.02,1.05,1.1"}}},
    {"table",
     {{"tasks", "tfbind8,tfbind10,superconductor"}, {"methods", "all"}, {"queries", "128,256"}}},
    {"rows", {{"tasks", "all,robots"}, {"methods", "all"}}},
    {"ablation",
     {{"tasks", "tfbind8,tfbind10,superconductor"},
      {"methods",
       "n2ce,n2ce-m1,n2ce-m10,n2ce-m1000,n2ce-k1,n2ce-k2,n2ce-k4,n2ce-k8,n2ce-ld,gaussian,"
       "mle,mle-ld,random,top-offline"}}},
    {"queries",
     {{"tasks", "superconductor"},
      {"methods", "n2ce,random,top-offline"},
      {"queries", "2,8,32,128,256"}}},
    {"cubes",
     {{"tasks", "all"},
      {"methods", "n2ce,random,top-offline,cube-0.005,cube-0.01,cube-0.05,cube-0.1"}}},
    {"prior",
     {{"tasks", "hairpin,recipe,grammar"},
      {"methods",
       "n2ce-draws,n2ce-m1-draws,n2ce-k1-draws,n2ce-k1-m1-draws,gaussian-draws,mle-draws"},
      {"targets", "0.9,1,1.05"}}},
};

static const preset *find_preset(const char *name) {
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (name && strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

n2ce_status n2_bbo_preset(n2ce_ctx *ctx, const n2ce_options *given, const n2ce_option *table,
                          n2ce_options **out) {
    const preset *p = find_preset(n2ce_options_get(given, "preset"));
    n2ce_status status = n2ce_options_new(ctx, table, out);
    for (size_t i = 0; p && p->set[i][0] && status == N2CE_OK; i++)
        status = n2ce_options_set(*out, p->set[i][0], p->set[i][1]);
    for (const n2ce_option *row = table; row->name && status == N2CE_OK; row++) {
        const char *value = n2_options_given(given, row->name);
        if (value) status = n2ce_options_set(*out, row->name, value);
    }
    if (status == N2CE_OK) return N2CE_OK;
    n2ce_options_free(*out);
    *out = NULL;
    return status;
}

/* ---- tasks, methods, Q ----------------------------------------------------------------------- */

static const char *task_name(size_t i) {
    const n2_design_task *t = n2_design_task_at(i);
    return t ? t->name : NULL;
}

static const char *method_name(size_t i) {
    return i < n2_method_count ? n2_methods[i].method->name : NULL;
}

static bool is_word(const char *word, size_t n, const char *name) {
    return strlen(name) == n && memcmp(name, word, n) == 0;
}

/* The option is a plural: "tasks". */
static n2ce_status unknown(n2ce_ctx *ctx, const char *option, const char *(*name)(size_t),
                           const char *word, size_t n) {
    const char *known[N2_BBO_METHODS + 1] = {"all"}, *nearest;
    size_t count = 1;
    char copy[64] = "";
    n2_text list = n2_text_new(ctx);
    for (size_t i = 0; name(i) && count <= N2_BBO_METHODS; i++) {
        known[count++] = name(i);
        n2_text_add(&list, "%s%s", i ? ", " : "", name(i));
    }
    if (n < sizeof copy) memcpy(copy, word, n);
    nearest = *copy ? n2ce_nearest_word(copy, known, count) : NULL;
    const n2ce_status status =
        n2_fail(ctx, N2CE_EINVAL, "--%s: there is no %.*s \"%.*s\"%s%s%s There are: %s; or all.",
                option, (int)strlen(option) - 1, option, (int)(n < 80 ? n : 80), word,
                nearest ? "; did you mean \"" : ".", nearest ? nearest : "", nearest ? "\"?" : "",
                list.data ? list.data : "");
    n2_text_free(&list);
    return status;
}

/* Marks what one word asks for: a name, or a group: all, robots, further, variants. */
static n2ce_status mark(n2ce_ctx *ctx, const char *option, const char *(*name)(size_t),
                        const char *(*group)(size_t), const char *word, size_t n, bool *marked) {
    bool any = false;
    for (size_t i = 0; name(i); i++)
        if (is_word(word, n, name(i)) || is_word(word, n, group(i))) marked[i] = any = true;
    return any ? N2CE_OK : unknown(ctx, option, name, word, n);
}

static n2ce_status mark_list(n2ce_ctx *ctx, const n2ce_options *o, const char *option,
                             const char *(*name)(size_t), const char *(*group)(size_t),
                             bool *marked) {
    for (const char *at = n2ce_options_get(o, option);; at++) {
        const size_t n = strcspn(at, ",");
        N2_TRY(mark(ctx, option, name, group, at, n, marked));
        at += n;
        if (!*at) return N2CE_OK;
    }
}

static const char *task_group(size_t i) {
    const n2_design_task *t = n2_design_task_at(i);
    return t->variant_of ? "variants" : t->further ? "further" : t->needs ? "robots" : "all";
}

static const char *method_group(size_t i) { return n2_methods[i].variant_of ? "variants" : "all"; }

static bool is_there(const n2_bbo_study *s, const n2_design_task *task, size_t queries) {
    for (size_t t = 0; t < s->n_tasks; t++)
        if (s->tasks[t] == task && s->queries[t] == queries) return true;
    return false;
}

/* The tasks asked for, each with every Q. */
static n2ce_status choose_tasks(n2ce_ctx *ctx, const n2ce_options *o, n2_bbo_study *s) {
    bool tasks[N2_BBO_TASKS] = {false};
    double *queries;
    size_t n;
    N2_TRY(mark_list(ctx, o, "tasks", task_name, task_group, tasks));
    N2_TRY(n2_options_reals(o, "queries", s->arena, &queries, &n));
    for (size_t i = 0; n2_design_task_at(i); i++)
        for (size_t k = 0; k < (n ? n : 1) && tasks[i]; k++) {
            if (s->n_tasks == N2_BBO_TASKS || (n && queries[k] != floor(queries[k])))
                return n2_fail(ctx, N2CE_EINVAL,
                               "--queries takes whole numbers, and not more than %d of them for "
                               "all tasks.",
                               N2_BBO_TASKS);
            const n2_design_task *task = n2_design_task_at(i);
            const size_t q = n ? (size_t)queries[k] : task->queries;
            if (is_there(s, task, q)) continue;
            s->tasks[s->n_tasks] = task;
            s->queries[s->n_tasks++] = q;
        }
    return N2CE_OK;
}

n2ce_status n2_bbo_choose(n2ce_ctx *ctx, const n2ce_options *o, n2_bbo_study *s) {
    bool methods[N2_BBO_METHODS] = {false}, beside[N2_BBO_METHODS] = {false};
    double *targets;
    N2_TRY(choose_tasks(ctx, o, s));
    N2_TRY(n2_options_reals(o, "targets", s->arena, &targets, &s->n_targets));
    s->targets = targets;
    N2_TRY(mark_list(ctx, o, "methods", method_name, method_group, methods));
    if (strcmp(n2ce_options_get(o, "beside"), "none") != 0)
        N2_TRY(mark_list(ctx, o, "beside", method_name, method_group, beside));
    for (size_t i = 0; i < n2_method_count; i++)
        if (methods[i]) s->methods[s->n_methods++] = &n2_methods[i];
    s->n_asked = s->n_methods;
    for (size_t i = 0; i < n2_method_count; i++)
        if (!methods[i] && beside[i]) s->methods[s->n_methods++] = &n2_methods[i];
    return N2CE_OK;
}
