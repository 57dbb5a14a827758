/* What the files of the critic share: critic.c evaluates, critic_train.c trains, critic_check.c
 * judges. */
#ifndef N2_CRITIC_PARTS_H
#define N2_CRITIC_PARTS_H

#include "critic.h"
#include "model/ratio_net.h"

typedef struct n2_critic_nets {
    n2_ratio_net net;
    n2_mlp phi, psi; /* with dx */
} n2_critic_nets;

struct n2_critic {
    n2ce_ctx *ctx;
    const n2_backend *backend;
    size_t d, dx, stages;
    n2_store *store;
    n2_parameters parameters;
    n2_critic_nets nets;
    n2_tensor *centre, *whiten, *basis, *inverse_var; /* of the shape, or NULL */
    n2_tensor *delta;                                 /* NULL too where it is 0 */
    /* Made when rows are scored for the first time. */
    n2_graph *evaluate;
    n2_plan *plan;
    n2_tensor *rows; /* what it reads */
    double *out;     /* what it says, for every row and stage, and then for every row */
};

/* A tensor with these values; NULL if memory is short. */
n2_tensor *n2_critic_table(n2_store *store, const char *name, size_t rows, size_t cols,
                           const double *values);

/* x and its distances from the Gaussians; x itself, if there are none. */
n2_node n2_critic_features(n2_graph *g, const n2_critic *c, n2_node x);

/* g(x, k) of rows at stages k, by these networks. x may be the features, which begin with it. */
n2_node n2_critic_learned(n2_graph *g, const n2_critic *c, const n2_critic_nets *nets, n2_node x,
                          n2_node features, n2_node stage);

/* ---- rows ---- */

/* Rows that may be used: all but the held-out ones, the last seventh for validation. */
typedef struct n2_row_set {
    n2_rows_view rows;
    size_t held, held_end, train, all; /* counts of usable rows */
} n2_row_set;

/* Usable row i: 0 .. train-1 to train on, train .. all-1 to validate. */
static inline const double *n2_row_at(const n2_row_set *s, size_t i) {
    return s->rows.x + (i < s->held ? i : i + s->held_end - s->held) * s->rows.d;
}

/* A row as seen from the base's centre; NULL is 0. */
static inline void n2_seen_from(const double *centre, const double *x, size_t d, float *out) {
    for (size_t j = 0; j < d; j++) out[j] = (float)(centre ? x[j] - centre[j] : x[j]);
}

/* ---- waymarks ---- */

/* Waymark k is keep[k] numerator + mix[k] denominator as seen from the base's centre: so means move
 * straight from one sample's to the other's. */
typedef struct n2_waymark_tables {
    n2_tensor *keep, *mix;
    n2_tensor *centre; /* NULL without a base */
} n2_waymark_tables;

/* Rows of waymark stage + side, of rows seen from the centre. */
n2_node n2_waymark_mix(n2_graph *g, const n2_waymark_tables *w, n2_node num, n2_node den,
                       n2_node stage, int64_t side);

/* What rows seen from the centre are. */
n2_node n2_waymark_row(n2_graph *g, const n2_waymark_tables *w, n2_node away);

/* ---- judging ---- */

/* Rows begin .. end-1 of a set. */
typedef struct n2_row_range {
    n2_row_set set;
    size_t begin, end;
} n2_row_range;

/* Waymark rows of pairs that training does not see, where the networks run, and the base's log
 * ratio at them: they do not change, so they are prepared once. */
typedef struct n2_check {
    const char *name; /* begins the names of its tensors */
    const n2_critic *c;
    const n2_critic_options *o;
    const n2_gauss *base;
    const n2_waymark_tables *waymarks;
    n2_row_range num, den; /* den: not with dx */
    bool prepared;
    n2_tensor *rows[2];                /* of the pairs; 0: denominator, 1: numerator */
    size_t n[2];                       /* rows a stage; 0: denominator, 1: numerator */
    double *base_f[2], *base_terms[2]; /* of all rows; the base's terms of the loss */
    double *f[2];                      /* of the networks; while it is judged, their terms */
    n2_graph *g;
    n2_plan *plan;
} n2_check;

/* What the host has to do for a check of which all before `prepared` is filled in: the pairs and
 * their base. Nothing, if it is done already. */
n2ce_status n2_check_prepare(n2_check *check);

/* The rest, where the networks run: the pairs' waymarks, to be judged by `nets`. Likewise. */
n2ce_status n2_check_compile(n2_check *check, const n2_critic_nets *nets);
void n2_check_free(n2_check *check); /* whatever was done or failed */

/* Loss with the present parameters, and by how much it is below the base's. */
typedef struct n2_verdict {
    double loss, gain, gain_var;
} n2_verdict;

n2ce_status n2_check_run(n2_check *check, n2_verdict *out);

/* The verdict on networks that are 0, after n2_check_prepare: no network is asked. */
n2ce_status n2_check_base(n2_check *check, n2_verdict *out);

#endif
