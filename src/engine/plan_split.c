/* How the work of a step is shared between threads: a function of the problem alone, never of the
 * number of threads. */
#include "comm/comm.h"
#include "plan_data.h"

/* ---- work ---------------------------------------------------------------- */

double n2_flops(const n2_graph *g, const n2_node_data *d) {
    if (d->op->flops) return d->op->flops(g, d);
    return (double)n2_elements(d->n_in ? n2_shape_at(g, d->in[0]) : d->shape);
}

double n2_work(const n2_graph *g, const n2_node_data *d) {
    const double flops = n2_flops(g, d) / 24;
    double numbers = (double)n2_elements(d->shape);
    for (int k = 0; k < d->n_in; k++)
        if (d->in[k].id) numbers += (double)n2_elements(n2_shape_at(g, d->in[k]));
    return flops > numbers ? flops : numbers;
}

/* ---- chunks of row programs ---------------------------------------------- */

enum {
    CHUNKS = 8,            /* that sum up, at most; each has partial sums of its own */
    CHUNKS_HEAVY = 32,     /* the same where rows are heavy and therefore few */
    CHUNK_ROWS = 64,       /* at least, */
    CHUNK_FLOPS = 1 << 28, /* or rows of so many flops, if that is less, but a whole tile */
};

typedef struct weight {
    double flops, work; /* of a row */
    bool sums;          /* over rows */
} weight;

static weight weigh(const n2_plan *p, int step) {
    weight w = {0};
    for (uint32_t id = 1; id <= p->n_nodes; id++) {
        const n2_planned *n = &p->nodes[id];
        const n2_node_data *d = n2_node_at(p, id);
        if (!n->live || n->step != step || !n2_needs_kernel(d->op->id)) continue;
        w.flops += n2_flops(p->graph, d) / (double)n->n_rows;
        w.work += n2_work(p->graph, d) / (double)n->n_rows;
        w.sums |= n->rows == N2_ROWS_FOLD;
    }
    return w;
}

static int64_t clamp(double x, int64_t least, int64_t most) {
    return !(x > (double)least) ? least : x < (double)most ? (int64_t)x : most;
}

/* Sums over rows depend on the chunks in their last bits, so their number is a matter of rows and
 * weight alone. Without sums nothing does, and there may be as many as is good for balance. */
static int64_t chunks_of(const n2_step *s, weight w) {
    const int64_t tile = clamp((double)(s->n_rows / CHUNKS), 1, N2_LEAST_TILE);
    const int64_t least = clamp(CHUNK_FLOPS / (w.flops + 1), tile, CHUNK_ROWS);
    const int64_t chunks = clamp((double)(s->n_rows / least), 1, CHUNKS);
    if (!w.sums) {
        const int64_t rows = clamp(4 * N2_GRAIN / (w.work + 1), N2_MOST_TILE, s->n_rows);
        return clamp((double)(s->n_rows / rows), chunks, s->n_rows);
    }
    return least == CHUNK_ROWS ? chunks : clamp((double)(s->n_rows / least), 1, CHUNKS_HEAVY);
}

/* A device sums up in one place, tile after tile, unless ranks may share the rows. */
static int64_t chunks_on_device(const n2_plan *p, const n2_step *s, weight w) {
    const int shards = p->device->shards ? p->device->shards : n2_ranks(p->ctx);
    int64_t chunks = 1;
    if (!w.sums || w.flops * (double)s->n_rows < p->device->worth_sharing) return 1;
    while (2 * chunks <= shards && 2 * chunks <= s->n_rows) chunks *= 2;
    return chunks;
}

static int64_t ratio_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

/* Every chunk has rows, since one without would
 * leave its partial sums as it found them: nine rows for four chunks are three chunks of three. */
void n2_plan_chunks(n2_plan *p) {
    for (size_t k = 0; k < p->n_steps; k++) {
        n2_step *s = &p->steps[k];
        if (s->kind != N2_STEP_ROWS) continue;
        const n2_step *like = n2_like_step(p, k);
        const weight w = weigh(p, (int)k);
        const int64_t chunks = p->device ? chunks_on_device(p, s, w) : chunks_of(s, w);
        s->chunk_rows = like ? like->chunk_rows : ratio_up(s->n_rows, chunks);
        s->n_chunks = (int)ratio_up(s->n_rows, s->chunk_rows);
    }
}

/* ---- shares -------------------------------------------------------------- */

/* A list in the making. */
typedef struct sharing {
    n2_shares *out;
    double open; /* work of the last share, which others may join */
} sharing;

/* More than thousands would occupy no machine better. */
static size_t parts_of(double work) {
    const double most = 4096, parts = work / N2_GRAIN;
    return parts < 2 ? 1 : (size_t)(parts < most ? parts : most);
}

/* Big instructions are cut into parts, small ones that follow one another go together. */
static void add_work(sharing *s, size_t i, double work, size_t parts) {
    n2_share *last = s->out->n ? &s->out->list[s->out->n - 1] : NULL;
    if (parts == 1 && last && last->parts == 1 && s->open + work <= N2_GRAIN &&
        last->first + last->n == i) {
        last->n++;
        s->open += work;
        return;
    }
    for (size_t part = 0; part < parts; part++)
        s->out->list[s->out->n++] = (n2_share){i, 1, (int)part, (int)parts};
    s->open = work;
}

/* What adding up the chunks of an instruction touches; 0: it has none, or a device does it. */
static double sum_work(const n2_plan *p, const n2_step *s, const n2_instruction *i) {
    return i->partials && !p->device ? (double)(s->n_chunks - 1) * (double)i->fold_numbers : 0;
}

static n2ce_status alloc_shares(n2_plan *p, double parts, n2_shares *out) {
    out->list = n2_arena_alloc(&p->arena, (size_t)parts + 1, sizeof *out->list);
    return out->list ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status split_sums(n2_plan *p, n2_step *s) {
    double most = 0;
    for (size_t i = 0; i < s->n_code; i++) most += (double)parts_of(sum_work(p, s, &s->code[i]));
    N2_TRY(alloc_shares(p, most, &s->sums));
    sharing list = {.out = &s->sums};
    for (size_t i = 0; i < s->n_code; i++) {
        const double work = sum_work(p, s, &s->code[i]);
        if (work > 0) add_work(&list, i, work, parts_of(work));
    }
    return N2CE_OK;
}

/* A kernel that cannot be asked for a part is not. */
static size_t parts_of_whole(const n2_plan *p, const n2_instruction *i) {
    return p->backend->split[i->node->op->id] ? parts_of(n2_work(p->graph, i->node)) : 1;
}

static n2ce_status split_whole(n2_plan *p, n2_step *s) {
    double most = 0;
    for (size_t i = 0; i < s->n_code; i++) most += (double)parts_of_whole(p, &s->code[i]);
    N2_TRY(alloc_shares(p, most, &s->shares));
    sharing list = {.out = &s->shares};
    for (size_t i = 0; i < s->n_code; i++)
        add_work(&list, i, n2_work(p->graph, s->code[i].node), parts_of_whole(p, &s->code[i]));
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
