/* A plan that several ranks run together. Each takes neighbouring chunks of a row program, a power
 * of two of them, and sums up its branch of the tree by which the sums of chunks are added; the
 * sums of ranks are then added by the rest of the same tree, in one collective a step. So the
 * numbers are those of one rank, to the last bit, and random ones are those of their rows.
 *
 * What a program stores row by row is passed on only if somebody needs other rows of it than the
 * rank has. Everything else, updates among it, every rank does for itself, to the same numbers. */
#include "plan_ranks.h"

#include "comm/comm.h"
#include "walk.h"

#include <string.h>

/* Flops that are worth a message, and flops that are worth a byte of one. */
static const double WORTH_MESSAGE = 1 << 24, WORTH_BYTE = 32;

/* ---- what is shared ------------------------------------------------------ */

/* Whether a node reads a value of step s by the rows that the same rank has made. */
static bool reads_own_rows(const n2_plan *p, const n2_planned *reader, int k, const n2_step *s) {
    const n2_step *at = &p->steps[reader->step];
    return reader->rows != N2_ROWS_WHOLE && reader->row_input[k] && at->kind == N2_STEP_ROWS &&
           at->n_rows == s->n_rows && at->chunk_rows == s->chunk_rows && at->is_shared;
}

static bool is_needed_whole(const n2_plan *p, const n2_instruction *i, const n2_step *s) {
    const uint32_t root = p->nodes[i->made].root;
    const int here = (int)(s - p->steps);
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        const n2_planned *n = &p->nodes[id];
        const n2_node_data *d = n2_node_at(p, id);
        if (!n->live) continue;
        if (n->root == root && n->output) return true;
        if (!n2_needs_kernel(d->op->id) || n->step == here) continue;
        for (int k = 0; k < d->n_in; k++)
            if (d->in[k].id && p->nodes[d->in[k].id].root == root && !reads_own_rows(p, n, k, s))
                return true;
    }
    return false;
}

static bool is_stored_by_rows(const n2_instruction *i) {
    return !i->partials && i->out.base && i->out.by_rows;
}

/* Bytes that a step makes other ranks wait for. */
static double bytes_to_send(const n2_plan *p, const n2_step *s) {
    double bytes = 0;
    for (size_t i = 0; i < s->n_code; i++) {
        const n2_instruction *code = &s->code[i];
        if (code->partials) bytes += (double)(code->fold_numbers * p->backend->bytes);
        if (code->passed_on) bytes += (double)(code->out.row_bytes * s->n_rows);
    }
    return bytes;
}

static void place_sums(n2_plan *p, n2_step *s) {
    size_t at = 0;
    for (size_t i = 0; i < s->n_code; i++) {
        s->code[i].sum_at = at;
        if (s->code[i].partials) at += s->code[i].fold_numbers;
    }
    s->sum_numbers = at;
    if (at > p->sum_numbers) p->sum_numbers = at;
}

static void note_passed_on(const n2_plan *p, n2_step *s) {
    for (size_t i = 0; i < s->n_code; i++)
        s->code[i].passed_on = is_stored_by_rows(&s->code[i]) && is_needed_whole(p, &s->code[i], s);
}

/* On a device rows are never passed on; that its chunks are worth it was found when there were
 * several (plan_split.c). */
static bool is_worth_sharing(const n2_plan *p, const n2_step *s) {
    if (s->kind != N2_STEP_ROWS) return false;
    if (p->device)
        return s->n_chunks > 1 || (p->device->lonely && s->flops > p->device->worth_sharing);
    return s->n_chunks > 1 && s->flops > WORTH_MESSAGE;
}

static bool is_worth_bytes(const n2_plan *p, const n2_step *s) {
    if (!p->device) return s->flops > WORTH_BYTE * bytes_to_send(p, s);
    for (size_t i = 0; i < s->n_code; i++)
        if (s->code[i].passed_on) return false;
    return true;
}

/* First by their work alone, since what has to be passed on depends on who else is shared; those
 * that would have to pass on too much are then not. */
void n2_plan_share(n2_plan *p) {
    for (size_t k = 0; k < p->n_steps; k++)
        p->steps[k].is_shared = is_worth_sharing(p, &p->steps[k]);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t k = 0; k < p->n_steps; k++) {
            n2_step *s = &p->steps[k];
            if (!s->is_shared) continue;
            note_passed_on(p, s);
            if (is_worth_bytes(p, s)) continue;
            s->is_shared = false;
            changed = true;
        }
    }
    for (size_t k = 0; k < p->n_steps; k++)
        if (p->steps[k].is_shared) place_sums(p, &p->steps[k]);
}

/* ---- who does what ------------------------------------------------------- */

static int power_up(int n) {
    int power = 1;
    while (power < n) power *= 2;
    return power;
}

/* As many as have chunks, at most: a power of two. */
static int contributors_of(const n2_step *s, int ranks) {
    int n = power_up(s->n_chunks);
    while (n > ranks) n /= 2;
    return n;
}

static n2_branch branch_of(const n2_step *s, int rank, int ranks) {
    const int n = contributors_of(s, ranks), each = power_up(s->n_chunks) / n;
    const int begin = rank * each < s->n_chunks && rank < n ? rank * each : s->n_chunks;
    const int end = begin + each < s->n_chunks ? begin + each : s->n_chunks;
    return (n2_branch){begin, end};
}

