/* In turns. In each turn every thread of a rank has some pieces; ranks tell how many rows their
 * pieces have, so that each knows the numbers of its rows; and those that are wanted, few of a
 * large file, become numbers and go to all. Where lines are plain the others are counted and no
 * more. */
#include "table_ranks.h"

#include "base/pool.h"
#include "comm/comm.h"
#include "reader_parts.h"

#include <string.h>
#include <sys/stat.h>

enum {
    PIECE = 2 << 20,  /* bytes: a matter of the file, not of the ranks */
    A_THREAD = 4,     /* pieces, in a turn: each ends with messages */
    A_RANK = 16,      /* of long files, so that the system reads ahead of it */
    BEYOND = 1 << 16, /* that its last line may have behind it */
    MOST_THREADS = 64
};

typedef struct counts {
    uint64_t kept, seen, dropped, wanted;
} counts;

/* Rows, and their numbers. */
typedef struct some_rows {
    double *x;
    uint64_t *origin;
    size_t n, room;
} some_rows;

/* One of a pattern, or the only one. */
typedef struct source {
    const char *path;
    size_t bytes, first; /* its first piece */
    n2_reader *r;        /* if it is open */
} source;

/* A piece in a thread's hands. */
typedef struct piece {
    const source *file;
    size_t from, to; /* bytes of the file, where its lines begin */
    n2_lines lines;  /* with room for them */
    bool plain;
    some_rows rows; /* all of them, if it is not */
    counts of;
    uint64_t origin; /* of its first row, */
    size_t at;       /* and the place of its first wanted one among this rank's */
    uint64_t *wanted;
    size_t wanted_room;
    bool failed;
} piece;

