#include "kept_answers.h"

#include "io/file.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static n2ce_status read_file(n2ce_ctx *ctx, const char *path, n2_answer_reader *read, void *user) {
    n2_text text = n2_text_new(ctx);
    n2ce_status status = n2_file_read(ctx, path, &text);
    char *strings = status == N2CE_OK ? n2_alloc(ctx, text.length + 1, 1) : NULL;
    if (status == N2CE_OK && !strings) status = N2CE_ENOMEM;
    if (status == N2CE_OK) {
        n2_json json = n2_json_new(ctx, path, text.data ? text.data : "", text.length, strings);
        status = read(&json, user);
    }
    n2_free(ctx, strings);
    n2_text_free(&text);
    return status;
}

/* A folder stands for the file in it. */
static n2ce_status find_file(n2ce_ctx *ctx, const char *at, size_t n, const char *name,
                             char path[PATH_MAX]) {
    char given[PATH_MAX];
    struct stat info;
    if (n == 0 || n >= PATH_MAX)
        return n2_fail(ctx, N2CE_EINVAL,
                       "A list of files has one without a name, or with too long a name.");
    memcpy(given, at, n);
    given[n] = '\0';
    if (stat(given, &info) == 0 && S_ISDIR(info.st_mode))
        return n2_path_join(ctx, path, PATH_MAX, given, name);
    memcpy(path, given, n + 1);
    return N2CE_OK;
}

n2ce_status n2_answers_read(n2ce_ctx *ctx, const char *paths, const char *name,
                            n2_answer_reader *read, void *user) {
    for (const char *at = paths;; at++) {
        char path[PATH_MAX];
        const size_t n = strcspn(at, ",");
        N2_TRY(find_file(ctx, at, n, name, path));
        N2_TRY(read_file(ctx, path, read, user));
        at += n;
        if (!*at) return N2CE_OK;
    }
}
