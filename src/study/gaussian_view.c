/* The Gaussian study as a terminal table, JSON, bare numbers and a sentence. */
#include "base/text.h"
#include "gaussian.h"
#include "task/task.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *n2_family_name(n2ce_family family) {
    static const char *const names[] = {"n2ce", "nwj", "neg-reweight"};
    return names[family];
}

void n2_column_label(const n2_gaussian_column *c, char *buffer, size_t size) {
    if (c->family == N2CE_FAMILY_NWJ)
        snprintf(buffer, size, "NWJ");
    else if (c->family == N2CE_FAMILY_NEG_REWEIGHT)
        snprintf(buffer, size, "neg-reweight, M = %.3g", c->magnitude);
    else
        snprintf(buffer, size, "M = %.6g", c->magnitude);
}

/* ---- terminal ------------------------------------------------------------ */

static void add_vector(n2_text *out, const double *v, size_t n) {
    char number[32];
    n2_text_add(out, "(");
    for (size_t i = 0; i < n && i < 8; i++)
        n2_text_add(out, "%s%s", i ? ", " : "", n2_format_number(v[i], number));
    n2_text_add(out, n > 8 ? ", ...)" : ")");
}

static void add_text_row(n2_text *out, const n2_gaussian_column *c,
                         const n2_gaussian_score *score) {
    char m[32] = "-", std[32] = "-", paper[48] = "";
    if (isfinite(c->magnitude)) snprintf(m, sizeof m, "%.6g", c->magnitude);
    if (isfinite(c->paper_mean))
        snprintf(paper, sizeof paper, "%9.3f +- %-7.3f", c->paper_mean, c->paper_std);
    if (isfinite(score->std)) snprintf(std, sizeof std, "%.4g", score->std);
    n2_text_add(out, "  %-13s %8s %11.4g %11s   %-20s %11.4g\n", n2_family_name(c->family), m,
                score->mean, std, paper, score->gradient_error);
}

static void add_text_setting(n2_text *out, const n2_gaussian_setting *s,
                             const n2_gaussian_result *r, const n2_bias_curve *bias) {
    n2_text_add(
        out, "Gaussian location family: dim %zu, n = %llu a side, %llu run%s, %llu step%s of %g\n",
        s->dim, (unsigned long long)s->n, (unsigned long long)r->runs_done,
        r->runs_done == 1 ? "" : "s", (unsigned long long)s->steps, s->steps == 1 ? "" : "s",
        s->step_size);
    n2_text_add(out, "from ");
    add_vector(out, s->start, s->dim);
    n2_text_add(out, " to ");
    add_vector(out, s->target, s->dim);
    n2_text_add(out, "\n\n  %-13s %8s %11s %11s   %-20s %11s\n", "objective", "M", "score", "std",
                "    paper", "grad. error");
    for (size_t c = 0; c < s->n_columns; c++) add_text_row(out, &s->columns[c], &r->scores[c]);
    n2_text_add(out, "  %-13s %8s %11.4g\n\n", "exact MLE", "", n2_gaussian_mle_score(s));
    n2_text_add(out,
                "  squared gradient bias against M, exact, log-log slope over M = 10..1000:\n");
    for (int k = 0; k < N2_BIAS_CURVES; k++)
        n2_text_add(out, "  %8.3f  %s\n", bias[k].slope, bias[k].where);
    n2_text_add(out, "\n");
}

static void add_text(n2_text *out, const n2_gaussian_study *study) {
    for (size_t i = 0; i < study->n_settings; i++)
        add_text_setting(out, &study->settings[i], &study->results[i], study->bias[i].curves);
    n2_text_add(
        out, "score: mean over steps of |a_t - a*|^2; grad. error: mean squared distance of the\n"
             "sampled gradient from the exact likelihood gradient. The slope tends to -2 once M\n"
             "is well above the ratios that occur; far from the noise that takes a larger M.\n");
}

/* ---- JSON ---------------------------------------------------------------- */

static void add_json_number(n2_text *out, const char *key, double value) {
    n2_text_add(out, "\"%s\": ", key);
    n2_text_add_number(out, value);
}

/* Curves are for plotting: six digits are plenty. */
static void add_json_array(n2_text *out, const char *key, const double *v, size_t n) {
    n2_text_add(out, "\"%s\": [", key);
    for (size_t i = 0; i < n; i++)
        n2_text_add(out, isfinite(v[i]) ? "%s%.6g" : "%snull", i ? ", " : "", v[i]);
    n2_text_add(out, "]");
}

static void add_json_column(n2_text *out, const n2_gaussian_column *c) {
    n2_text_add(out, "\"kind\": \"%s\", ", n2_family_name(c->family));
    add_json_number(out, "M", c->magnitude);
}

static void add_json_row(n2_text *out, const n2_gaussian_setting *s, const n2_gaussian_result *r,
                         size_t c) {
    const n2_gaussian_score *score = &r->scores[c];
    n2_text_add(out, "{\"dim\": %zu, \"n\": %llu, ", s->dim, (unsigned long long)s->n);
    add_json_column(out, &s->columns[c]);
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"mean", score->mean},
        {"std", score->std},
        {"paper", s->columns[c].paper_mean},
        {"paper_std", s->columns[c].paper_std},
        {"gradient_error", score->gradient_error},
        {"runs", (double)r->runs_done},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        n2_text_add(out, ", ");
        add_json_number(out, numbers[i].key, numbers[i].value);
    }
    n2_text_add(out, "}");
}

