/* How the work of a step is shared between threads: a function of the problem alone, never of the
 * number of threads. */
#include "plan_data.h"

/* Numbers that are read or written in a share, about: 10 microseconds, against one or two to hand
 * it out. */
enum { GRAIN = 32768 };

/* A list in the making. */
typedef struct sharing {
    n2_shares *out;
    double open; /* work of the last share, which others may join */
} sharing;

static size_t parts_of(double work) { return work < 2 * GRAIN ? 1 : (size_t)(work / GRAIN); }

/* Big instructions are cut into parts, small ones that follow one another go together. */
static void add_work(sharing *s, size_t i, double work) {
    const size_t parts = parts_of(work);
    n2_share *last = s->out->n ? &s->out->list[s->out->n - 1] : NULL;
    if (parts == 1 && last && last->parts == 1 && s->open + work <= GRAIN &&
        last->first + last->n == i) {
        last->n++;
        s->open += work;
        return;
    }
    for (size_t part = 0; part < parts; part++)
        s->out->list[s->out->n++] = (n2_share){i, 1, (int)part, (int)parts};
    s->open = work;
}

static double numbers_of(const n2_instruction *i) {
    double n = (double)n2_elements(i->out.shape);
    for (int k = 0; k < i->node->n_in; k++) n += (double)n2_elements(i->in[k].shape);
    return n;
}

/* What adding up the chunks of an instruction touches; 0: it has none. */
static double sum_work(const n2_step *s, const n2_instruction *i) {
    return i->partials ? (double)(s->n_chunks - 1) * (double)i->fold_numbers : 0;
}

static n2ce_status alloc_shares(n2_plan *p, double parts, n2_shares *out) {
    out->list = n2_arena_alloc(&p->arena, (size_t)parts + 1, sizeof *out->list);
    return out->list ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status split_sums(n2_plan *p, n2_step *s) {
    double most = 0;
    for (size_t i = 0; i < s->n_code; i++)
        if (sum_work(s, &s->code[i]) > 0) most += (double)parts_of(sum_work(s, &s->code[i]));
    N2_TRY(alloc_shares(p, most, &s->sums));
    sharing list = {.out = &s->sums};
    for (size_t i = 0; i < s->n_code; i++)
        if (sum_work(s, &s->code[i]) > 0) add_work(&list, i, sum_work(s, &s->code[i]));
    return N2CE_OK;
}

static n2ce_status split_whole(n2_plan *p, n2_step *s) {
    double most = 0;
    for (size_t i = 0; i < s->n_code; i++) most += (double)parts_of(numbers_of(&s->code[i]));
    N2_TRY(alloc_shares(p, most, &s->shares));
    sharing list = {.out = &s->shares};
    for (size_t i = 0; i < s->n_code; i++) add_work(&list, i, numbers_of(&s->code[i]));
    return N2CE_OK;
}

static n2ce_status keep_together(n2_plan *p, n2_step *s) {
    N2_TRY(alloc_shares(p, 1, &s->shares));
    s->shares.list[s->shares.n++] = (n2_share){0, s->n_code, 0, 1};
    return N2CE_OK;
}

n2ce_status n2_plan_split(n2_plan *p) {
    for (size_t k = 0; k < p->n_steps; k++) {
        n2_step *s = &p->steps[k];
        if (s->kind == N2_STEP_ROWS)
            N2_TRY(split_sums(p, s));
        else
            N2_TRY(s->kind == N2_STEP_SPLIT ? split_whole(p, s) : keep_together(p, s));
    }
    return N2CE_OK;
}
