#include "study_runner.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "io/file.h"
#include "io/own_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static void *lend_memory(void *user, void *ptr, size_t size) {
    n2_runner *r = user;
    void *block = NULL;
    if (size > 0)
        block = n2_realloc(r->ctx, ptr, size, 1);
    else
        n2_free(r->ctx, ptr);
    r->out_of_memory |= size > 0 && !block;
    return block;
}

static void *lend_zeros(void *user, size_t bytes) {
    n2_runner *r = user;
    void *block = n2_alloc(r->ctx, bytes, 1);
    r->out_of_memory |= !block;
    return block;
}

static void pass_log(void *user, n2ce_log_level level, const char *text) {
    const n2_runner *r = user;
    n2_log(r->ctx, level, "%s", text);
}

static void pass_progress(void *user, double done, double total) {
    const n2_runner *r = user;
    if (n2_cancelled(r->ctx)) n2ce_ctx_cancel(r->inner);
    n2_progress(r->ctx, r->done + done / total, r->total);
}

n2ce_status n2_runner_open(n2ce_ctx *ctx, double total, n2_runner *r) {
    *r = (n2_runner){.ctx = ctx, .total = total};
    n2ce_ctx_options o = N2CE_CTX_OPTIONS_INIT;
    o.threads = n2_ctx_threads(ctx);
    o.alloc = lend_memory;
    o.log = pass_log;
    o.progress = pass_progress;
    o.alloc_user = o.log_user = o.progress_user = r;
    N2_TRY(n2ce_ctx_new(&r->inner, &o));
    n2_ctx_set_zeroed(r->inner, lend_zeros);
    return N2CE_OK;
}

void n2_runner_close(n2_runner *r) { n2ce_ctx_free(r->inner); }

static n2ce_status write_part(n2_runner *r, const char *folder, const char *json) {
    char path[PATH_MAX], name[NAME_MAX];
    snprintf(name, sizeof name, "%s" N2_PART, r->keeper.file);
    N2_TRY(n2_path_join(r->ctx, path, sizeof path, folder, name));
    N2_TRY(n2_folder_make(r->ctx, folder));
    return n2_own_file_write(r->ctx, path, json, strlen(json));
}

/* Whether it can be written or not, the study goes on. */
static void keep(n2_runner *r) {
    enum { SECONDS = 10 };
    const n2_study_keeper *k = &r->keeper;
    const char *folder = k->file ? n2ce_options_get(k->options, "report") : NULL;
    if (!folder || n2_seconds() - k->at < SECONDS) return;
    n2ce_answer *answer = n2_alloc(r->ctx, 1, sizeof *answer);
    if (!answer) return;
    answer->ctx = r->ctx;
    answer->arena = n2_arena_new(r->ctx);
    n2ce_status status = k->show(r->ctx, k->study, answer);
    if (status == N2CE_OK) status = write_part(r, folder, answer->json);
    if (status != N2CE_OK)
        n2_log(r->ctx, N2CE_LOG_WARNING, "What is finished so far was not kept: %s",
               n2ce_errmsg(r->ctx));
    n2ce_answer_free(answer);
    r->keeper.at = n2_seconds();
}

void n2_runner_keep(n2_runner *r, const n2_study_keeper *keeper) {
    r->keeper = *keeper;
    r->keeper.at = n2_seconds();
}

void n2_runner_done(n2_runner *r, double done) {
    const bool more = done > r->done;
    r->done = done;
    n2_progress(r->ctx, done, r->total);
    if (more) keep(r);
}

n2ce_status n2_share_string(n2ce_ctx *ctx, n2_arena *arena, int root, const char **s) {
    size_t room = *s ? strlen(*s) + 1 : 0;
    N2_TRY(n2_comm_broadcast(ctx, root, &room, sizeof room));
    char *copy = n2_arena_alloc(arena, room + 1, 1);
    if (!copy) return N2CE_ENOMEM;
    if (n2_rank(ctx) == root && room) memcpy(copy, *s, room);
    *s = room ? copy : NULL;
    return n2_comm_broadcast(ctx, root, copy, room);
}

n2ce_status n2_share_text(n2ce_ctx *ctx, int root, n2_text *text) {
    size_t length = text->length;
    N2_TRY(n2_comm_broadcast(ctx, root, &length, sizeof length));
    char *copy = n2_alloc(ctx, length + 1, 1);
    if (!copy) return N2CE_ENOMEM;
    if (n2_rank(ctx) == root && length) memcpy(copy, text->data, length);
    const n2ce_status status = n2_comm_broadcast(ctx, root, copy, length);
    if (n2_rank(ctx) != root) {
        n2_text_free(text);
        *text = n2_text_new(ctx);
        n2_text_add_raw(text, copy, length);
    }
    n2_free(ctx, copy);
    return status;
}
