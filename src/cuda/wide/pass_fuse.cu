/* Passes that read what others make, element by element, become one with them: what is handed over
 * stays in registers, and is not stored if nobody else reads it. */
#include "cuda/runtime/edit.h"
#include "pass.h"

#include <string.h>

enum { VALUES = 64, RESULT = 32 }; /* values below RESULT are inputs, others results of steps */

/* A pass without slots: steps name values. */
typedef struct formula {
    int n_inputs, n_steps, n_outputs;
    pass_input input[2 * PASS_INPUTS];
    const void *from[2 * PASS_INPUTS];
    pass_step step[2 * PASS_STEPS]; /* a, b: values */
    pass_output output[2 * PASS_OUTPUTS];
    void *to[2 * PASS_OUTPUTS];
    uint8_t made[2 * PASS_OUTPUTS]; /* values of outputs */
} formula;

static formula formula_of(const job *j) {
    const wide_pass *p = (const wide_pass *)j->wide.about;
    uint8_t in_slot[PASS_SLOTS] = {};
    formula f = {};
    f.n_inputs = p->n_inputs;
    f.n_steps = p->n_steps;
    f.n_outputs = p->n_outputs;
    for (int k = 0; k < p->n_inputs; k++) {
        f.input[k] = p->input[k];
        f.from[k] = n2_pass_input_at(j, k);
        in_slot[k] = (uint8_t)k;
    }
    for (int s = 0; s < p->n_steps; s++) {
        f.step[s] = p->step[s];
        f.step[s].a = in_slot[p->step[s].a];
        f.step[s].b = in_slot[p->step[s].b];
        in_slot[p->step[s].to] = (uint8_t)(RESULT + s);
    }
    for (int k = 0; k < p->n_outputs; k++) {
        f.output[k] = p->output[k];
        f.to[k] = n2_pass_output_at(j, k);
        f.made[k] = in_slot[p->output[k].slot];
    }
    return f;
}

/* ---- slots --------------------------------------------------------------- */

/* The last step that reads a value; n_steps: it is an output; -1: none. */
static int last_use(const formula *f, int value) {
    for (int k = 0; k < f->n_outputs; k++)
        if (f->made[k] == value) return f->n_steps;
    for (int s = f->n_steps - 1; s >= 0; s--)
        if (f->step[s].a == value || f->step[s].b == value) return s;
    return -1;
}

/* A slot whose value no later step needs; PASS_SLOTS: there is none. */
static int free_slot(const formula *f, const int in_slot[PASS_SLOTS], int step) {
    int s = 0;
    while (s < PASS_SLOTS && in_slot[s] >= 0 && last_use(f, in_slot[s]) > step) s++;
    return s;
}

/* False: it has too many inputs, outputs, steps or values at once. */
static bool give_slots(const formula *f, wide_pass *p) {
    int in_slot[PASS_SLOTS];
    uint8_t slot_of[VALUES] = {};
    if (f->n_inputs > PASS_INPUTS || f->n_outputs > PASS_OUTPUTS || f->n_steps > PASS_STEPS)
        return false;
    p->n_inputs = p->n_slots = (uint8_t)f->n_inputs;
    p->n_steps = (uint8_t)f->n_steps;
    p->n_outputs = (uint8_t)f->n_outputs;
    for (int s = 0; s < PASS_SLOTS; s++) in_slot[s] = s < f->n_inputs ? s : -1;
    for (int k = 0; k < f->n_inputs; k++) {
        p->input[k] = f->input[k];
        slot_of[k] = (uint8_t)k;
    }
    for (int s = 0; s < f->n_steps; s++) {
        const int to = free_slot(f, in_slot, s);
        if (to == PASS_SLOTS) return false;
        p->step[s] = f->step[s];
        p->step[s].a = slot_of[f->step[s].a];
        p->step[s].b = slot_of[f->step[s].b];
        p->step[s].to = slot_of[RESULT + s] = (uint8_t)to;
        in_slot[to] = RESULT + s;
        if (to >= p->n_slots) p->n_slots = (uint8_t)(to + 1);
    }
    for (int k = 0; k < f->n_outputs; k++) {
        p->output[k] = f->output[k];
        p->output[k].slot = slot_of[f->made[k]];
    }
    return true;
}