n2_branch n2_branch_at(const n2_plan *p, const n2_step *s) {
    return s->is_shared ? branch_of(s, p->rank, p->ranks) : (n2_branch){0, s->n_chunks};
}

n2ce_status n2_plan_gather_ranks(n2_plan *p) {
    p->rank = n2_rank(p->ctx);
    p->ranks = n2_ranks(p->ctx);
    p->ranks_status = N2CE_OK;
    if (p->device || p->ranks == 1 || p->sum_numbers == 0 || p->rank_sums) return N2CE_OK;
    p->rank_sums = n2_arena_alloc(&p->arena, p->sum_numbers, p->backend->bytes);
    return p->rank_sums ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- exchanging ---------------------------------------------------------- */

static n2ce_status pass_on(const n2_plan *p, const n2_step *s, const n2_instruction *i) {
    enum { MOST = 1024 };
    size_t begin[MOST + 1];
    if (p->ranks > MOST) return n2_fail(p->ctx, N2CE_EINVAL, "More than %d ranks.", MOST);
    const int64_t rows = s->n_rows;
    for (int r = 0; r <= p->ranks; r++) {
        const int chunk = r < p->ranks ? branch_of(s, r, p->ranks).begin : s->n_chunks;
        const int64_t row = chunk * s->chunk_rows;
        begin[r] = (size_t)((row < rows ? row : rows) * i->out.row_bytes);
    }
    return n2_comm_gather(p->ctx, i->out.base, begin);
}

static n2ce_status exchange(const n2_plan *p, const n2_step *s) {
    N2_TRY(n2_comm_sum(p->ctx, p->rank_sums, s->sum_numbers, p->backend->bytes,
                       contributors_of(s, p->ranks)));
    for (size_t i = 0; i < s->n_code; i++)
        if (s->code[i].passed_on) N2_TRY(pass_on(p, s, &s->code[i]));
    return N2CE_OK;
}

/* ---- on a device --------------------------------------------------------- */

static n2_rank_sum sum_of(const n2_plan *p, const n2_instruction *i, n2_branch b) {
    n2_rank_sum sum = {.n = i->fold_numbers, .to = i->out.base};
    if (b.begin >= b.end) return sum;
    sum.shards = (size_t)(b.end - b.begin);
    sum.stride = n2_partial_bytes(p, i) / p->backend->bytes;
    sum.first = n2_partial_sum(p, i, b.begin);
    sum.rest = n2_partial_sum(p, i, b.begin + 1);
    return sum;
}

static n2ce_status note_sums(n2_plan *p, const n2_step *s, n2_branch b, int contributors) {
    n2_rank_sum *sums = n2_alloc(p->ctx, s->n_code + 1, sizeof *sums);
    size_t n = 0;
    if (!sums) return N2CE_ENOMEM;
    for (size_t k = 0; k < s->n_code; k++)
        if (s->code[k].partials) sums[n++] = sum_of(p, &s->code[k], b);
    if (n > 0) p->device->note_sums(p->queue, sums, n, contributors);
    n2_free(p->ctx, sums);
    return N2CE_OK;
}

void n2_plan_note_sums(n2_plan *p, const void *step) {
    const n2_step *s = step;
    p->ranks_status = note_sums(p, s, (n2_branch){0, s->n_chunks}, 0);
}

static void note_exchange(n2_plan *p, const n2_step *s) {
    const bool exchanges = s->is_shared && (p->ranks > 1 || p->device->lonely);
    if (exchanges)
        p->ranks_status = note_sums(p, s, n2_branch_at(p, s), contributors_of(s, p->ranks));
    else if (s->n_chunks > 1)
        n2_plan_note_sums(p, s);
}

bool n2_plan_exchange(n2_plan *p, const n2_step *s) {
    if (p->device) note_exchange(p, s);
    if (p->device || p->ranks == 1 || !s->is_shared) return false;
    p->ranks_status = exchange(p, s);
    return p->ranks_status == N2CE_OK;
}

/* Nothing to add is -0, which changes no number, not even 0. */
#define FILL(TYPE) \
    for (size_t k = begin; k < end; k++) ((TYPE *)(void *)sums)[k] = -(TYPE)0;

void n2_lend_sum(const n2_plan *p, const n2_instruction *i, const void *sum, size_t begin,
                 size_t end) {
    const size_t bytes = p->backend->bytes;
    char *sums = p->rank_sums + i->sum_at * bytes;
    if (sum)
        memcpy(sums + begin * bytes, (const char *)sum + begin * bytes, (end - begin) * bytes);
    else if (bytes == sizeof(float))
        FILL(float)
    else
        FILL(double)
}

void n2_take_sum(const n2_plan *p, const n2_instruction *i, size_t begin, size_t end) {
    const size_t bytes = p->backend->bytes;
    memcpy(i->out.base + begin * bytes, p->rank_sums + (i->sum_at + begin) * bytes,
           (end - begin) * bytes);
}

double n2_plan_shared_time(const n2_plan *p) {
    double shared = 0, all = 0;
    for (size_t k = 0; k < p->n_steps; k++) {
        all += p->steps[k].seconds;
        if (p->steps[k].is_shared) shared += p->steps[k].seconds;
    }
    return all > 0 ? shared / all : 0;
}
