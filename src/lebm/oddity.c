/* Several members, and what is usual for each. */
#include "oddity.h"

#include "oddity_parts.h"
#include "vae_pictures.h"

#include <stdlib.h>

enum { LEAST_PICTURES = 100, HELD_OUT = 10 /* one of so many */ };

const char *const n2_oddity_part_names[N2_ODDITY_PARTS] = {"error",      "surprise", "place",
                                                           "neighbours", "contrast", "bound"};

n2_oddity_spec n2_oddity_defaults(const n2_image_spec *net) {
    return (n2_oddity_spec){.net = net,
                            .nz = net->channels == 1 ? 8 : 32,
                            .width = 32,
                            .weight = 2,
                            .vae_steps = 4000,
                            .steps = 2000,
                            .batch = 256,
                            .vae_rate = 6e-4,
                            .rate = 6e-4,
                            .contrast_magnitude = 1,
                            .members = 3};
}

double n2_oddity_score(const double nats[N2_ODDITY_PARTS]) {
    return nats[N2_ODD_ERROR] + nats[N2_ODD_SURPRISE] / 2 +
           (nats[N2_ODD_PLACE] + nats[N2_ODD_NEIGHBOURS]) / 2 + nats[N2_ODD_CONTRAST];
}

/* ---- learning ---- */

/* Which of the normal pictures a member trains on, and which it holds out: another tenth each. */
typedef struct deal {
    size_t *train, *held_out, n_train, n_held_out;
} deal;

static n2ce_status deal_pictures(n2_arena *arena, size_t n, size_t member, deal *out) {
    *out = (deal){.train = n2_arena_alloc(arena, n, sizeof(size_t)),
                  .held_out = n2_arena_alloc(arena, n, sizeof(size_t))};
    if (!out->train || !out->held_out) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (i % HELD_OUT == member % HELD_OUT)
            out->held_out[out->n_held_out++] = i;
        else
            out->train[out->n_train++] = i;
    return N2CE_OK;
}

static n2ce_status note_codes(n2_oddity_member *m, const n2_images *normal, const deal *d,
                              n2_arena *scratch) {
    double *parts = n2_arena_alloc(scratch, d->n_train * N2_ODDITY_PARTS, sizeof *parts);
    float *codes = n2_arena_alloc(&m->arena, d->n_train * (size_t)m->spec.nz, sizeof *codes);
    if (!parts || !codes) return N2CE_ENOMEM;
    N2_TRY(n2_oddity_member_ask(m, normal, d->train, d->n_train, parts, codes));
    m->codes = codes;
    m->n_codes = d->n_train;
    return N2CE_OK;
}

/* Of those held out the first, third, ... make the tails, */
static n2ce_status note_tails(n2_oddity_member *m) {
    const size_t n = (m->n_held_out + 1) / 2;
    double *column = n2_arena_alloc(&m->arena, n, sizeof *column);
    if (!column) return N2CE_ENOMEM;
    for (size_t k = 0; k < N2_ODDITY_PARTS; k++) {
        for (size_t i = 0; i < n; i++) column[i] = m->held_out[2 * i * N2_ODDITY_PARTS + k];
        N2_TRY(n2_tail_new(m->ctx, column, n, &m->tails[k]));
    }
    return N2CE_OK;
}

static double score_by(const n2_oddity_member *m, const double *parts) {
    double nats[N2_ODDITY_PARTS];
    for (size_t k = 0; k < N2_ODDITY_PARTS; k++) nats[k] = n2_tail_at(&m->tails[k], parts[k]);
    return n2_oddity_score(nats);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* the others are ranked by them: as new pictures are, which had no part in the tails either. */
static void rank_held_out(n2_oddity *o, const n2_oddity_member *m) {
    for (size_t i = 1; i < m->n_held_out; i += 2)
        o->ranked[o->n_ranked++] = score_by(m, m->held_out + i * N2_ODDITY_PARTS);
}

static n2ce_status note_usual(n2_oddity_member *m, const n2_images *normal, const deal *d) {
    m->n_held_out = d->n_held_out;
    m->held_out = n2_arena_alloc(&m->arena, d->n_held_out * N2_ODDITY_PARTS, sizeof(double));
    if (!m->held_out) return N2CE_ENOMEM;
    return n2_oddity_member_ask(m, normal, d->held_out, d->n_held_out, m->held_out, NULL);
}

static n2ce_status learn_member(n2_oddity_member *m, const n2_images *normal, const deal *d,
                                n2_device_choice *choice, n2_arena *scratch) {
    n2_oddity_pixels(m, normal, d->train, d->n_train, m->pictures->data);
    n2_tensor_push(m->store, m->pictures);
    N2_TRY(n2_oddity_member_train(m, choice));
    N2_TRY(note_codes(m, normal, d, scratch));
    return note_usual(m, normal, d);
}

static n2ce_status learn_all(n2_oddity *o, const n2_oddity_spec *spec, const n2_images *normal,
                             uint64_t seed, n2_device_choice *choice) {
    const n2_lebm_frame frame = {normal->height, normal->width, normal->channels};
    n2ce_status status = N2CE_OK;
    for (; o->n < spec->members && status == N2CE_OK; o->n++) {
        n2_arena scratch = n2_arena_new(o->ctx);
        n2_oddity_member *m = &o->members[o->n];
        deal d;
        status = deal_pictures(&scratch, normal->n, o->n, &d);
        if (status == N2CE_OK)
            status = n2_oddity_member_open(o->ctx, spec, (seed * spec->members + o->n) * 10, frame,
                                           d.n_train, m);
        if (status == N2CE_OK) status = learn_member(m, normal, &d, choice, &scratch);
        n2_arena_free(&scratch);
    }
    return status;
}

static n2ce_status check_normal(n2ce_ctx *ctx, const n2_image_spec *net, const n2_images *p) {
    const size_t side = (size_t)net->side, channels = (size_t)net->channels;
    if (p->height > side || p->width > side || p->channels > channels)
        return n2_fail(
            ctx, N2CE_EDATA,
            "The pictures are %zu x %zu with %zu channels; the network takes up to %zu x "
            "%zu with %zu.",
            p->height, p->width, p->channels, side, side, channels);
    if (p->n >= LEAST_PICTURES) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDATA,
                   "There are %zu normal pictures; at least %d are needed to learn what is usual.",
                   p->n, (int)LEAST_PICTURES);
}

