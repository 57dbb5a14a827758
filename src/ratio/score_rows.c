#include "score_rows.h"

#include "base/clock.h"
#include "base/numerics.h"

enum { READ_ROWS = 8192 };

/* A block of rows that is scored, where it is scored, and how long that took in all. */
typedef struct scoring {
    n2ce_model *m;
    n2_device_choice *choice;
    double *x, *f;
    size_t n;
    double seconds;
} scoring;

static n2ce_status move(n2ce_model *m, n2_device_choice *choice) {
    return n2_ratio_move(m->ratio, &m->record.used.critic, choice);
}

static n2ce_status score_block(scoring *s) {
    const double start = n2_seconds();
    n2ce_status status = n2_ratio_score(s->m->ratio, s->x, s->n, s->f);
    if (n2_choice_retreat(s->choice, s->m->ctx, status)) {
        N2_TRY(move(s->m, s->choice));
        status = n2_ratio_score(s->m->ratio, s->x, s->n, s->f);
    }
    s->seconds += n2_seconds() - start;
    return status;
}

/* The block once more, on this backend; the networks stay there. */
static n2ce_status time_block(void *user, const n2_backend *backend, double *seconds) {
    scoring *s = user;
    n2_device_choice choice = {.backend = backend};
    N2_TRY(move(s->m, &choice));
    N2_TRY(n2_ratio_score(s->m->ratio, s->x, s->n, s->f)); /* what is done once is done now */
    const double start = n2_seconds();
    N2_TRY(n2_ratio_score(s->m->ratio, s->x, s->n, s->f));
    *seconds = n2_seconds() - start;
    return N2CE_OK;
}

/* How many rows there are is not known until they are read: "auto" begins with the processor and
 * looks for something faster when that has been at work for a while. */
static n2ce_status consider(scoring *s) {
    static const double PATIENCE = 0.5;
    if (!s->choice->open || s->seconds < PATIENCE || s->n < READ_ROWS) return N2CE_OK;
    N2_TRY(n2_choice_settle(s->choice, s->m->ctx, N2_INFINITY, time_block, s));
    return move(s->m, s->choice);
}

n2ce_status n2_model_score_rows(n2ce_model *m, n2_reader *r, n2_device_choice *choice,
                                n2_scores_fn *take, void *user) {
    double f[READ_ROWS];
    scoring s = {.m = m, .choice = choice, .f = f, .n = 1};
    s.x = n2_realloc(m->ctx, NULL, READ_ROWS * m->cols, sizeof *s.x);
    n2ce_status status = s.x ? move(m, choice) : N2CE_ENOMEM;
    while (status == N2CE_OK && s.n > 0) {
        status = n2_reader_next(r, s.x, READ_ROWS, &s.n);
        if (status == N2CE_OK && s.n > 0 && m->ratio->critics > 0) status = consider(&s);
        if (status == N2CE_OK && s.n > 0) status = score_block(&s);
        if (status == N2CE_OK) status = take(user, f, s.n);
    }
    n2_free(m->ctx, s.x);
    return status;
}
