/* The other half of the value: each member has a forest beside its network, grown on the same
 * rows. Trees see thresholds and combinations that a network smooths over, networks see slopes
 * beyond the data that no tree does; what each is worth, rows that neither has seen tell. */
#include "base/numerics.h"
#include "latent_model.h"

#include <math.h>
#include <string.h>

static const double LEAST_GAIN = 0.02; /* of the squared error */
enum { TREES = 20, DEPTH = 64, WIDEST = 512, MOST_NUMBERS = 1 << 22 };

/* Rows of a member, in doubles: all but its fold, or every so-manieth of them. */
typedef struct lesson {
    double *x, *y;
    size_t rows;
} lesson;

static size_t stride_of(size_t rows, size_t width) {
    const size_t most = MOST_NUMBERS / width < UINT16_MAX ? MOST_NUMBERS / width : UINT16_MAX;
    return (rows + most - 1) / most;
}

static n2ce_status take_rows(const n2_latent *m, size_t e, lesson *out) {
    const size_t n = m->designs->rows, width = m->code->width, stride = stride_of(n, width);
    const float *x = m->x->data, *y = m->y->data;
    int64_t first, held;
    n2_latent_fold(m, e, &first, &held);
    out->x = n2_alloc(m->ctx, (n / stride + 1) * (width + 1), sizeof *out->x);
    if (!out->x) return N2CE_ENOMEM;
    out->y = out->x + (n / stride + 1) * width;
    out->rows = 0;
    for (size_t i = 0; i < n; i += stride) {
        if ((int64_t)i >= first && (int64_t)i < first + held) continue;
        for (size_t j = 0; j < width; j++) out->x[out->rows * width + j] = (double)x[i * width + j];
        out->y[out->rows++] = (double)y[i];
    }
    return N2CE_OK;
}

static n2ce_status grow(n2_latent *m, size_t e) {
    const n2_forest_options o = {TREES, DEPTH, m->o.seed * N2_LATENT_MEMBERS_MAX + e};
    lesson l = {0};
    n2ce_status status = n2_cancelled(m->ctx) ? N2CE_ECANCELED : take_rows(m, e, &l);
    if (status == N2CE_OK)
        status = n2_forest_fit(m->ctx, l.x, l.y, l.rows, m->code->width, &o, &m->forest[e]);
    n2_free(m->ctx, l.x);
    return status;
}

/* What the forest of a member says of coded rows. */
static n2ce_status ask(const n2_latent *m, size_t e, const float *rows, size_t n, double *out) {
    const size_t width = m->code->width;
    double *x = n2_alloc(m->ctx, n * width, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    for (size_t i = 0; i < n * width; i++) x[i] = (double)rows[i];
    const n2ce_status status = n2_forest_predict(m->forest[e], x, n, out);
    n2_free(m->ctx, x);
    return status;
}

n2ce_status n2_latent_ask_forests(const n2_latent *m, const float *rows, size_t n,
                                  double *members) {
    const size_t e = m->o.members;
    const double share = m->record.forest_share;
    if (!(share > 0)) return N2CE_OK;
    double *said = n2_alloc(m->ctx, n, sizeof *said);
    n2ce_status status = said ? N2CE_OK : N2CE_ENOMEM;
    for (size_t k = 0; k < e && status == N2CE_OK; k++) {
        status = ask(m, k, rows, n, said);
        for (size_t i = 0; i < n && status == N2CE_OK; i++)
            members[i * e + k] += share * (said[i] - members[i * e + k]);
    }
    n2_free(m->ctx, said);
    return status;
}

/* Sums over held-out rows, for the share of least squared error. */
typedef struct contest {
    double network, both, forest; /* of (y - network)^2, of its product with, and of
                                   * (forest - network)^2 */
    double rows;
} contest;

/* The rows of a member's fold: none of its networks and trees has seen them. */
static n2ce_status compete(n2_latent *m, size_t e, contest *c) {
    const size_t members = m->o.members, width = m->code->width;
    int64_t first, held;
    n2_latent_fold(m, e, &first, &held);
    const size_t n = (size_t)held;
    const float *x = (const float *)m->x->data + (size_t)first * width, *y = m->y->data;
    double *networks = n2_alloc(m->ctx, n * (members + 1), sizeof *networks);
    n2ce_status status = networks ? N2CE_OK : N2CE_ENOMEM;
    double *forest = networks + n * members;
    if (status == N2CE_OK) status = n2_latent_say(m, x, n, &(n2_latent_words){.members = networks});
    if (status == N2CE_OK) status = ask(m, e, x, n, forest);
    for (size_t i = 0; i < n && status == N2CE_OK; i++) {
        const double network = networks[i * members + e];
        const double miss = (double)y[(size_t)first + i] - network, other = forest[i] - network;
        c->network += miss * miss;
        c->both += miss * other;
        c->forest += other * other;
    }
    c->rows += (double)n;
    n2_free(m->ctx, networks);
    return status;
}

/* The share of least error, or none where that is hardly less. */
static void settle(n2_latent_record *r, const contest *c) {
    const double share = c->forest > 0 ? fmin(fmax(c->both / c->forest, 0), 1) : 0;
    const double gain = share * (2 * c->both - share * c->forest);
    if (!(gain > LEAST_GAIN * c->network)) return;
    r->forest_share = share;
    r->r2 = 1 - (c->network - gain) / c->rows;
}

n2ce_status n2_latent_fit_forests(n2_latent *m) {
    contest c = {0};
    m->record.forest_share = 0; /* so that networks speak alone */
    if (m->code->width > WIDEST || (m->o.like && !(m->o.like->record.forest_share > 0)))
        return N2CE_OK;
    N2_TRY(n2_tensor_pull(m->store, m->x));
    N2_TRY(n2_tensor_pull(m->store, m->y));
    for (size_t e = 0; e < m->o.members; e++) {
        N2_TRY(grow(m, e));
        N2_TRY(compete(m, e, &c));
    }
    settle(&m->record, &c);
    return N2CE_OK;
}

void n2_latent_free_forests(n2_latent *m) {
    for (size_t e = 0; e < N2_LATENT_MEMBERS_MAX; e++) n2_forest_free(m->forest[e]);
}