/* ---- two as one ---------------------------------------------------------- */

static bool is_pass(const noted *n) {
    return n->j.kind == JOB_WIDE && n->j.wide.kernel == WIDE_PASS && n->j.n_blocks > 0;
}

static bool is_same_input(const formula *f, int k, const pass_input *in, const void *from) {
    const pass_input *x = &f->input[k];
    if (f->from[k] != from || x->type != in->type || x->way != in->way) return false;
    return x->way == PASS_ALONG || memcmp(&x->axes, &in->axes, sizeof x->axes) == 0;
}

static int add_input(formula *f, const pass_input *in, const void *from) {
    for (int k = 0; k < f->n_inputs; k++)
        if (is_same_input(f, k, in, from)) return k;
    f->input[f->n_inputs] = *in;
    f->from[f->n_inputs] = from;
    return f->n_inputs++;
}

/* Which output of `first` is input k of `second`, element by element; -1: none. */
static int handed_over(const formula *first, const formula *second, int k) {
    for (int o = 0; o < first->n_outputs; o++)
        if (second->input[k].way == PASS_ALONG && second->from[k] == first->to[o] &&
            second->input[k].type == first->output[o].type && !first->output[o].pitched)
            return o;
    return -1;
}

/* Adds the steps of `second`, which follows, and its outputs. False: it reads what the first makes,
 * but not element by element, or nothing of it. */
static bool append(formula *f, const formula *second) {
    uint8_t value[VALUES];
    const formula first = *f;
    bool follows = false;
    for (int k = 0; k < second->n_inputs; k++) {
        const int o = handed_over(&first, second, k);
        follows |= o >= 0;
        for (int x = 0; x < first.n_outputs && o < 0; x++)
            if (n2_spans_meet(&first.output[x].memory, &second->input[k].memory)) return false;
        value[k] =
            o >= 0 ? first.made[o] : (uint8_t)add_input(f, &second->input[k], second->from[k]);
    }
    for (int s = 0; s < second->n_steps; s++) {
        pass_step step = second->step[s];
        step.a = value[step.a];
        step.b = value[step.b];
        value[RESULT + s] = (uint8_t)(RESULT + f->n_steps);
        f->step[f->n_steps++] = step;
    }
    for (int o = 0; o < second->n_outputs; o++) {
        f->output[f->n_outputs] = second->output[o];
        f->to[f->n_outputs] = second->to[o];
        f->made[f->n_outputs++] = value[second->made[o]];
    }
    return follows;
}

/* Outputs of job w that nobody but job i reads are not stored: the first ones of the formula. */
static void drop_outputs(n2_queue *q, size_t w, size_t i, int of_first, formula *f) {
    int n = 0;
    for (int o = 0; o < f->n_outputs; o++) {
        const span *m = &f->output[o].memory;
        const bool dropped = o < of_first && !f->output[o].pitched &&
                             n2_is_only_reader(q, w, i, (const float *)m->begin, n2_floats_in(m));
        if (dropped) continue;
        f->output[n] = f->output[o];
        f->to[n] = f->to[o];
        f->made[n++] = f->made[o];
    }
    f->n_outputs = n;
}

/* Threads read all of their elements before they write any; but other threads' elements are
 * theirs. */
static bool keeps_to_itself(const formula *f) {
    for (int o = 0; o < f->n_outputs; o++)
        for (int k = 0; k < f->n_inputs; k++) {
            if (!n2_spans_meet(&f->output[o].memory, &f->input[k].memory)) continue;
            const bool alike = f->input[k].way == PASS_ALONG && f->from[k] == f->to[o] &&
                               f->input[k].type == f->output[o].type && !f->output[o].pitched;
            if (!alike) return false;
        }
    return true;
}

