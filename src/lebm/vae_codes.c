/* Codes of pictures. */
#include "rewrite/rewrites.h"
#include "vae_pictures.h"

enum { ROWS = 500 }; /* pictures at once */

typedef struct coder {
    n2_lebm *m;
    const n2_images *pictures;
    n2_tensor *rows;
    n2_graph *g;
    n2_plan *plan;
    size_t first; /* picture of the batch */
    double *out;  /* [ROWS x 2 nz] */
} coder;

static n2ce_status build(coder *c, bool mirrored) {
    const n2_lebm_nets *nets = &c->m->nets;
    n2_node mean, logvar;
    n2_graph *g = c->g = n2_graph_new(c->m->store);
    if (!g) return N2CE_ENOMEM;
    const n2_node index = n2g_row_index(g, ROWS, 1, ROWS);
    const n2_node all = n2g_broadcast(g, n2g_constant(g, 1), n2_dims(ROWS));
    const n2_node x = n2_lebm_pick(g, nets->spec.net, c->rows, index, mirrored ? all : N2_NONE);
    n2_image_encode(g, &nets->encoder, x, &mean, &logvar);
    const n2_node both = n2g_concat(g, mean, logvar, 1);
    return n2_plan_compile(g, c->m->backend, &both, 1, &c->plan);
}

/* A batch is filled up with the last picture. */
static void write_rows(void *arg, size_t at, size_t n, void *out) {
    const coder *c = arg;
    const size_t last = c->pictures->n - 1;
    const n2_lebm_spec *spec = &c->m->nets.spec;
    const size_t numbers = (size_t)n2_lebm_numbers(spec->net);
    for (size_t k = 0; k < n; k++) {
        const size_t i = c->first + at + k;
        n2_lebm_picture_in(spec, c->pictures, i < last ? i : last, (float *)out + k * numbers);
    }
}

static n2ce_status run(coder *c, float *codes) {
    const size_t width = 2 * (size_t)c->m->nets.spec.nz;
    for (c->first = 0; c->first < c->pictures->n; c->first += ROWS) {
        const size_t left = c->pictures->n - c->first, n = left < ROWS ? left : ROWS;
        if (n2_cancelled(c->m->ctx)) return N2CE_ECANCELED;
        N2_TRY(n2_tensor_fill(c->m->store, c->rows, write_rows, c));
        N2_TRY(n2_plan_run(c->plan));
        n2_plan_get(c->plan, 0, c->out);
        for (size_t k = 0; k < n * width; k++) codes[c->first * width + k] = (float)c->out[k];
    }
    return N2CE_OK;
}

n2ce_status n2_lebm_codes(n2_lebm *m, const n2_images *pictures, bool mirrored, float *codes) {
    coder c = {
        .m = m, .pictures = pictures, .rows = n2_lebm_pictures_new(m, "encode.pictures", ROWS)};
    N2_TRY(n2_lebm_check_frame(m->ctx, &m->nets.spec, pictures));
    c.out = n2_alloc(m->ctx, ROWS * 2 * (size_t)m->nets.spec.nz, sizeof *c.out);
    n2ce_status status = c.rows && c.out ? build(&c, mirrored) : N2CE_ENOMEM;
    if (status == N2CE_OK) status = run(&c, codes);
    n2_plan_free(c.plan);
    n2_graph_free(c.g);
    n2_free(m->ctx, c.out);
    return status;
}
