/* Fused segments: jobs of a chain that threads do without waiting for one another (job.h). */
#include "cuda/runtime/queue.h"
#include "jobs.h"

typedef struct segment {
    noted *list[CHAIN_JOBS];
    int n, n_asks, n_slots;
    int n_looks; /* of the asks, before the others: rows of tables */
} segment;

static bool is_function(const job *j) { return j->kind == JOB_UNARY || j->kind == JOB_BINARY; }
static int operands_of(const job *j) { return j->kind == JOB_BINARY ? 2 : 1; }

/* Whether a thread has one element of it, or four side by side, and finds them by one division. */
static bool is_simple(const job *j) {
    const bool moves = j->kind == JOB_COPY || j->kind == JOB_GATHER;
    if (!is_function(j) && !moves) return false;
    if (j->n < 2 || job_share(j->n) > JOB_ELEMENTS) return false;
    const bool one = j->n <= JOB_THREADS || job_share(j->n) == JOB_THREADS;
    return (one || j->vec4) && j->loops.rank <= 2 && j->loops.step[0][0] <= 1;
}

/* Without the slot, and without the job that knows the index. Operands that go along, or are one
 * number, look the same whatever the other operand does. */
static job_ask ask_of(const job *j, int operand) {
    const job_loops *l = &j->loops;
    const bool along = n2_goes_along(j, operand), gather = j->kind == JOB_GATHER;
    const bool rows = gather || (!along && l->rank == 2);
    const job_divisor width = rows ? l->length[0] : job_divide_by((uint32_t)j->n);
    job_ask a = {};
    a.at = j->in[operand];
    a.by = width.by;
    a.scale = width.scale;
    a.shift = (uint8_t)width.shift;
    a.along = gather || along || l->step[operand][0] != 0;
    a.step = gather ? width.by : rows ? l->step[operand][1] : 0;
    a.gather = gather || j->looks_up >> operand & 1;
    return a;
}

static bool is_same(const job_ask *a, const job_ask *b) {
    return a->at == b->at && a->by == b->by && a->along == b->along && a->step == b->step &&
           !a->gather && !b->gather;
}

/* The slot of an operand. x - y is -1 * y + x, so its operands are exchanged. */
static uint8_t *slot_of(job *j, int operand) {
    const bool exchanged = j->kind == JOB_BINARY && j->op == N2_OP_sub;
    return &j->brief.from[exchanged ? 1 - operand : operand];
}

/* Where an operand comes from, if it is there already: made by a job of the fused segment
 * (`maker`), or asked for by one. */
typedef struct source {
    int slot; /* -1: none so far */
    job *maker;
} source;

static source source_of(const segment *s, const job *j, int operand) {
    const job_ask ask = ask_of(j, operand);
    if (j->found >> operand & 1) return source{SLOT_LAST, NULL};
    for (int k = s->n; k-- > 0;) {
        job *a = &s->list[k]->j;
        if (a->out == ask.at) return source{a->brief.keep == SLOT_LAST ? -1 : a->brief.keep, a};
        for (int i = 0; i < operands_of(a); i++) {
            const job_ask other = ask_of(a, i);
            const int slot = *slot_of(a, i);
            if (slot != SLOT_LAST && is_same(&ask, &other)) return source{slot, NULL};
        }
    }
    return source{-1, NULL};
}

/* Whether a job may be the next one: it has as many elements, so do its threads, of which none
 * needs what another makes, and there are slots left. */
static bool admits(const segment *s, const noted *n) {
    const job *j = &n->j;
    int slots = s->n_slots;
    if (s->n == 0 || s->n == CHAIN_JOBS || s->list[0]->j.vec4 != j->vec4) return false;
    for (int k = 0; k < s->n; k++)
        if (!n2_noted_alike(s->list[k], n)) return false;
    for (int k = 0; k < operands_of(j); k++) slots += source_of(s, j, k).slot < 0;
    return slots <= (j->vec4 ? SLOTS_OF_FOUR : SLOTS_OF_ONE);
}

