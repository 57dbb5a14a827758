/* The third part of the value: a Gaussian process beside networks and trees, of which each member
 * has a draw of its own. Where rows are few and
 * the truth is smooth it is the best of the three; rows that none of them has seen tell. */
#include "gauss_process.h"
#include "latent_model.h"

#include <math.h>

static const double LEAST_GAIN = 0.02; /* of the squared error */
enum { WIDEST = 256 };

n2ce_status n2_latent_ask_process(const n2_latent *m, const float *rows, size_t n,
                                  double *members) {
    const size_t e = m->o.members;
    const double share = m->record.process_share;
    if (!(share > 0)) return N2CE_OK;
    double *said = n2_alloc(m->ctx, n * (1 + e), sizeof *said), *apart = said + n;
    if (!said) return N2CE_ENOMEM;
    const n2ce_status status = n2_gauss_process_ask(m->process, rows, n, said, apart);
    for (size_t i = 0; i < n * e && status == N2CE_OK; i++)
        members[i] += share * (said[i / e] + apart[i] - members[i]);
    n2_free(m->ctx, said);
    return status;
}

/* The member that has not seen row i. */
static size_t member_without(const n2_latent *m, size_t i) {
    for (size_t e = 0; e < m->o.members; e++) {
        int64_t first, n;
        n2_latent_fold(m, e, &first, &n);
        if ((int64_t)i < first + n) return e;
    }
    return 0;
}

/* The share of least squared error on rows that were left out, or none where that is hardly less.
 */
static void settle(n2_latent *m, const double *members) {
    const size_t n = n2_gauss_process_rows(m->process), e = m->o.members;
    const double *left = n2_gauss_process_left_out(m->process);
    const float *y = m->y->data;
    double without = 0, both = 0, apart = 0;
    for (size_t i = 0; i < n; i++) {
        const double said = members[i * e + member_without(m, i)], by = left[i] - said;
        const double miss = (double)y[i] - said;
        without += miss * miss;
        both += miss * by;
        apart += by * by;
    }
    const double share = apart > 0 ? fmin(fmax(both / apart, 0), 1) : 0;
    const double gain = share * (2 * both - share * apart);
    if (!(gain > LEAST_GAIN * without)) return;
    m->record.process_share = share;
    m->record.r2 = 1 - (1 - m->record.r2) * (without - gain) / without;
}

n2ce_status n2_latent_fit_process(n2_latent *m) {
    const size_t width = m->code->width, e = m->o.members;
    m->record.process_share = 0; /* so that the others speak alone */
    if (width > WIDEST || (m->o.like && !(m->o.like->record.process_share > 0))) return N2CE_OK;
    N2_TRY(n2_gauss_process_fit(m->ctx, m->x->data, m->y->data, m->designs->rows, width,
                                m->o.like ? m->o.like->process : NULL, &m->process));
    N2_TRY(n2_gauss_process_draw(m->process, m->o.seed, e));
    const size_t n = n2_gauss_process_rows(m->process);
    double *members = n2_alloc(m->ctx, n * e, sizeof *members);
    n2ce_status status = members ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK)
        status = n2_latent_say(m, m->x->data, n, &(n2_latent_words){.members = members});
    if (status == N2CE_OK) settle(m, members);
    n2_free(m->ctx, members);
    return status;
}
