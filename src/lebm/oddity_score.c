/* What a member says of pictures. */
#include "oddity_parts.h"

#include "metric/neighbours.h"
#include "rewrite/rewrites.h"
#include "vae_pictures.h"

#include <math.h>

enum { NEIGHBOURS = 5 };

/* ---- the plan ---- */

static n2_node sum_of_pixels(n2_graph *g, n2_node x) {
    if (!x.id) return N2_NONE;
    const n2_node sum = n2g_sum(g, x, n2_axis(1) | n2_axis(2) | n2_axis(3));
    return n2g_reshape(g, sum, n2_dims(n2_shape_at(g, x).dim[0], 1));
}

/* KL(N(mean, exp(logvar)) || N(0, I)) of each row. */
static n2_node divergence_of(n2_graph *g, n2_node mean, n2_node logvar) {
    const n2_node spread = n2g_sub(g, n2g_exp(g, logvar), n2g_affine(g, logvar, 1, 1));
    return n2g_scale(g, n2g_sum(g, n2g_add(g, n2g_mul(g, mean, mean), spread), n2_axis(1)), 0.5);
}

static void build_facts(n2_oddity_member *m, n2_graph *g) {
    const n2_node x = n2g_read(g, m->asked);
    n2_node code, logvar;
    n2_image_encode(g, &m->nets.encoder, x, &code, &logvar);
    const n2_node made = n2_image_decode(g, &m->nets.decoder, code), miss = n2g_sub(g, x, made);
    const n2_node squares = n2g_mul(g, miss, miss), log_variance = n2_oddity_variance(g, m, code);
    m->result[N2_FACT_ERROR] = sum_of_pixels(g, squares);
    m->result[N2_FACT_EXPECTED] = sum_of_pixels(g, n2g_exp(g, log_variance));
    m->result[N2_FACT_PLACE] = n2g_neg(g, n2_prior_log_density(g, code, &m->nets.prior));
    m->result[N2_FACT_CONTRAST] = n2g_neg(g, n2_oddity_critic(g, m, made));
    m->result[N2_FACT_DIVERGENCE] = divergence_of(g, code, logvar);
    m->result[N2_ODDITY_FACTS] = code;
}

n2ce_status n2_oddity_member_compile(n2_oddity_member *m, const n2_backend *backend) {
    n2_plan_free(m->plan);
    m->plan = NULL;
    if (!m->graph) {
        m->graph = n2_graph_new(m->store);
        if (!m->graph) return N2CE_ENOMEM;
        build_facts(m, m->graph);
    }
    return n2_plan_compile(m->graph, backend, m->result, N2_ODDITY_FACTS + 1, &m->plan);
}

/* ---- asking it ---- */

void n2_oddity_pixels(const n2_oddity_member *m, const n2_images *pictures, const size_t *numbers,
                      size_t n, float *out) {
    const n2_lebm_spec *spec = &m->nets.spec;
    const size_t size = (size_t)n2_lebm_numbers(spec->net);
    for (size_t i = 0; i < n; i++) n2_lebm_picture_in(spec, pictures, numbers[i], out + i * size);
}

/* ln of the mean distance to the nearest codes, as part N2_ODD_NEIGHBOURS. */
static n2ce_status ask_neighbours(const n2_oddity_member *m, const float *codes, size_t n,
                                  n2_arena *arena, double *parts) {
    const size_t nz = (size_t)m->spec.nz;
    const n2_feature_rows rows = {n, nz, codes}, known = {m->n_codes, nz, m->codes};
    double *squares = n2_arena_alloc(arena, n * NEIGHBOURS, sizeof *squares);
    n2_packed_rows of, among;
    if (!squares) return N2CE_ENOMEM;
    N2_TRY(n2_pack_rows(arena, &rows, n, &of));
    N2_TRY(n2_pack_rows(arena, &known, m->n_codes, &among));
    N2_TRY(n2_nearest_squares(m->ctx, &of, &among, NEIGHBOURS, squares));
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < NEIGHBOURS; k++) sum += sqrt(fmax(squares[i * NEIGHBOURS + k], 0));
        parts[i * N2_ODDITY_PARTS + N2_ODD_NEIGHBOURS] = log(sum / NEIGHBOURS + 1e-6);
    }
    return N2CE_OK;
}

static void note_facts(const n2_oddity_spec *spec, const double facts[N2_ODDITY_FACTS],
                       double *parts) {
    const double error = log(facts[N2_FACT_ERROR] + 1e-6);
    parts[N2_ODD_ERROR] = error;
    parts[N2_ODD_SURPRISE] = error - log(facts[N2_FACT_EXPECTED] + 1e-6);
    parts[N2_ODD_PLACE] = facts[N2_FACT_PLACE];
    parts[N2_ODD_NEIGHBOURS] = (double)NAN;
    parts[N2_ODD_CONTRAST] = facts[N2_FACT_CONTRAST];
    parts[N2_ODD_BOUND] = spec->weight * facts[N2_FACT_ERROR] + facts[N2_FACT_DIVERGENCE];
}

/* Pictures first .. first + n - 1 of a list; n is no more than the plan takes. */
static n2ce_status ask_some(n2_oddity_member *m, const n2_images *pictures, const size_t *numbers,
                            size_t n, double *values, double *parts, float *codes) {
    const size_t asked = (size_t)m->asked->shape.dim[0], nz = (size_t)m->spec.nz;
    n2_oddity_pixels(m, pictures, numbers, n, m->asked->data);
    n2_tensor_push(m->store, m->asked);
    N2_TRY(n2_plan_run(m->plan));
    for (size_t k = 0; k < N2_ODDITY_FACTS; k++) n2_plan_get(m->plan, k, values + k * asked);
    for (size_t i = 0; i < n; i++) {
        double facts[N2_ODDITY_FACTS];
        for (size_t k = 0; k < N2_ODDITY_FACTS; k++) facts[k] = values[k * asked + i];
        note_facts(&m->spec, facts, parts + i * N2_ODDITY_PARTS);
    }
    n2_plan_get(m->plan, N2_ODDITY_FACTS, values);
    for (size_t i = 0; i < n * nz; i++) codes[i] = (float)values[i];
    return N2CE_OK;
}

n2ce_status n2_oddity_member_ask(n2_oddity_member *m, const n2_images *pictures,
                                 const size_t *numbers, size_t n, double *parts, float *codes) {
    n2_arena arena = n2_arena_new(m->ctx);
    const size_t asked = (size_t)m->asked->shape.dim[0], nz = (size_t)m->spec.nz;
    const size_t most = nz > N2_ODDITY_FACTS ? nz : N2_ODDITY_FACTS;
    double *values = n2_arena_alloc(&arena, most * asked, sizeof *values);
    float *own = codes ? codes : n2_arena_alloc(&arena, n * nz, sizeof *own);
    n2ce_status status = values && own ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < n && status == N2CE_OK; i += asked) {
        const size_t some = n - i < asked ? n - i : asked;
        status = ask_some(m, pictures, numbers + i, some, values, parts + i * N2_ODDITY_PARTS,
                          own + i * nz);
    }
    if (status == N2CE_OK && m->codes) status = ask_neighbours(m, own, n, &arena, parts);
    n2_arena_free(&arena);
    return status;
}
