#define N2_INSIDE
#include "latent_vae.h"

static const double SLOPE = 0.2, LARGEST_ODDS = 10;

int64_t n2_latent_width(const n2_latent_layout *l) { return l->numbers + l->atoms + l->categories; }

static n2_tensor *same_category(n2_store *store, const n2_latent_layout *l) {
    n2_tensor *t = n2_store_add(store, "vae.same", n2_dims(l->categories, l->categories));
    if (!t) return NULL;
    float *x = t->data;
    for (int64_t i = 0; i < l->categories; i++)
        for (int64_t j = 0; j < l->categories; j++) *x++ = l->block[i] == l->block[j];
    return t;
}

n2_latent_vae n2_latent_vae_new(n2_parameters *p, const n2_latent_layout *layout, int64_t nz,
                                int64_t hidden) {
    n2_latent_vae vae = {.layout = *layout, .width = n2_latent_width(layout), .nz = nz};
    vae.encoder = n2_mlp_new(p, "enc", (int64_t[]){vae.width, hidden, hidden}, 3, SLOPE);
    vae.mean = n2_layer_new(p, "mean", hidden, nz);
    vae.logvar = n2_layer_new(p, "logvar", hidden, nz);
    vae.decoder = n2_mlp_new(p, "dec", (int64_t[]){nz, hidden, hidden, vae.width}, 4, SLOPE);
    if (layout->categories > 0) {
        vae.same = same_category(p->store, layout);
        if (!vae.same) p->failed = true;
    }
    return vae;
}

void n2_build_latent_encode(n2_graph *g, const n2_latent_vae *vae, n2_node x, n2_node *mean,
                            n2_node *logvar) {
    const n2_node h = n2g_lrelu(g, n2_mlp_apply(g, &vae->encoder, x), SLOPE);
    *mean = n2_layer_apply(g, &vae->mean, h);
    if (!logvar) return;
    const n2_node raw = n2_layer_apply(g, &vae->logvar, h);
    *logvar = n2g_minimum(g, n2g_maximum(g, raw, n2g_constant(g, -12)), n2g_constant(g, 5));
}

n2_node n2_build_latent_decode(n2_graph *g, const n2_latent_vae *vae, n2_node z) {
    const n2_node raw = n2_mlp_apply(g, &vae->decoder, z);
    const int64_t n = vae->layout.numbers, odds = vae->width - n;
    if (odds == 0) return n2g_tanh(g, raw);
    const n2_node bounded =
        n2g_scale(g, n2g_tanh(g, n2g_scale(g, n2g_slice(g, raw, 1, n, odds), 1 / LARGEST_ODDS)),
                  LARGEST_ODDS);
    if (n == 0) return bounded;
    return n2g_concat(g, n2g_tanh(g, n2g_slice(g, raw, 1, 0, n)), bounded, 1);
}

/* The parts of a row; N2_NONE where there is none. */
typedef struct row_parts {
    n2_node with_atom, plain, atoms, levels;
} row_parts;

static row_parts split(n2_graph *g, const n2_latent_vae *vae, n2_node x) {
    const n2_latent_layout *l = &vae->layout;
    row_parts p = {N2_NONE, N2_NONE, N2_NONE, N2_NONE};
    if (l->atoms) p.with_atom = n2g_slice(g, x, 1, 0, l->atoms);
    if (l->numbers > l->atoms) p.plain = n2g_slice(g, x, 1, l->atoms, l->numbers - l->atoms);
    if (l->atoms) p.atoms = n2g_slice(g, x, 1, l->numbers, l->atoms);
    if (l->categories) p.levels = n2g_slice(g, x, 1, l->numbers + l->atoms, l->categories);
    return p;
}

static n2_node append(n2_graph *g, n2_node row, n2_node part) {
    if (!part.id) return row;
    return row.id ? n2g_concat(g, row, part, 1) : part;
}

/* exp(log odds) and, for each level, their sum over its category. */
static n2_node category_sums(n2_graph *g, const n2_latent_vae *vae, n2_node odds) {
    return n2g_matmul(g, n2g_exp(g, odds), n2g_read(g, vae->same), false, false);
}

n2_node n2_build_latent_expected(n2_graph *g, const n2_latent_vae *vae, n2_node decoded) {
    row_parts p = split(g, vae, decoded);
    if (p.atoms.id) {
        p.atoms = n2g_sigmoid(g, p.atoms);
        p.with_atom = n2g_mul(g, p.with_atom, n2g_affine(g, p.atoms, -1, 1));
    }
    if (p.levels.id) p.levels = n2g_div(g, n2g_exp(g, p.levels), category_sums(g, vae, p.levels));
    return append(g, append(g, append(g, p.with_atom, p.plain), p.atoms), p.levels);
}

/* A row's sum, times a factor, added to what there is: [n x 1]. */
static n2_node plus(n2_graph *g, n2_node sum, n2_node x, double factor) {
    const n2_node rows = n2g_scale(g, n2g_sum(g, x, n2_axis(1)), factor);
    return sum.id ? n2g_add(g, sum, rows) : rows;
}

n2_node n2_build_latent_misfits(n2_graph *g, const n2_latent_vae *vae, n2_node decoded, n2_node x,
                                double sd) {
    if (!decoded.id || !x.id) return N2_NONE;
    const row_parts o = split(g, vae, decoded), t = split(g, vae, x);
    const double precision = 1 / (2 * sd * sd);
    n2_node loss = N2_NONE;
    if (o.plain.id) {
        const n2_node miss = n2g_sub(g, o.plain, t.plain);
        loss = plus(g, loss, n2g_mul(g, miss, miss), precision);
    }
    if (o.atoms.id) {
        const n2_node miss = n2g_sub(g, o.with_atom, t.with_atom);
        const n2_node there = n2g_affine(g, t.atoms, -1, 1); /* an atom has no number */
        loss = plus(g, loss, n2g_mul(g, there, n2g_mul(g, miss, miss)), precision);
        const n2_node wrong = n2g_sub(g, n2g_softplus(g, o.atoms), n2g_mul(g, t.atoms, o.atoms));
        loss = plus(g, loss, wrong, 1);
    }
    if (o.levels.id) {
        const n2_node log_sum = n2g_log(g, category_sums(g, vae, o.levels));
        const n2_node wrong = n2g_mul(g, t.levels, n2g_sub(g, log_sum, o.levels));
        loss = plus(g, loss, wrong, 1);
    }
    return loss;
}
