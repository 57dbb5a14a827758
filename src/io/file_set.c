#define _GNU_SOURCE /* GLOB_BRACE */
#include "file_set.h"

#include "input.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

#ifndef GLOB_BRACE /* a wish: who has none has no lists */
#define GLOB_BRACE 0
#endif

static char *copy_text(n2ce_ctx *ctx, const char *text) {
    const size_t n = strlen(text) + 1;
    char *copy = n2_alloc(ctx, n, 1);
    if (copy) memcpy(copy, text, n);
    return copy;
}

static n2ce_status take_names(n2ce_ctx *ctx, char *const *names, size_t n, n2_file_set *out) {
    out->ctx = ctx;
    out->path = n2_alloc(ctx, n, sizeof *out->path);
    if (!out->path) return N2CE_ENOMEM;
    for (; out->n < n; out->n++) {
        out->path[out->n] = copy_text(ctx, names[out->n]);
        if (!out->path[out->n]) return N2CE_ENOMEM;
    }
    return N2CE_OK;
}

static n2ce_status find_names(n2ce_ctx *ctx, const char *pattern, n2_file_set *out) {
    glob_t found;
    const int code = glob(pattern, GLOB_BRACE, NULL, &found);
    if (code == GLOB_NOSPACE) return N2CE_ENOMEM;
    if (code != 0)
        return n2_fail(ctx, N2CE_EIO, "%s: there is no file of such a name. Check the pattern.",
                       n2_show_all(pattern).text);
    const n2ce_status status = take_names(ctx, found.gl_pathv, found.gl_pathc, out);
    globfree(&found);
    return status;
}

n2ce_status n2_file_set_find(n2ce_ctx *ctx, const char *pattern, n2_file_set *out) {
    *out = (n2_file_set){0};
    char *const itself = (char *)(uintptr_t)pattern;
    const bool is_name = !strpbrk(pattern, "*?[{") || access(pattern, F_OK) == 0;
    const n2ce_status status =
        is_name ? take_names(ctx, &itself, 1, out) : find_names(ctx, pattern, out);
    if (status != N2CE_OK) n2_file_set_free(out);
    return status;
}

void n2_file_set_free(n2_file_set *set) {
    for (size_t i = 0; i < set->n; i++) n2_free(set->ctx, set->path[i]);
    n2_free(set->ctx, set->path);
    *set = (n2_file_set){0};
}
