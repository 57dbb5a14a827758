/* In turns. In each turn a rank reads a piece; ranks tell how many rows their pieces have, so that
 * each knows the numbers of its rows; and those that are wanted, few of a large file, go to all. */
#include "table_ranks.h"

#include "comm/comm.h"

#include <string.h>

enum { PIECE = 2 << 20 }; /* bytes: a matter of the file, not of the ranks */

typedef struct counts {
    uint64_t kept, seen, dropped, wanted;
} counts;

/* Rows, and their numbers. */
typedef struct some_rows {
    double *x;
    uint64_t *origin;
    size_t n, room;
} some_rows;

typedef struct sharing {
    n2ce_ctx *ctx;
    const char *path;
    n2_table_options o;
    size_t cols, bytes; /* of the file */
    const n2_row_taker *taker;
    some_rows mine, theirs;
    counts *of;    /* of the ranks, in this turn, */
    size_t *begin; /* which begin there, in bytes */
    counts all;    /* so far */
} sharing;

static n2ce_status make_room(const sharing *s, some_rows *r, size_t rows) {
    if (rows <= r->room) return N2CE_OK;
    double *x = n2_realloc(s->ctx, r->x, rows, s->cols * sizeof *x);
    if (x) r->x = x;
    uint64_t *origin = n2_realloc(s->ctx, r->origin, rows, sizeof *origin);
    if (origin) r->origin = origin;
    if (!x || !origin) return N2CE_ENOMEM;
    r->room = rows;
    return N2CE_OK;
}

static void free_rows(const sharing *s, some_rows *r) {
    n2_free(s->ctx, r->x);
    n2_free(s->ctx, r->origin);
}

/* ---- this rank's piece --------------------------------------------------- */

static n2ce_status read_rows(sharing *s, n2_reader *r) {
    enum { FIRST = 4096 };
    some_rows *m = &s->mine;
    for (size_t n = 1; n > 0; m->n += n) {
        if (m->n == m->room) N2_TRY(make_room(s, m, m->room ? 2 * m->room : FIRST));
        N2_TRY(n2_reader_next(r, m->x + m->n * s->cols, m->room - m->n, &n));
    }
    return N2CE_OK;
}

static n2ce_status read_piece(sharing *s, size_t piece, counts *mine) {
    n2_reader *r = NULL;
    const size_t from = piece * PIECE, to = from + PIECE < s->bytes ? from + PIECE : s->bytes;
    s->mine.n = 0;
    *mine = (counts){0};
    if (from >= s->bytes) return N2CE_OK;
    N2_TRY(n2_reader_open_piece(s->ctx, s->path, &s->o, from, to, &r));
    if (!r) return N2CE_OK;
    const n2ce_status status = read_rows(s, r);
    *mine = (counts){s->mine.n, n2_reader_seen(r), n2_reader_dropped(r), 0};
    n2_reader_close(r);
    return status;
}

/* Leaves the rows that are wanted, of those from this number on. */
static size_t choose(sharing *s, uint64_t origin) {
    some_rows *m = &s->mine;
    const size_t n = m->n, bytes = s->cols * sizeof *m->x;
    m->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!s->taker->wants(s->taker->user, (size_t)(origin + i))) continue;
        if (m->n < i) memcpy(m->x + m->n * s->cols, m->x + i * s->cols, bytes);
        m->origin[m->n++] = origin + i;
    }
    return m->n;
}

/* ---- all of them --------------------------------------------------------- */

static n2ce_status tell_counts(sharing *s, const counts *mine) {
    s->of[n2_rank(s->ctx)] = *mine;
    return n2_comm_gather(s->ctx, s->of, s->begin);
}

static n2ce_status take_rows_of(sharing *s, int root) {
    some_rows *rows = root == n2_rank(s->ctx) ? &s->mine : &s->theirs;
    const size_t n = (size_t)s->of[root].wanted;
    if (n == 0) return N2CE_OK;
    N2_TRY(make_room(s, rows, n));
    N2_TRY(n2_comm_broadcast(s->ctx, root, rows->origin, n * sizeof *rows->origin));
    N2_TRY(n2_comm_broadcast(s->ctx, root, rows->x, n * s->cols * sizeof *rows->x));
    for (size_t i = 0; i < n; i++)
        N2_TRY(s->taker->take(s->taker->user, rows->x + i * s->cols, (size_t)rows->origin[i]));
    return N2CE_OK;
}

static n2ce_status share_turn(sharing *s, counts *mine) {
    const int ranks = n2_ranks(s->ctx), rank = n2_rank(s->ctx);
    uint64_t origin = s->all.kept;
    N2_TRY(tell_counts(s, mine));
    for (int r = 0; r < rank; r++) origin += s->of[r].kept;
    for (int r = 0; r < ranks; r++) {
        s->all.kept += s->of[r].kept;
        s->all.seen += s->of[r].seen;
        s->all.dropped += s->of[r].dropped;
    }
    mine->wanted = choose(s, origin);
    N2_TRY(tell_counts(s, mine));
    for (int r = 0; r < ranks; r++) N2_TRY(take_rows_of(s, r));
    return N2CE_OK;
}

/* A piece that cannot be read is no failure yet, unless it is for other reasons than the file. */
static n2ce_status run_turn(sharing *s, size_t first, bool *done) {
    counts mine;
    const size_t piece = first + (size_t)n2_rank(s->ctx);
    n2_comm_alone(s->ctx);
    const n2ce_status status = read_piece(s, piece, &mine);
    n2_comm_together(s->ctx);
    if (status == N2CE_ENOMEM || status == N2CE_ECANCELED) return status;
    bool failed = status != N2CE_OK;
    N2_TRY(n2_comm_any(s->ctx, &failed));
    *done = !failed;
    return failed ? N2CE_OK : share_turn(s, &mine);
}

static n2ce_status run_turns(sharing *s, bool *done) {
    const size_t pieces = (s->bytes + PIECE - 1) / PIECE, ranks = (size_t)n2_ranks(s->ctx);
    s->of = n2_alloc(s->ctx, ranks, sizeof *s->of);
    s->begin = n2_alloc(s->ctx, ranks + 1, sizeof *s->begin);
    if (!s->of || !s->begin) return N2CE_ENOMEM;
    for (size_t r = 0; r <= ranks; r++) s->begin[r] = r * sizeof *s->of;
    *done = true;
    for (size_t first = 0; first < pieces && *done; first += ranks)
        N2_TRY(run_turn(s, first, done));
    return N2CE_OK;
}

n2ce_status n2_table_read_together(n2_reader *whole, const char *path, const n2_table_options *o,
                                   const n2_row_taker *taker, size_t *seen, size_t *dropped,
                                   bool *done) {
    n2ce_ctx *ctx = n2_reader_ctx(whole);
    sharing s = {.ctx = ctx, .path = path, .cols = n2_reader_cols(whole), .taker = taker};
    s.bytes = n2_reader_bytes(whole);
    *done = false;
    if (n2_ranks(ctx) == 1 || s.bytes <= PIECE) return N2CE_OK;
    if (o) s.o = *o;
    s.o.header = n2_reader_header(whole); /* which was said already, if there was a doubt */
    const n2ce_status status = run_turns(&s, done);
    *seen = (size_t)s.all.seen;
    *dropped = (size_t)s.all.dropped;
    *done &= s.all.kept > 0;
    free_rows(&s, &s.mine);
    free_rows(&s, &s.theirs);
    n2_free(ctx, s.of);
    n2_free(ctx, s.begin);
    return status;
}
