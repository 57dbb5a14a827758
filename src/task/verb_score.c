/* score: log ratios of new rows, by a model that was fitted. */
#include "comm/comm.h"
#include "detect/detector_file.h"
#include "io/file.h"
#include "io/file_set.h"
#include "io/input.h"
#include "io/npy.h"
#include "ratio/score_rows.h"
#include "ratio_session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const n2ce_option score_options[] = {
    {"model", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "MODEL",
     "a model that n2ce fit wrote, or n2ce detect"},
    {"rows", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "ROWS",
     "rows to score: CSV or NPY, - for standard input, or 'part-*.csv' for several files"},
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "write the log ratios here, as NPY if it ends in .npy; default: standard output"},
    N2_FORCE_OPTION,
    N2_COLUMNS_OPTION,
    N2_HEADER_OPTION,
    N2_DROP_MISSING_OPTION,
    {"weights", 'w', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "write importance weights p_num/p_den instead of their logarithms"},
    N2_DEVICE_OPTION,
    N2_PRECISION_OPTION,
    {0},
};

enum { FLUSH = 1 << 20, FLUSH_AT_ONCE = 64 << 20 }; /* bytes */

typedef struct scores_out {
    n2ce_ctx *ctx;
    n2_text text;     /* not yet in the file */
    n2_new_file file; /* of text; if there is one, */
    bool streams;     /* it is written along the way */
    double *x;
    size_t n, room;
    bool npy, weights;
    const char *device;
    const char *what, *key; /* they are: in a sentence, and in JSON */
    const char *path;       /* of a piece of this file, */
    size_t from;            /* which begins at this byte; 0: of all */
} scores_out;

static n2ce_status beyond_numbers(const scores_out *out, size_t row) {
    char piece[300] = "";
    if (out->from > 0)
        snprintf(piece, sizeof piece, " of %.200s from byte %zu on", out->path, out->from);
    return n2_fail(
        out->ctx, N2CE_EDATA,
        "Row %zu%s has %s that is no finite number: its values are too far from those that "
        "the model was fitted to.%s",
        row, piece, out->weights ? "a weight" : "a score",
        out->weights ? " Leave --weights out." : " Leave that row out.");
}

static void flush(scores_out *out, size_t more_than) {
    if (!out->streams || out->text.length <= more_than) return;
    n2_new_file_add(&out->file, out->text.data, out->text.length);
    out->text.length = 0;
}