n2ce_status n2_oddity_calibrate(n2_oddity *o) {
    size_t n = 0;
    for (size_t k = 0; k < o->n; k++) N2_TRY(note_tails(&o->members[k]));
    for (size_t k = 0; k < o->n; k++) n += o->members[k].n_held_out / 2;
    o->ranked = n2_alloc(o->ctx, n, sizeof *o->ranked);
    if (!o->ranked) return N2CE_ENOMEM;
    for (size_t k = 0; k < o->n; k++) rank_held_out(o, &o->members[k]);
    qsort(o->ranked, n, sizeof *o->ranked, by_value);
    return N2CE_OK;
}

n2ce_status n2_oddity_new(n2ce_ctx *ctx, size_t members, n2_oddity **out) {
    n2_oddity *o = n2_alloc(ctx, 1, sizeof *o);
    *out = NULL;
    if (!o) return N2CE_ENOMEM;
    o->ctx = ctx;
    o->members = n2_alloc(ctx, members, sizeof *o->members);
    if (!o->members) {
        n2_oddity_free(o);
        return N2CE_ENOMEM;
    }
    *out = o;
    return N2CE_OK;
}

n2ce_status n2_oddity_learn(n2ce_ctx *ctx, const n2_oddity_spec *spec, const n2_images *normal,
                            uint64_t seed, n2_device_choice *choice, n2_oddity **out) {
    *out = NULL;
    N2_TRY(check_normal(ctx, spec->net, normal));
    N2_TRY(n2_oddity_new(ctx, spec->members, out));
    n2ce_status status = learn_all(*out, spec, normal, seed, choice);
    if (status == N2CE_OK) status = n2_oddity_calibrate(*out);
    if (status == N2CE_OK) return N2CE_OK;
    n2_oddity_free(*out);
    *out = NULL;
    return status;
}

void n2_oddity_free(n2_oddity *o) {
    if (!o) return;
    for (size_t i = 0; i < o->n; i++) n2_oddity_member_close(&o->members[i]);
    n2_free(o->ctx, o->members);
    n2_free(o->ctx, o->ranked);
    n2_free(o->ctx, o);
}

/* ---- asking ---- */

n2ce_status n2_oddity_parts(n2_oddity *o, size_t member, const n2_images *pictures, double *parts) {
    n2_oddity_member *m = &o->members[member];
    N2_TRY(n2_lebm_check_frame(o->ctx, &m->nets.spec, pictures));
    size_t *all = n2_alloc(o->ctx, pictures->n, sizeof *all);
    if (!all) return N2CE_ENOMEM;
    for (size_t i = 0; i < pictures->n; i++) all[i] = i;
    const n2ce_status status = n2_oddity_member_ask(m, pictures, all, pictures->n, parts, NULL);
    n2_free(o->ctx, all);
    return status;
}

static void add_nats(const n2_oddity *o, size_t member, const double *parts, size_t n,
                     double *nats) {
    for (size_t i = 0; i < n * N2_ODDITY_PARTS; i++) {
        const n2_tail *tail = &o->members[member].tails[i % N2_ODDITY_PARTS];
        nats[i] += n2_tail_at(tail, parts[i]) / (double)o->n;
    }
}

n2ce_status n2_oddity_nats(n2_oddity *o, const n2_images *pictures, double *nats, double *scores) {
    const size_t n = pictures->n, numbers = n * N2_ODDITY_PARTS;
    double *parts = n2_alloc(o->ctx, numbers, sizeof *parts);
    n2ce_status status = parts ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < numbers; i++) nats[i] = 0;
    for (size_t k = 0; k < o->n && status == N2CE_OK; k++) {
        status = n2_oddity_parts(o, k, pictures, parts);
        if (status != N2CE_OK) break;
        add_nats(o, k, parts, n, nats);
        for (size_t i = 0; scores && i < n; i++)
            scores[i * o->n + k] = score_by(&o->members[k], parts + i * N2_ODDITY_PARTS);
    }
    n2_free(o->ctx, parts);
    return status;
}

const double *n2_oddity_held_out(const n2_oddity *o, size_t member, size_t *n) {
    *n = o->members[member].n_held_out;
    return o->members[member].held_out;
}

const double *n2_oddity_ranked(const n2_oddity *o, size_t *n) {
    *n = o->n_ranked;
    return o->ranked;
}

n2_lebm_frame n2_oddity_frame(const n2_oddity *o) { return o->members[0].nets.spec.frame; }

size_t n2_oddity_member_count(const n2_oddity *o) { return o->n; }
