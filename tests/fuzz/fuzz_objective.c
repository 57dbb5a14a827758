/* Fuzzes the objective: bytes become a family, a magnitude, stages and logits in
 * both precisions, and what n2ce.h promises about the result is checked.
 *
 * libFuzzer: -max_len=512
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "one_thread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 24, MOST_STAGES = 4 };
static const double untouched = -12345.5; /* what outputs hold before a call */

/* ---- from bytes to a problem --------------------------------------------- */

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

/* The next byte, 0 after the last. */
static unsigned take_byte(bytes *b) { return b->at < b->end ? *b->at++ : 0; }

/* A number of one of three kinds: everyday, of any size, or notable. */
static double take_number(bytes *b) {
    static const double notable[] = {0,    -0.0, 1,     -1,    0.5,      700,       709.5,  -745,
                                     750,  1e4,  -1e4,  1e12,  1e300,    1.7e308,   -1e308, 5e-324,
                                     88.5, 3e38, -3e38, 1e-38, HUGE_VAL, -HUGE_VAL, 0,      2};
    const unsigned kind = take_byte(b);
    if (kind < 128) return ((double)kind - 64) + (double)take_byte(b) / 256;
    if (kind == 255) return nan("");
    if (kind >= 192) return notable[kind % (sizeof notable / sizeof notable[0])];
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | take_byte(b);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float to_float(double x) {
    if (isnan(x)) return nanf("");
    if (x > 3.4028234e38) return HUGE_VALF;
    return x < -3.4028234e38 ? -HUGE_VALF : (float)x;
}

typedef struct problem {
    n2ce_objective objective;
    double weights[MOST_STAGES];
    uint32_t stage_num[MOST], stage_den[MOST];
    size_t n_num, n_den;
    bool wants_num, wants_den, wants_diagnostics; /* which outputs are asked for */
    double num[MOST], den[MOST];                  /* exact in single precision too if `single` */
    bool single;
} problem;

static void take_problem(bytes *b, problem *p) {
    *p = (problem){.objective = N2CE_OBJECTIVE_INIT};
    const unsigned flags = take_byte(b);
    p->wants_num = !(flags & 1);
    p->wants_den = !(flags & 2);
    p->wants_diagnostics = !(flags & 4);
    p->single = flags & 8;
    n2ce_objective *o = &p->objective;
    o->family = (n2ce_family)(take_byte(b) % 4); /* 3 is none */
    o->magnitude = take_number(b);
    o->regularisation = take_number(b);
    o->n_stages = take_byte(b) % (MOST_STAGES + 1);
    for (size_t k = 0; k < o->n_stages; k++) p->weights[k] = take_number(b);
    p->n_num = take_byte(b) % (MOST + 1);
    p->n_den = take_byte(b) % (MOST + 1);
    for (size_t i = 0; i < p->n_num; i++) p->num[i] = take_number(b);
    for (size_t i = 0; i < p->n_den; i++) p->den[i] = take_number(b);
    for (size_t i = 0; p->single && i < MOST; i++) {
        p->num[i] = (double)to_float(p->num[i]);
        p->den[i] = (double)to_float(p->den[i]);
    }
    if (o->n_stages == 0) return;
    for (size_t i = 0; i < p->n_num; i++) p->stage_num[i] = take_byte(b) % 16;
    for (size_t i = 0; i < p->n_den; i++) p->stage_den[i] = take_byte(b) % 16;
    if (!(flags & 16)) /* mostly in range */
        for (size_t i = 0; i < MOST; i++) {
            p->stage_num[i] %= (uint32_t)o->n_stages;
            p->stage_den[i] %= (uint32_t)o->n_stages;
        }
    o->stage_weights = flags & 32 ? NULL : p->weights;
    o->stage_num = flags & 64 ? NULL : p->stage_num;
    o->stage_den = flags & 128 ? NULL : p->stage_den;
}

/* ---- what must hold ------------------------------------------------------ */

static bool all_finite(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static bool all_untouched(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (x[i] != untouched) return false;
    return true;
}

/* What n2ce.h asks of the arguments, apart from finite logits. */
static bool is_valid(const problem *p) {
    const n2ce_objective *o = &p->objective;
    bool valid = (unsigned)o->family <= 2 && p->n_num > 0 && p->n_den > 0;
    valid &= o->family == N2CE_FAMILY_NWJ || (isfinite(o->magnitude) && o->magnitude >= 1);
    valid &= isfinite(o->regularisation) && o->regularisation >= 0;
    if (o->n_stages == 0) return valid;
    if (!o->stage_weights || !o->stage_num || !o->stage_den) return false;
    for (size_t k = 0; k < o->n_stages; k++) valid &= isfinite(p->weights[k]) && p->weights[k] >= 0;
    for (size_t i = 0; i < p->n_num; i++) valid &= p->stage_num[i] < o->n_stages;
    for (size_t i = 0; i < p->n_den; i++) valid &= p->stage_den[i] < o->n_stages;
    return valid;
}

typedef struct outputs {
    n2ce_status status;
    double loss, grad_num[MOST], grad_den[MOST];
    n2ce_diagnostics diagnostics;
} outputs;

static void check_diagnostics(const problem *p, const n2ce_diagnostics *d) {
    const double slack = 1e-9, n = (double)p->n_den;
    REQUIRE(d->ess_den >= 1 - slack && d->ess_den <= n * (1 + slack));
    REQUIRE(d->saturated_num >= 0 && d->saturated_num <= 1);
    REQUIRE(d->saturated_den >= 0 && d->saturated_den <= 1);
    REQUIRE(!(d->kl_bound > d->kl_cap)); /* may be NaN: diagnostics can overflow alone */
    REQUIRE(!(d->js_bound > d->js_cap));
}

static void check(const problem *p, const outputs *r, const char *message) {
    const bool finite = all_finite(p->num, p->n_num) && all_finite(p->den, p->n_den);
    const bool results_finite =
        isfinite(r->loss) && all_finite(r->grad_num, p->n_num) && all_finite(r->grad_den, p->n_den);
    REQUIRE((message[0] == '\0') == (r->status == N2CE_OK));
    switch (r->status) {
    case N2CE_OK:
        REQUIRE(is_valid(p) && finite && results_finite);
        REQUIRE(r->loss != untouched);
        if (p->wants_diagnostics) check_diagnostics(p, &r->diagnostics);
        break;
    case N2CE_EINVAL:
        REQUIRE(!is_valid(p));
        break;
    case N2CE_ENAN:
        REQUIRE(!finite && r->loss == untouched);
        REQUIRE(all_untouched(r->grad_num, p->n_num) && all_untouched(r->grad_den, p->n_den));
        REQUIRE(r->diagnostics.kl_cap == untouched);
        break;
    default: /* there is one more */
        REQUIRE(r->status == N2CE_ERANGE);
        REQUIRE(is_valid(p) && finite && !results_finite);
    }
}

/* ---- the two precisions -------------------------------------------------- */

static void clear(outputs *r) {
    r->loss = r->diagnostics.kl_cap = untouched;
    for (size_t i = 0; i < MOST; i++) r->grad_num[i] = r->grad_den[i] = untouched;
}

static void run_f64(const problem *p, outputs *r) {
    n2ce_ctx *ctx = one_thread();
    clear(r);
    const n2ce_logits_f64 logits = {.num = p->num,
                                    .n_num = p->n_num,
                                    .den = p->den,
                                    .n_den = p->n_den,
                                    .grad_num = p->wants_num ? r->grad_num : NULL,
                                    .grad_den = p->wants_den ? r->grad_den : NULL};
    r->status = n2ce_loss_f64(ctx, &p->objective, &logits, &r->loss,
                              p->wants_diagnostics ? &r->diagnostics : NULL);
    check(p, r, n2ce_errmsg(ctx));
    n2ce_ctx_free(ctx);
}

static void run_f32(const problem *p, outputs *r) {
    n2ce_ctx *ctx = one_thread();
    clear(r);
    float num[MOST], den[MOST], grad_num[MOST], grad_den[MOST];
    for (size_t i = 0; i < MOST; i++) {
        num[i] = (float)p->num[i];
        den[i] = (float)p->den[i];
        grad_num[i] = grad_den[i] = (float)untouched;
    }
    const n2ce_logits_f32 logits = {.num = num,
                                    .n_num = p->n_num,
                                    .den = den,
                                    .n_den = p->n_den,
                                    .grad_num = p->wants_num ? grad_num : NULL,
                                    .grad_den = p->wants_den ? grad_den : NULL};
    r->status = n2ce_loss_f32(ctx, &p->objective, &logits, &r->loss,
                              p->wants_diagnostics ? &r->diagnostics : NULL);
    for (size_t i = 0; i < MOST; i++) {
        r->grad_num[i] = (double)grad_num[i];
        r->grad_den[i] = (double)grad_den[i];
    }
    check(p, r, n2ce_errmsg(ctx));
    n2ce_ctx_free(ctx);
}

/* The arithmetic inside is double: same logits, same loss to the bit. Only a
 * gradient may overflow in single precision that does not in double. */
static void compare(const outputs *f64, const outputs *f32) {
    REQUIRE(f32->status == f64->status || (f64->status == N2CE_OK && f32->status == N2CE_ERANGE));
    REQUIRE(memcmp(&f64->loss, &f32->loss, sizeof f64->loss) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bytes b = {data, data + size};
    problem p;
    outputs f64, f32;
    take_problem(&b, &p);
    run_f64(&p, &f64);
    if (!p.single) return 0;
    run_f32(&p, &f32);
    compare(&f64, &f32);
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* Random bytes whose start is a valid objective more often than chance makes it. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    const size_t n = next_random(state) % room;
    for (size_t i = 0; i < n; i++) buffer[i] = (uint8_t)next_random(state);
    if (n < 8 || next_random(state) % 4 == 0) return n;
    buffer[0] &= 15;                                     /* everything given, stages in range */
    buffer[2] = (uint8_t)(65 + next_random(state) % 60); /* M from 1 to 60 */
    buffer[4] = (uint8_t)(64 + next_random(state) % 4);  /* lambda from 0 to 4 */
    buffer[6] = 0;                                       /* no stages */
    for (size_t i = 9; i < n; i += 2) buffer[i] &= (uint8_t)(next_random(state) % 4 ? 127 : 255);
    return n;
}

#endif