static void put_ask(segment *s, int at, job_ask a) {
    job_ask *pair = s->list[at / 2]->j.ask;
    pair[at % 2] = a;
    if (at % 2 == 0 && at + 1 >= s->n_asks) pair[1] = a; /* no second so far */
}

static void ask_for(segment *s, const job *j, int operand, int slot) {
    job_brief *first = &s->list[0]->j.brief;
    job_ask a = ask_of(j, operand);
    int at = s->n_asks++;
    a.slot = (uint8_t)slot;
    if (a.gather) {
        const int to = at;
        a.gather = (uint8_t)(s->n + 1);
        at = s->n_looks++;
        if (at < to) put_ask(s, to, s->list[at / 2]->j.ask[at % 2]); /* that goes to the end */
    }
    put_ask(s, at, a);
    first->asking = (uint8_t)((s->n_asks + 1) / 2);
    first->looking = (uint8_t)((s->n_looks + 1) / 2);
}

/* A slot for an operand that has none. */
static int new_slot(segment *s, const job *j, int operand, job *maker) {
    const int slot = s->n_slots++;
    if (maker)
        maker->brief.keep = (uint8_t)slot;
    else
        ask_for(s, j, operand, slot);
    return slot;
}

static void set_sum(job_brief *b, float times, float plus, int form) {
    b->a = times;
    b->b = plus;
    b->form = (uint8_t)(IS_SUM | form);
}

/* As a product and a sum, if it is that to the last bit: what is multiplied by 1, or added to -0,
 * stays as it is. */
static void make_sum(const job *j, job_brief *b) {
    if (!is_function(j)) return set_sum(b, 1.0f, -0.0f, 0);
    switch (j->op) {
    case N2_OP_neg:
        return set_sum(b, -1.0f, -0.0f, 0);
    case N2_OP_affine:
        return set_sum(b, b->a, b->b, 0);
    case N2_OP_add:
        return set_sum(b, 1.0f, 0.0f, PLUS_Y);
    case N2_OP_sub:
        return set_sum(b, -1.0f, 0.0f, PLUS_Y);
    case N2_OP_mul:
        return set_sum(b, 0.0f, -0.0f, TIMES_Y);
    default:
        return;
    }
}

/* What a thread reads of it, but for its operands. */
static void make_brief(job *j) {
    job_brief b = {};
    b.out = j->unread ? NULL : j->out;
    b.a = (float)j->f[0];
    b.b = (float)j->f[1];
    b.op = j->op;
    b.n = (uint32_t)j->n;
    b.two = j->kind == JOB_BINARY;
    b.vec4 = j->vec4;
    b.from[0] = b.from[1] = b.keep = SLOT_LAST;
    make_sum(j, &b);
    if (j->kind == JOB_GATHER) j->index = j->in[1]; /* where asked_at finds it */
    j->brief = b;
    j->ask[0] = j->ask[1] = job_ask{};
}

static void append(segment *s, noted *n) {
    job *j = &n->j;
    make_brief(j);
    s->list[s->n] = n;
    for (int k = 0; k < operands_of(j); k++) {
        const source from = source_of(s, j, k);
        const int slot = from.slot < 0 ? new_slot(s, j, k, from.maker) : from.slot;
        *slot_of(j, k) = (uint8_t)slot;
    }
    s->list[0]->j.segment = (uint8_t)++s->n;
}

/* A fused segment ends where threads fetch the next jobs of the chain. Jobs of one number are only
 * counted: run_scalars. */
void n2_chain_segments(n2_queue *q, size_t chain) {
    segment s = {};
    job *scalars = NULL; /* the first of those that job i follows */
    int at = 0;
    for (size_t i = chain; i < q->n && at <= q->list[chain].j.chained; i++) {
        noted *n = &q->list[i];
        if (n->chain != chain) continue;
        const bool anew = at++ % CHAIN_JOBS == 0, scalar = is_function(&n->j) && n->j.n == 1;
        scalars = !scalar ? NULL : scalars && !anew ? scalars : &n->j;
        if (scalars) scalars->segment++;
        if (anew || !is_simple(&n->j) || !admits(&s, n)) s = segment{};
        if (is_simple(&n->j)) append(&s, n);
    }
}