typedef struct sharing {
    n2ce_ctx *ctx;
    const n2_reader *whole; /* which others are to be like */
    n2_table_options o;
    source *file;
    size_t files, pieces;
    size_t open; /* files before it are not, any more */
    size_t cols;
    const n2_row_taker *taker;
    piece *piece;           /* of this rank, in this turn */
    size_t at_once;         /* of them */
    some_rows mine, theirs; /* that are wanted */
    counts *of;             /* of the ranks, in this turn, */
    size_t *begin;          /* which begin there, in bytes */
    counts all;             /* so far */
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

/* ---- looking at pieces --------------------------------------------------- */

static void see(void *user, const char *bytes, size_t n) { n2_plain_see(user, bytes, n); }

static void look_at_piece(void *arg, size_t item, int worker) {
    (void)worker;
    const sharing *s = arg;
    piece *p = &s->piece[item];
    size_t lines = 0;
    p->of = (counts){0};
    p->rows.n = 0;
    p->failed = false;
    p->plain = !p->file;
    if (p->plain || p->file->r->plain.fields == 0) return;
    const n2_reader *whole = p->file->r;
    const size_t from = p->from < whole->header_ends ? whole->header_ends : p->from;
    n2_plain_sight sight = {.as = &whole->plain};
    p->lines.see = see;
    p->lines.user = &sight;
    p->plain = from < p->to && n2_input_lines(&whole->input, from, p->to, &p->lines) &&
               n2_plain_seen(&sight, &lines);
    if (p->plain) p->of = (counts){lines, lines, 0, 0};
}

static n2ce_status read_rows(const sharing *s, n2_reader *r, some_rows *to) {
    enum { FIRST = 4096 };
    for (size_t n = 1; n > 0; to->n += n) {
        if (to->n == to->room) N2_TRY(make_room(s, to, to->room ? 2 * to->room : FIRST));
        N2_TRY(n2_reader_next(r, to->x + to->n * s->cols, to->room - to->n, &n));
    }
    return N2CE_OK;
}

/* All of a piece that is not plain. */
static n2ce_status read_piece(const sharing *s, piece *p) {
    n2_reader *r = NULL;
    N2_TRY(n2_reader_open_piece(s->ctx, p->file->path, &s->o, p->from, p->to, &r));
    if (!r) return N2CE_OK;
    const n2ce_status status = read_rows(s, r, &p->rows);
    p->of = (counts){p->rows.n, n2_reader_seen(r), n2_reader_dropped(r), 0};
    n2_reader_close(r);
    return status;
}

/* The file of a piece, open. */
static n2ce_status find_file(sharing *s, size_t number, source **out) {
    source *file = s->file;
    while (file + 1 < s->file + s->files && file[1].first <= number) file++;
    *out = file;
    if (file->r) return N2CE_OK;
    N2_TRY(n2_reader_open_file(s->ctx, file->path, &s->o, &file->r));
    return n2_reader_bytes(file->r) == file->bytes ? n2_reader_check_alike(s->whole, file->r)
                                                   : N2CE_EDATA;
}

static void close_files(sharing *s, size_t before) {
    for (; s->open < before; s->open++) {
        n2_reader_close(s->file[s->open].r);
        s->file[s->open].r = NULL;
    }
}

static n2ce_status take_pieces(sharing *s, size_t first) {
    source *file = NULL;
    for (size_t t = 0; t < s->at_once; t++) {
        piece *p = &s->piece[t];
        const size_t number = first + t;
        p->file = NULL;
        if (number >= s->pieces) continue;
        N2_TRY(find_file(s, number, &file));
        p->file = file;
        p->from = (number - file->first) * PIECE;
        p->to = p->from + PIECE < file->bytes ? p->from + PIECE : file->bytes;
        if (t == 0) close_files(s, (size_t)(file - s->file));
    }
    return N2CE_OK;
}

static n2ce_status read_pieces(sharing *s, size_t first) {
    N2_TRY(take_pieces(s, first));
    N2_TRY(n2_parallel_for(s->ctx, s->at_once, look_at_piece, s));
    n2ce_status status = N2CE_OK;
    n2_comm_alone(s->ctx);
    for (size_t t = 0; t < s->at_once && status == N2CE_OK; t++)
        if (!s->piece[t].plain) status = read_piece(s, &s->piece[t]);
    n2_comm_together(s->ctx);
    return status;
}

/* ---- the rows that are wanted -------------------------------------------- */

static void choose_rows(void *arg, size_t item, int worker) {
    (void)worker;
    const sharing *s = arg;
    piece *p = &s->piece[item];
    p->of.wanted = s->taker->choose(s->taker->user, p->origin, (size_t)p->of.kept, p->wanted);
}

/* How many of n wanted rows follow one another. */
static size_t neighbours(const uint64_t *wanted, size_t n) {
    size_t run = 1;
    while (run < n && wanted[run] == wanted[0] + run) run++;
    return run;
}

/* Of plain lines those between wanted ones are skipped. False: one is not what it seemed. */
static bool read_wanted(const piece *p, double *x) {
    const n2_plain_lines *as = &p->file->r->plain;
    const char *at = p->lines.bytes, *end = at + p->lines.n;
    uint64_t next = p->origin;
    for (size_t i = 0, run; i < p->of.wanted; i += run, x += run * as->cols) {
        run = neighbours(p->wanted + i, p->of.wanted - i);
        at = n2_plain_skip(at, end, (size_t)(p->wanted[i] - next));
        next = p->wanted[i] + run;
        size_t read = run > 1 ? n2_plain_rows(as, &at, end, run, x) : 0;
        for (; read < run; read++) /* one alone, or one without an end */
            if (!(at = n2_plain_read(as, at, end, x + read * as->cols))) return false;
    }
    return true;
}

static void copy_rows(void *arg, size_t item, int worker) {
    (void)worker;
    const sharing *s = arg;
    piece *p = &s->piece[item];
    if (p->of.wanted == 0) return;
    double *x = s->mine.x + p->at * s->cols;
    memcpy(s->mine.origin + p->at, p->wanted, p->of.wanted * sizeof *p->wanted);
    if (p->plain) {
        p->failed = !read_wanted(p, x);
        return;
    }
    for (size_t i = 0; i < p->of.wanted; i++, x += s->cols)
        memcpy(x, p->rows.x + (size_t)(p->wanted[i] - p->origin) * s->cols, s->cols * sizeof *x);
}

static n2ce_status room_for_wanted(const sharing *s, piece *p) {
    if (p->of.kept <= p->wanted_room) return N2CE_OK;
    n2_free(s->ctx, p->wanted);
    p->wanted_room = (size_t)p->of.kept;
    p->wanted = n2_alloc(s->ctx, p->wanted_room, sizeof *p->wanted);
    if (!p->wanted) p->wanted_room = 0;
    return p->wanted ? N2CE_OK : N2CE_ENOMEM;
}

/* This rank's, of those from this number on. *failed: a line is not what it seemed. */
static n2ce_status choose(sharing *s, uint64_t origin, bool *failed) {
    for (size_t t = 0; t < s->at_once; t++) {
        s->piece[t].origin = origin;
        origin += s->piece[t].of.kept;
        N2_TRY(room_for_wanted(s, &s->piece[t]));
    }
    N2_TRY(n2_parallel_for(s->ctx, s->at_once, choose_rows, s));
    s->mine.n = 0;
    for (size_t t = 0; t < s->at_once; t++) {
        s->piece[t].at = s->mine.n;
        s->mine.n += (size_t)s->piece[t].of.wanted;
    }
    if (s->mine.n > 0) N2_TRY(make_room(s, &s->mine, s->mine.n));
    if (s->mine.n > 0) N2_TRY(n2_parallel_for(s->ctx, s->at_once, copy_rows, s));
    *failed = false;
    for (size_t t = 0; t < s->at_once; t++) *failed |= s->piece[t].failed;
    return N2CE_OK;
}

/* ---- all of them --------------------------------------------------------- */

static counts sum_of_pieces(const sharing *s) {
    counts sum = {0};
    for (size_t t = 0; t < s->at_once; t++) {
        sum.kept += s->piece[t].of.kept;
        sum.seen += s->piece[t].of.seen;
        sum.dropped += s->piece[t].of.dropped;
        sum.wanted += s->piece[t].of.wanted;
    }
    return sum;
}

static n2ce_status tell_counts(sharing *s) {
    s->of[n2_rank(s->ctx)] = sum_of_pieces(s);
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

static n2ce_status share_turn(sharing *s, bool *failed) {
    const int ranks = n2_ranks(s->ctx), rank = n2_rank(s->ctx);
    uint64_t origin = s->all.kept;
    N2_TRY(tell_counts(s));
    for (int r = 0; r < rank; r++) origin += s->of[r].kept;
    for (int r = 0; r < ranks; r++) {
        s->all.kept += s->of[r].kept;
        s->all.seen += s->of[r].seen;
        s->all.dropped += s->of[r].dropped;
    }
    N2_TRY(choose(s, origin, failed));
    N2_TRY(n2_comm_any(s->ctx, failed));
    if (*failed) return N2CE_OK;
    N2_TRY(tell_counts(s));
    for (int r = 0; r < ranks; r++) N2_TRY(take_rows_of(s, r));
    return N2CE_OK;
}

/* A piece that cannot be read is no failure yet, unless it is for other reasons than the file. */
static n2ce_status run_turn(sharing *s, size_t first, bool *done) {
    const size_t mine = first + (size_t)n2_rank(s->ctx) * s->at_once;
    const n2ce_status status = read_pieces(s, mine);
    if (status == N2CE_ENOMEM) return status;
    bool stopped = n2_cancelled(s->ctx), failed = status != N2CE_OK || stopped;
    N2_TRY(n2_comm_any(s->ctx, &failed));
    if (failed) N2_TRY(n2_comm_any(s->ctx, &stopped));
    if (stopped) return N2CE_ECANCELED;
    if (!failed) N2_TRY(share_turn(s, &failed));
    *done = !failed;
    return N2CE_OK;
}

static n2ce_status make_pieces(sharing *s) {
    const size_t ranks = (size_t)n2_ranks(s->ctx);
    s->of = n2_alloc(s->ctx, ranks, sizeof *s->of);
    s->begin = n2_alloc(s->ctx, ranks + 1, sizeof *s->begin);
    s->piece = n2_alloc(s->ctx, s->at_once, sizeof *s->piece);
    if (!s->of || !s->begin || !s->piece) return N2CE_ENOMEM;
    for (size_t r = 0; r <= ranks; r++) s->begin[r] = r * sizeof *s->of;
    for (size_t t = 0; t < s->at_once; t++) {
        s->piece[t].lines.room = PIECE + BEYOND;
        s->piece[t].lines.buffer = n2_realloc(s->ctx, NULL, PIECE + BEYOND, 1);
        if (!s->piece[t].lines.buffer) return N2CE_ENOMEM;
    }
    return N2CE_OK;
}

static n2ce_status run_turns(sharing *s, bool *done) {
    const size_t turn = (size_t)n2_ranks(s->ctx) * s->at_once;
    N2_TRY(make_pieces(s));
    *done = true;
    for (size_t first = 0; first < s->pieces && *done; first += turn)
        N2_TRY(run_turn(s, first, done));
    return N2CE_OK;
}

static void sharing_free(sharing *s) {
    close_files(s, s->files);
    for (size_t t = 0; s->piece && t < s->at_once; t++) {
        n2_free(s->ctx, s->piece[t].lines.buffer);
        n2_free(s->ctx, s->piece[t].wanted);
        free_rows(s, &s->piece[t].rows);
    }
    free_rows(s, &s->mine);
    free_rows(s, &s->theirs);
    n2_free(s->ctx, s->file);
    n2_free(s->ctx, s->piece);
    n2_free(s->ctx, s->of);
    n2_free(s->ctx, s->begin);
}

/* Ranks may have other numbers of threads; turns have to be of the same pieces. */
static n2ce_status agree_on_turns(sharing *s) {
    enum { TURNS = 8 }; /* in which the ranks end together, nearly */
    const bool is_long = s->pieces >= (size_t)n2_ranks(s->ctx) * TURNS * A_RANK;
    int32_t said = n2_ctx_threads(s->ctx) < MOST_THREADS ? n2_ctx_threads(s->ctx) : MOST_THREADS;
    N2_TRY(n2_comm_broadcast(s->ctx, 0, &said, sizeof said));
    s->at_once = (size_t)said * A_THREAD;
    if (is_long && s->at_once < A_RANK) s->at_once = A_RANK;
    return N2CE_OK;
}

/* *bytes of all, 0 if one of them has none that can be cut. */
static n2ce_status find_files(sharing *s, n2_reader *whole, const char *path, size_t *bytes) {
    struct stat info;
    const size_t n = whole->files.n > 1 ? whole->files.n : 1;
    s->file = n2_alloc(s->ctx, n, sizeof *s->file);
    if (!s->file) return N2CE_ENOMEM;
    s->files = n;
    *bytes = 0;
    for (size_t i = 0; i < s->files; i++) {
        source *f = &s->file[i];
        f->path = whole->files.n > 1 ? whole->files.path[i] : path;
        f->bytes = i == 0 ? n2_reader_bytes(whole) : 0;
        if (i > 0 && stat(f->path, &info) == 0 && S_ISREG(info.st_mode))
            f->bytes = (size_t)info.st_size;
        f->first = s->pieces;
        s->pieces += (f->bytes + PIECE - 1) / PIECE;
        *bytes = f->bytes > 0 && (i == 0 || *bytes > 0) ? *bytes + f->bytes : 0;
    }
    return N2CE_OK;
}

n2ce_status n2_table_read_together(n2_reader *whole, const char *path, const n2_table_options *o,
                                   const n2_row_taker *taker, size_t *seen, size_t *dropped,
                                   bool *done) {
    n2ce_ctx *ctx = n2_reader_ctx(whole);
    sharing s = {.ctx = ctx, .whole = whole, .taker = taker, .cols = n2_reader_cols(whole)};
    size_t bytes;
    *done = false;
    if (whole->npy && n2_ranks(ctx) == 1) return N2CE_OK; /* which is as fast alone */
    n2ce_status status = find_files(&s, whole, path, &bytes);
    if (o) s.o = *o;
    s.o.header = n2_reader_header(whole); /* which was said already, if there was a doubt */
    if (status == N2CE_OK && bytes > PIECE) {
        status = agree_on_turns(&s);
        if (status == N2CE_OK) status = run_turns(&s, done);
    }
    *seen = (size_t)s.all.seen;
    *dropped = (size_t)s.all.dropped;
    *done &= s.all.kept > 0;
    sharing_free(&s);
    return status;
}
