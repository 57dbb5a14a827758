/* The default recipe of pictures as a method of the study of anomalies. */
#include "anomaly_study.h"
#include "io/csv_writer.h"
#include "io/file.h"
#include "lebm/oddity.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- files of parts -------------------------------------------------------------------------- */

enum { COLUMNS = N2_ODDITY_PARTS + 1, NORMAL = 0, ODD = 1, HELD_OUT = 2 };

static void put_row(double *row, int kind, const double *parts) {
    row[0] = kind;
    memcpy(row + 1, parts, N2_ODDITY_PARTS * sizeof *row);
}

static void write_header(char *header, size_t size) {
    int at = snprintf(header, size, "kind");
    for (size_t k = 0; k < N2_ODDITY_PARTS; k++)
        at += snprintf(header + at, size - (size_t)at, ",%s", n2_oddity_part_names[k]);
    snprintf(header + at, size - (size_t)at, "\n");
}

/* Parts as one member has them, of the judged pictures and of those that it holds out. */
static n2ce_status keep_member(const n2_anomaly_job *job, n2_oddity *o, size_t member,
                               const n2_images *test) {
    const n2_anomaly_split *s = job->split;
    char name[64], header[256], path[PATH_MAX];
    size_t n_held_out;
    const double *held_out = n2_oddity_held_out(o, member, &n_held_out);
    double *parts = n2_arena_alloc(job->arena, s->n_test * N2_ODDITY_PARTS, sizeof *parts);
    double *table = n2_arena_alloc(job->arena, (s->n_test + n_held_out) * COLUMNS, sizeof *table);
    if (!parts || !table) return N2CE_ENOMEM;
    N2_TRY(n2_oddity_parts(o, member, test, parts));
    for (size_t i = 0; i < s->n_test; i++)
        put_row(table + i * COLUMNS, s->is_odd[i] ? ODD : NORMAL, parts + i * N2_ODDITY_PARTS);
    for (size_t i = 0; i < n_held_out; i++)
        put_row(table + (s->n_test + i) * COLUMNS, HELD_OUT, held_out + i * N2_ODDITY_PARTS);
    snprintf(name, sizeof name, "digit-%d-seed-%llu-member-%zu.csv", s->digit,
             (unsigned long long)job->seed, member);
    N2_TRY(n2_path_join(job->ctx, path, PATH_MAX, job->effort.keep, name));
    write_header(header, sizeof header);
    return n2_csv_write(job->ctx, path, header, table, s->n_test + n_held_out, COLUMNS, true);
}

/* ---- the method ------------------------------------------------------------------------------ */

static n2ce_status note_scores(const n2_anomaly_job *job, n2_oddity *o, const n2_images *test,
                               n2_anomaly_scores *out) {
    const size_t n = test->n;
    double *nats = n2_arena_alloc(job->arena, n * N2_ODDITY_PARTS, sizeof *nats);
    double *columns = n2_arena_alloc(job->arena, n * N2_ODDITY_PARTS, sizeof *columns);
    if (!nats || !columns) return N2CE_ENOMEM;
    N2_TRY(n2_oddity_nats(o, test, nats, NULL));
    for (size_t i = 0; i < n; i++) {
        out->score[i] = n2_oddity_score(nats + i * N2_ODDITY_PARTS);
        for (size_t k = 0; k < N2_ODDITY_PARTS; k++)
            columns[k * n + i] = nats[i * N2_ODDITY_PARTS + k];
    }
    for (size_t k = 0; k < N2_ODDITY_PARTS; k++)
        out->parts[k] = (n2_anomaly_part){n2_oddity_part_names[k], columns + k * n};
    out->n_parts = N2_ODDITY_PARTS;
    return N2CE_OK;
}

static n2_oddity_spec spec_of(const n2_anomaly_effort *e) {
    n2_oddity_spec spec = n2_oddity_defaults(n2_image_spec_named("mnist"));
    spec.width = (int64_t)e->width;
    if (e->steps) spec.vae_steps = e->steps;
    spec.steps = spec.vae_steps / 2;
    spec.weight = e->weight;
    spec.contrast_magnitude = e->magnitude;
    spec.members = e->members;
    return spec;
}

static n2ce_status score_with(const n2_anomaly_job *job, const n2_images *train,
                              const n2_images *test, n2_anomaly_scores *out) {
    const n2_oddity_spec spec = spec_of(&job->effort);
    n2_oddity *o;
    N2_TRY(n2_oddity_learn(job->ctx, &spec, train, job->seed, job->effort.choice, &o));
    n2ce_status status = note_scores(job, o, test, out);
    for (size_t k = 0; k < spec.members && job->effort.keep && status == N2CE_OK; k++)
        status = keep_member(job, o, k, test);
    n2_oddity_free(o);
    return status;
}

/* One autoencoder, and nothing beside it. */
static n2ce_status score_by_bound(const n2_anomaly_job *job, const n2_images *train,
                                  const n2_images *test, n2_anomaly_scores *out) {
    n2_oddity_spec spec = spec_of(&job->effort);
    double *parts = n2_arena_alloc(job->arena, test->n * N2_ODDITY_PARTS, sizeof *parts);
    n2_oddity *o;
    if (!parts) return N2CE_ENOMEM;
    spec.steps = 0;
    spec.members = 1;
    N2_TRY(n2_oddity_learn(job->ctx, &spec, train, job->seed, job->effort.choice, &o));
    const n2ce_status status = n2_oddity_parts(o, 0, test, parts);
    for (size_t i = 0; i < test->n; i++) out->score[i] = parts[i * N2_ODDITY_PARTS + N2_ODD_BOUND];
    n2_oddity_free(o);
    return status;
}

typedef n2ce_status score_pictures(const n2_anomaly_job *job, const n2_images *train,
                                   const n2_images *test, n2_anomaly_scores *out);

static n2ce_status run_on_pictures(const n2_anomaly_job *job, score_pictures *score,
                                   n2_anomaly_scores *out) {
    const n2_anomaly_split *s = job->split;
    n2_images *train, *test = NULL;
    N2_TRY(n2_images_pick(s->pictures, s->train, s->n_train, &train));
    n2ce_status status = n2_images_pick(s->pictures, s->test, s->n_test, &test);
    if (status == N2CE_OK) status = score(job, train, test, out);
    n2_images_free(train);
    n2_images_free(test);
    return status;
}

n2ce_status n2_anomaly_oddity(const n2_anomaly_job *job, n2_anomaly_scores *out) {
    return run_on_pictures(job, score_with, out);
}

n2ce_status n2_anomaly_bound(const n2_anomaly_job *job, n2_anomaly_scores *out) {
    return run_on_pictures(job, score_by_bound, out);
}