static n2ce_status make_room(scores_out *out, size_t n) {
    if (out->n + n <= out->room) return N2CE_OK;
    const size_t room = 2 * (out->n + n);
    double *x = n2_realloc(out->ctx, out->x, room, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    out->x = x;
    out->room = room;
    return N2CE_OK;
}

static n2ce_status add_scores(void *user, double *f, size_t n) {
    scores_out *out = user;
    for (size_t i = 0; i < n; i++) {
        if (out->weights) f[i] = exp(f[i]);
        if (!isfinite(f[i])) return beyond_numbers(out, out->n + i + 1);
        if (out->npy) continue;
        n2_text_add_number(&out->text, f[i]);
        n2_text_add_raw(&out->text, "\n", 1);
    }
    if (out->npy) N2_TRY(make_room(out, n));
    if (out->npy) memcpy(out->x + out->n, f, n * sizeof *f);
    out->n += n;
    flush(out, FLUSH);
    return N2CE_OK;
}

/* The list itself is the answer unless it went into a file. */
static n2ce_status write_scores(n2ce_ctx *ctx, const char *path, bool force, scores_out *out,
                                n2ce_answer *answer) {
    n2_writer w = n2_writer_new(ctx);
    n2ce_status status = N2CE_OK;
    if (path && out->npy) status = n2_npy_write(ctx, path, out->x, out->n, force);
    if (path) {
        n2_text_add(&w.text, "%s: %zu %s\n", path, out->n, out->what);
        n2_text_add(&w.brief, "%zu\n", out->n);
        n2_text_add(&w.json, "{\"rows\": %zu, \"device\": \"%s\", \"file\": ", out->n, out->device);
        n2_text_add_json_string(&w.json, path);
        n2_text_add(&w.json, "}\n");
    } else {
        n2_text_add_raw(&w.text, out->text.data, out->text.length);
        n2_text_add_raw(&w.brief, out->text.data, out->text.length);
        n2_text_add(&w.json, "{\"rows\": %zu, \"device\": \"%s\", \"%s\": [", out->n, out->device,
                    out->key);
        const size_t from = w.json.length, last_newline = out->n > 0;
        n2_text_add_raw(&w.json, out->text.data, out->text.length - last_newline);
        for (size_t i = from; i < w.json.length; i++)
            if (w.json.data[i] == '\n') w.json.data[i] = ',';
        n2_text_add(&w.json, "]}\n");
    }
    n2_text_add(&w.kept, "nothing\n");
    const n2ce_status taken = n2_writer_take(&w, answer);
    return status == N2CE_OK ? taken : status;
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Gives the scores of all rows to out. */
typedef n2ce_status score_fn(n2ce_ctx *ctx, const n2ce_options *o, scores_out *out);

/* A model and how its rows are opened. */
typedef struct ratio_scoring {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    n2ce_model *m;
    n2_device_choice choice;
    const char *path; /* of the rows */
} ratio_scoring;

/* All rows of the file, or those of a piece of it; there may be none. */
static n2ce_status score_rows(ratio_scoring *s, const size_t piece[2], scores_out *out) {
    n2_reader *r;
    N2_TRY(n2_model_open_rows(s->m, s->path, n2_header_of(s->o),
                              n2_options_flag(s->o, "drop-missing"),
                              n2ce_options_get(s->o, "columns"), piece, &r));
    if (!r) return N2CE_OK;
    const n2ce_status status = n2_model_score_rows(s->m, r, &s->choice, add_scores, out);
    n2_reader_close(r);
    return status;
}

/* ---- several ranks: pieces of the file, dealt out, in turns ---- */

/* Bytes of a piece. Of a long file the system reads ahead where ranks read much of it in one go. */
static size_t piece_of(size_t ranks, size_t bytes) {
    enum { SHORT = 8 << 20, LONG = 32 << 20, TURNS = 8 };
    return bytes / ranks / TURNS < LONG ? SHORT : LONG;
}

/* How a file is dealt out in turns: rank 0 gets less of it, the others a piece each. */
typedef struct deal {
    size_t first, piece, turn, bytes;
} deal;

/* Rank 0 adds what a rank has of its piece; the ranks come in order. */
static n2ce_status take_piece(void *user, int rank, const void *bytes, size_t n) {
    scores_out *out = user;
    (void)rank;
    if (out->npy) {
        N2_TRY(make_room(out, n / sizeof *out->x));
        memcpy(out->x + out->n, bytes, n);
        out->n += n / sizeof *out->x;
        return N2CE_OK;
    }
    uint64_t rows; /* behind their text */
    n -= sizeof rows;
    memcpy(&rows, (const char *)bytes + n, sizeof rows);
    out->n += (size_t)rows;
    n2_text_add_raw(&out->text, bytes, n);
    flush(out, FLUSH_AT_ONCE); /* the rest when the other ranks are at work again */
    return out->text.failed ? N2CE_ENOMEM : N2CE_OK;
}

/* What rank 0 writes for another rank takes a fifth of a piece's time. */
static deal deal_out(size_t ranks, size_t bytes) {
    const size_t piece = piece_of(ranks, bytes);
    const size_t first = ranks < 6 ? piece - (ranks - 1) * (piece / 5) : piece / 8;
    return (deal){first, piece, first + (ranks - 1) * piece, bytes};
}

/* The piece of this rank, of a turn that begins there. */
static void find_piece(const n2ce_ctx *ctx, const deal *d, size_t begin, size_t piece[2]) {
    const size_t rank = (size_t)n2_rank(ctx);
    const size_t from = begin + (rank ? d->first + (rank - 1) * d->piece : 0);
    const size_t to = from + (rank ? d->piece : d->first);
    piece[0] = from < d->bytes ? from : d->bytes;
    piece[1] = to < d->bytes ? to : d->bytes;
}

static n2ce_status score_turn(ratio_scoring *s, const deal *d, size_t begin, scores_out *mine,
                              scores_out *out) {
    size_t piece[2];
    find_piece(s->ctx, d, begin, piece);
    mine->n = mine->text.length = 0;
    mine->from = piece[0];
    n2_comm_alone(s->ctx);
    const n2ce_status status = piece[0] < piece[1] ? score_rows(s, piece, mine) : N2CE_OK;
    n2_comm_together(s->ctx);
    N2_TRY(status);
    const uint64_t rows = mine->n;
    if (!mine->npy) n2_text_add_raw(&mine->text, (const char *)&rows, sizeof rows);
    if (mine->text.failed) return N2CE_ENOMEM;
    const size_t n = mine->npy ? mine->n * sizeof *mine->x : mine->text.length;
    const void *scored = mine->npy ? (const void *)mine->x : mine->text.data;
    return n2_comm_collect(s->ctx, scored, n, take_piece, out);
}

static n2ce_status score_pieces(ratio_scoring *s, size_t bytes, scores_out *out) {
    scores_out mine = {
        .ctx = s->ctx, .text = n2_text_new(s->ctx), .npy = out->npy, .path = s->path};
    mine.weights = out->weights;
    n2ce_status status = N2CE_OK;
    const deal d = deal_out((size_t)n2_ranks(s->ctx), bytes);
    for (size_t begin = 0; begin < bytes && status == N2CE_OK; begin += d.turn) {
        status = score_turn(s, &d, begin, &mine, out);
        flush(out, FLUSH);
        n2_progress(s->ctx, (double)begin, (double)bytes);
    }
    n2_text_free(&mine.text);
    n2_free(s->ctx, mine.x);
    if (status != N2CE_OK || out->n > 0 || n2_rank(s->ctx) > 0) return status;
    return n2_fail(s->ctx, N2CE_EDATA, "%s has no rows to score.", s->path);
}

static n2ce_status score_shared(ratio_scoring *s, scores_out *out) {
    size_t bytes = 0;
    bool can = false;
    if (n2_ranks(s->ctx) > 1) N2_TRY(n2_reader_can_cut(s->ctx, s->path, &bytes, &can));
    return can ? score_pieces(s, bytes, out) : score_rows(s, NULL, out);
}

static n2ce_status score_files(ratio_scoring *s, scores_out *out) {
    n2_file_set files;
    N2_TRY(n2_file_set_find(s->ctx, n2ce_options_get(s->o, "rows"), &files));
    n2ce_status status = N2CE_OK;
    for (size_t i = 0; i < files.n && status == N2CE_OK; i++) {
        s->path = files.path[i];
        status = score_shared(s, out);
    }
    n2_file_set_free(&files);
    return status;
}

static n2ce_status score_by_ratio(n2ce_ctx *ctx, const n2ce_options *o, scores_out *out) {
    ratio_scoring s = {.ctx = ctx, .o = o};
    N2_TRY(n2_choice_of_options(ctx, o, &s.choice));
    N2_TRY(n2ce_model_load(ctx, n2ce_options_get(o, "model"), &s.m));
    out->what =
        out->weights ? "importance weights p_num/p_den" : "log ratios ln p_num/p_den in nats";
    out->key = out->weights ? "weights" : "log_ratios";
    const n2ce_status status = score_files(&s, out);
    out->device = n2_choice_name(s.m->ratio->critics > 0 ? &s.choice : NULL);
    n2ce_model_free(s.m);
    return status;
}

enum { DETECT_ROWS = 2048 };

static n2ce_status detect_all(n2_detector *d, n2_reader *r, scores_out *out) {
    double score[DETECT_ROWS], *x = n2_alloc(d->ctx, DETECT_ROWS * d->cols, sizeof *x);
    n2ce_status status = x ? N2CE_OK : N2CE_ENOMEM;
    for (size_t n = 1; n > 0 && status == N2CE_OK;) {
        status = n2_reader_next(r, x, DETECT_ROWS, &n);
        if (status == N2CE_OK && n > 0) status = n2_detector_score(d, x, n, score, NULL);
        if (status == N2CE_OK) status = add_scores(out, score, n);
    }
    n2_free(d->ctx, x);
    return status;
}

static n2ce_status score_by_detector(n2ce_ctx *ctx, const n2ce_options *o, scores_out *out) {
    n2_device_choice choice;
    n2_detector *d;
    n2_reader *r;
    if (out->weights || *n2ce_options_get(o, "columns") || n2_options_flag(o, "drop-missing"))
        return n2_fail(
            ctx, N2CE_EINVAL,
            "A model of n2ce detect has scores, its own columns, and a place for missing "
            "values: leave --weights, --columns and --drop-missing out.");
    N2_TRY(n2_choice_of_options(ctx, o, &choice));
    N2_TRY(n2_detector_load(ctx, n2ce_options_get(o, "model"), &choice, &d));
    out->what = "scores, larger is odder";
    out->key = "scores";
    n2ce_status status = n2_detector_open_rows(d, n2ce_options_get(o, "rows"), n2_header_of(o), &r);
    if (status == N2CE_OK) {
        status = detect_all(d, r, out);
        n2_reader_close(r);
    }
    out->device = n2_choice_name(&choice);
    n2_detector_free(d);
    return status;
}

/* The file that text goes to has its name when all is in it. */
static n2ce_status score_into(n2ce_ctx *ctx, const n2ce_options *o, score_fn *score,
                              scores_out *out) {
    const char *path = n2ce_options_get(o, "output");
    out->streams = path && !out->npy;
    if (!out->streams) return score(ctx, o, out);
    N2_TRY(n2_new_file_begin(ctx, path, &out->file));
    out->file.keep = !n2_options_flag(o, "force");
    n2ce_status status = score(ctx, o, out);
    if (status == N2CE_OK && out->text.failed) status = N2CE_ENOMEM;
    if (status == N2CE_OK) flush(out, 0);
    return n2_new_file_end(&out->file, status);
}

static n2ce_status score_file(n2ce_ctx *ctx, const n2ce_options *o, score_fn *score,
                              n2ce_answer *answer) {
    const char *path = n2ce_options_get(o, "output");
    scores_out out = {.ctx = ctx, .text = n2_text_new(ctx), .npy = path && ends_with(path, ".npy")};
    out.weights = n2_options_flag(o, "weights");
    n2ce_status status = score_into(ctx, o, score, &out);
    if (status == N2CE_OK && out.text.failed) status = N2CE_ENOMEM;
    if (status == N2CE_OK)
        status = write_scores(ctx, path, n2_options_flag(o, "force"), &out, answer);
    n2_text_free(&out.text);
    n2_free(ctx, out.x);
    return status;
}

static n2ce_status run_score(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    N2_TRY(n2_option_needed(ctx, o, "score", "model"));
    N2_TRY(n2_option_needed(ctx, o, "score", "rows"));
    const char *path = n2ce_options_get(o, "output"), *model = n2ce_options_get(o, "model");
    if (path) N2_TRY(n2_file_check_output(ctx, path, n2_options_flag(o, "force")));
    score_fn *score = n2_is_detector_file(ctx, model) ? score_by_detector : score_by_ratio;
    return score_file(ctx, o, score, answer);
}

const n2ce_task n2_score_task = {
    .name = "score",
    .summary = "log ratios of new rows, by a fitted model",
    .description =
        "Writes ln p_num(x)/p_den(x) in nats, one number a row. Positive: the row is more\n"
        "likely under the numerator. Columns are found by the names the model was fitted\n"
        "to; --columns chooses others, in the model's order. By a model of n2ce detect: how odd\n"
        "each row is.\n",
    .examples = "n2ce score model.safetensors rows.csv > log_ratios.txt\n"
                "n2ce score model.safetensors rows.npy -o log_ratios.npy\n",
    .options = score_options,
    .operands = "model rows",
    .run = run_score,
};
