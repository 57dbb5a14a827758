#include "kept_answers.h"

#include "io/file.h"
#include "task/task.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* A folder stands for the file in it, and for what a study that was killed kept beside it. */
static n2ce_status read_folder(n2ce_ctx *ctx, const char *folder, const char *name,
                               n2_answer_reader *read, void *user) {
    char path[PATH_MAX], part[PATH_MAX], part_name[NAME_MAX];
    snprintf(part_name, sizeof part_name, "%s" N2_PART, name);
    N2_TRY(n2_path_join(ctx, path, sizeof path, folder, name));
    N2_TRY(n2_path_join(ctx, part, sizeof part, folder, part_name));
    const bool kept = access(part, F_OK) == 0;
    if (kept) N2_TRY(read_file(ctx, part, read, user));
    return kept && access(path, F_OK) != 0 ? N2CE_OK : read_file(ctx, path, read, user);
}

static n2ce_status read_given(n2ce_ctx *ctx, const char *at, size_t n, const char *name,
                              n2_answer_reader *read, void *user) {
    char given[PATH_MAX];
    struct stat info;
    if (n == 0 || n >= PATH_MAX)
        return n2_fail(ctx, N2CE_EINVAL,
                       "A list of files has one without a name, or with too long a name.");
    memcpy(given, at, n);
    given[n] = '\0';
    const bool folder = stat(given, &info) == 0 && S_ISDIR(info.st_mode);
    return folder ? read_folder(ctx, given, name, read, user) : read_file(ctx, given, read, user);
}

n2ce_status n2_answers_read(n2ce_ctx *ctx, const char *paths, const char *name,
                            n2_answer_reader *read, void *user) {
    for (const char *at = paths;; at++) {
        const size_t n = strcspn(at, ",");
        N2_TRY(read_given(ctx, at, n, name, read, user));
        at += n;
        if (!*at) return N2CE_OK;
    }
}
