/* Draws of designs given a value: what the model says, without the search's choices. */
#include "base/random.h"
#include "latent_model.h"

#include <stdio.h>
#include <string.h>

enum { GROUP = 256, MOVES = 300, STREAM = 0x20000000 };

/* Particles on their way to one value. */
typedef struct draw {
    n2_latent *m;
    size_t n; /* particles */
    n2_latent_plan move, decode;
    n2_tensor *z;
    double target; /* standardised */
    double *from, *decoded, *decoded_from, *codes;
    float *coded, *uniform;
    n2_arena arena;
} draw;

static n2ce_status build(draw *d) {
    n2_store *store = d->m->store;
    char name[32];
    snprintf(name, sizeof name, "search.%zu", d->m->searches++);
    d->z = n2_store_add(store, name, n2_dims((int64_t)d->n, (int64_t)d->m->o.latent));
    if (!d->z) return N2CE_ENOMEM;
    N2_TRY(n2_latent_build_move(d->m, name, d->z, d->target, &d->move));
    return n2_latent_build_decode(d->m, d->z, &d->decode);
}

static n2ce_status make_room(draw *d) {
    const size_t columns = d->m->designs->space.n, width = d->m->code->width, n = d->n;
    d->from = n2_arena_alloc(&d->arena, n * columns, sizeof *d->from);
    d->decoded = n2_arena_alloc(&d->arena, n * width, sizeof *d->decoded);
    d->decoded_from = n2_arena_alloc(&d->arena, n * width, sizeof *d->decoded_from);
    d->codes = n2_arena_alloc(&d->arena, n * d->m->o.latent, sizeof *d->codes);
    d->coded = n2_arena_alloc(&d->arena, n * width, sizeof *d->coded);
    d->uniform = n2_arena_alloc(&d->arena, n * 2 * columns, sizeof *d->uniform);
    return d->from && d->decoded && d->decoded_from && d->codes && d->coded && d->uniform
               ? N2CE_OK
               : N2CE_ENOMEM;
}

static n2ce_status decode_into(draw *d, double *out) {
    N2_TRY(n2_plan_run(d->decode.plan));
    n2_plan_get(d->decode.plan, 0, out);
    return N2CE_OK;
}

/* From the codes of designs by chance, whatever they are worth. */
static n2ce_status set_out(draw *d, uint32_t group) {
    const n2_designs *known = d->m->designs;
    const size_t columns = known->space.n;
    const n2_stream chance = {d->m->o.seed, STREAM + 2 * group, 1};
    float *z = d->z->data;
    for (size_t i = 0; i < d->n; i++) {
        const size_t row = n2_random_below(chance, i, known->rows);
        memcpy(d->from + i * columns, known->x + row * columns, columns * sizeof(double));
        n2_latent_code_write(d->m->code, d->from + i * columns, d->coded + i * d->m->code->width);
    }
    N2_TRY(n2_latent_say(d->m, d->coded, d->n, &(n2_latent_words){.codes = d->codes}));
    for (size_t i = 0; i < d->n * d->m->o.latent; i++) z[i] = (float)d->codes[i];
    n2_tensor_push(d->m->store, d->z);
    return decode_into(d, d->decoded_from);
}

static n2ce_status run_group(draw *d, uint32_t group, double *x) {
    const size_t columns = d->m->designs->space.n, width = d->m->code->width;
    N2_TRY(make_room(d));
    N2_TRY(build(d));
    N2_TRY(set_out(d, group));
    if (n2_cancelled(d->m->ctx)) return N2CE_ECANCELED;
    N2_TRY(n2_plan_run_many(d->move.plan, MOVES));
    N2_TRY(decode_into(d, d->decoded));
    n2_fill_uniform((n2_stream){d->m->o.seed, STREAM + 2 * group + 1, 1}, 0, d->n * 2 * columns,
                    d->uniform);
    for (size_t i = 0; i < d->n; i++)
        n2_latent_code_read(d->m->code,
                            &(n2_latent_move){d->decoded + i * width, d->decoded_from + i * width,
                                              d->from + i * columns, d->uniform + i * 2 * columns},
                            1, x + i * columns);
    return N2CE_OK;
}

n2ce_status n2_latent_draw(n2_latent *m, double target, size_t rows, double *x) {
    const double y = n2_latent_scaled(m, target);
    n2ce_status status = N2CE_OK;
    for (uint32_t group = 0; group * GROUP < rows && status == N2CE_OK; group++) {
        const size_t left = rows - group * GROUP;
        draw d = {.m = m, .n = left < GROUP ? left : GROUP, .target = y};
        d.arena = n2_arena_new(m->ctx);
        status = run_group(&d, group, x + (size_t)group * GROUP * m->designs->space.n);
        n2_arena_free(&d.arena);
        n2_latent_plan_free(&d.move);
        n2_latent_plan_free(&d.decode);
    }
    return status;
}