static void add_json_rows(n2_text *out, const n2_gaussian_study *study) {
    const char *separator = "";
    n2_text_add(out, "\"rows\": [");
    for (size_t i = 0; i < study->n_settings; i++)
        for (size_t c = 0; c < study->settings[i].n_columns; c++) {
            n2_text_add(out, "%s\n    ", separator);
            add_json_row(out, &study->settings[i], &study->results[i], c);
            separator = ",";
        }
    n2_text_add(out, "\n  ]");
}

static void add_json_bias(n2_text *out, const n2_bias_curve *curve, size_t dim) {
    n2_text_add(out, "{\"where\": \"%s\", ", curve->where);
    add_json_array(out, "point", curve->point, dim);
    n2_text_add(out, ", ");
    add_json_number(out, "slope", curve->slope);
    n2_text_add(out, ", \"slope_from\": 10, \"slope_to\": 1000, ");
    add_json_array(out, "M", curve->magnitude, N2_BIAS_POINTS);
    n2_text_add(out, ", ");
    add_json_array(out, "squared", curve->squared, N2_BIAS_POINTS);
    n2_text_add(out, "}");
}

static void add_json_trajectory(n2_text *out, const n2_gaussian_column *c,
                                const n2_gaussian_path *path, size_t n, bool plane) {
    n2_text_add(out, "{");
    add_json_column(out, c);
    n2_text_add(out, ", ");
    add_json_array(out, "median", path->median, n);
    n2_text_add(out, ", ");
    add_json_array(out, "low", path->low, n);
    n2_text_add(out, ", ");
    add_json_array(out, "high", path->high, n);
    if (plane) {
        n2_text_add(out, ", ");
        add_json_array(out, "first_run_x", path->x, n);
        n2_text_add(out, ", ");
        add_json_array(out, "first_run_y", path->y, n);
    }
    n2_text_add(out, "}");
}

static void add_json_setting(n2_text *out, const n2_gaussian_setting *s,
                             const n2_gaussian_result *r, const n2_bias_curve *bias) {
    n2_text_add(out, "{\"dim\": %zu, \"n\": %llu, ", s->dim, (unsigned long long)s->n);
    add_json_array(out, "target", s->target, s->dim);
    n2_text_add(out, ", ");
    add_json_array(out, "start", s->start, s->dim);
    n2_text_add(out, ", ");
    add_json_number(out, "exact_mle", n2_gaussian_mle_score(s));
    n2_text_add(out, ",\n     \"bias\": [");
    for (int k = 0; k < N2_BIAS_CURVES; k++) {
        n2_text_add(out, k ? ",\n       " : "\n       ");
        add_json_bias(out, &bias[k], s->dim);
    }
    n2_text_add(out, "],\n     ");
    add_json_array(out, "step", r->step, r->n_points);
    n2_text_add(out, ",\n     \"distance\": [");
    for (size_t c = 0; c < s->n_columns; c++) {
        n2_text_add(out, c ? ",\n       " : "\n       ");
        add_json_trajectory(out, &s->columns[c], &r->paths[c], r->n_points, s->dim == 2);
    }
    n2_text_add(out, "]}");
}

static void add_json(n2_text *out, const n2_gaussian_study *study) {
    n2_text_add(out, "{\"study\": \"gaussian\", \"version\": \"%s\", \"interrupted\": %s,\n  ",
                n2ce_version(), study->interrupted ? "true" : "false");
    n2_text_add(out, "\"options\": ");
    n2_options_json(study->options, out);
    n2_text_add(out, ",\n  ");
    add_json_rows(out, study);
    n2_text_add(out, ",\n  \"bias_slope\": ");
    n2_text_add_number(out, study->bias[0].curves[0].slope);
    n2_text_add(out, ",\n  \"settings\": [");
    for (size_t i = 0; i < study->n_settings; i++) {
        n2_text_add(out, i ? ",\n    " : "\n    ");
        add_json_setting(out, &study->settings[i], &study->results[i], study->bias[i].curves);
    }
    n2_text_add(out, "\n  ]\n}\n");
}

/* ---- the rest ------------------------------------------------------------ */

static void add_brief(n2_text *out, const n2_gaussian_study *study) {
    for (size_t i = 0; i < study->n_settings; i++)
        for (size_t c = 0; c < study->settings[i].n_columns; c++) {
            char number[32];
            n2_text_add(out, "%s\n", n2_format_number(study->results[i].scores[c].mean, number));
        }
}

static void add_kept(n2_text *out, const n2_gaussian_study *study) {
    const n2_gaussian_setting *last = &study->settings[study->n_settings - 1];
    const n2_gaussian_result *result = &study->results[study->n_settings - 1];
    n2_text_add(out, "%llu of %llu runs of dim %zu, n = %llu",
                (unsigned long long)result->runs_done, (unsigned long long)last->runs, last->dim,
                (unsigned long long)last->n);
    if (study->n_settings > 1)
        n2_text_add(out, " and all of the %zu problem%s before it", study->n_settings - 1,
                    study->n_settings > 2 ? "s" : "");
    n2_text_add(out, "\n");
}

n2ce_status n2_gaussian_show(n2ce_ctx *ctx, const n2_gaussian_study *study, n2ce_answer *answer) {
    const struct {
        void (*add)(n2_text *, const n2_gaussian_study *);
        char **to;
    } forms[] = {
        {add_text, &answer->text},
        {add_json, &answer->json},
        {add_brief, &answer->brief},
        {add_kept, &answer->kept},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        n2_text out = n2_text_new(ctx);
        forms[i].add(&out, study);
        N2_TRY(n2_text_take(&out, forms[i].to));
    }
    return n2_gaussian_page(ctx, study, &answer->html);
}