static void note_spans(noted *n, const formula *f) {
    n2_forget_spans(n);
    for (int k = 0; k < f->n_inputs; k++) n2_note_span(n, f->input[k].memory);
    for (int o = 0; o < f->n_outputs; o++) n2_note_span(n, f->output[o].memory);
}

/* Where both may be done: the first as late as the second, or the second as early as the first;
 * SIZE_MAX: neither. */
static size_t place_for(n2_queue *q, size_t w, size_t i, const formula *both, int of_first) {
    noted *spare = (noted *)n2_alloc(q->ctx, 1, sizeof *spare);
    if (!spare) return SIZE_MAX;
    formula first = formula_of(&q->list[w].j);
    first.n_outputs = 0;
    for (int o = 0; o < of_first; o++) first.output[first.n_outputs++] = both->output[o];
    note_spans(spare, &first);
    size_t at = n2_may_move(q, spare, w, i) ? i : SIZE_MAX;
    if (at == SIZE_MAX && n2_may_move(q, &q->list[i], w, i)) at = w;
    n2_free(q->ctx, spare);
    return at;
}

/* Job i and the pass w that makes one of its operands as one: the place of it; SIZE_MAX: they stay
 * two. */
static size_t fuse(n2_queue *q, size_t w, size_t i) {
    noted *first = &q->list[w], *second = &q->list[i];
    formula f = formula_of(&first->j);
    const formula follower = formula_of(&second->j);
    const int before = f.n_outputs;
    wide_pass p = {};
    p.n = (uint32_t)first->j.n;
    if (first->j.n != second->j.n || !append(&f, &follower)) return SIZE_MAX;
    drop_outputs(q, w, i, before, &f);
    if (!keeps_to_itself(&f) || !give_slots(&f, &p)) return SIZE_MAX;
    const size_t at = place_for(q, w, i, &f, f.n_outputs - follower.n_outputs);
    if (at == SIZE_MAX) return SIZE_MAX;
    noted *both = &q->list[at], *other = at == w ? second : first;
    for (int k = 0; k < PASS_INPUTS; k++)
        n2_pass_set_input(&both->j, k, k < f.n_inputs ? f.from[k] : NULL);
    for (int o = 0; o < PASS_OUTPUTS; o++)
        n2_pass_set_output(&both->j, o, o < f.n_outputs ? f.to[o] : NULL);
    p.whole = n2_pass_is_whole(&p, &both->j);
    *(wide_pass *)both->j.wide.about = p;
    both->kept |= other->kept;
    note_spans(both, &f);
    n2_drop(other);
    return at;
}

/* The pass that makes an operand of job i; SIZE_MAX: none. */
static size_t maker_of(const n2_queue *q, size_t i, int k) {
    const wide_pass *p = (const wide_pass *)q->list[i].j.wide.about;
    const span *m = &p->input[k].memory;
    const size_t w = n2_writer_of(q, i, (const float *)m->begin, n2_floats_in(m));
    return w != SIZE_MAX && is_pass(&q->list[w]) ? w : SIZE_MAX;
}

/* One of its makers becomes one with it: the place of both; SIZE_MAX: none does. */
static size_t fuse_one(n2_queue *q, size_t i) {
    const int inputs = ((const wide_pass *)q->list[i].j.wide.about)->n_inputs;
    for (int k = 0; k < inputs; k++) {
        const size_t w = maker_of(q, i, k), at = w == SIZE_MAX ? SIZE_MAX : fuse(q, w, i);
        if (at != SIZE_MAX) return at;
    }
    return SIZE_MAX;
}

void n2_pass_fuse(n2_queue *q) {
    for (size_t i = 0; i < q->n && q->status == N2CE_OK; i++)
        for (size_t at = i; at != SIZE_MAX && is_pass(&q->list[at]);) at = fuse_one(q, at);
}
