#include "own_file.h"

#include "file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { AT_ONCE = 4 };

/* A file that is the context's own, and what it looked like when it became so: numbers of files are
 * given again when a file is gone, its time and size are not likely to be. */
typedef struct own_file {
    char path[PATH_MAX];
    struct stat seen;
} own_file;

typedef struct own_files {
    own_file list[AT_ONCE];
    size_t next; /* that is forgotten for another */
} own_files;

static own_files *all_of(n2ce_ctx *ctx) {
    static const char key;
    return n2_ctx_attached(ctx, &key, sizeof(own_files), NULL, NULL);
}

static own_file *find(own_files *all, const char *path) {
    for (size_t i = 0; i < AT_ONCE; i++)
        if (strcmp(all->list[i].path, path) == 0) return &all->list[i];
    return NULL;
}

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool is_own(own_files *all, const char *path) {
    struct stat now;
    const own_file *own = find(all, path);
    return own && stat(path, &now) == 0 && is_same(&now, &own->seen);
}

n2ce_status n2_own_file_claim(n2ce_ctx *ctx, const char *path) {
    struct stat now;
    own_files *all = all_of(ctx);
    if (!all) return N2CE_ENOMEM;
    if (!*path || strlen(path) >= PATH_MAX || stat(path, &now) != 0) return N2CE_OK;
    own_file *own = find(all, path);
    if (!own) own = &all->list[all->next++ % AT_ONCE];
    snprintf(own->path, sizeof own->path, "%s", path);
    own->seen = now;
    return N2CE_OK;
}

n2ce_status n2_own_file_write(n2ce_ctx *ctx, const char *path, const char *bytes, size_t n) {
    own_files *all = all_of(ctx);
    if (!all) return N2CE_ENOMEM;
    n2_file_writer *write = is_own(all, path) ? n2_file_write : n2_file_create;
    const n2ce_status status = write(ctx, path, bytes, n);
    if (status == N2CE_EEXIST)
        return n2_fail(ctx, status, "%s was made by somebody else meanwhile and is not replaced.",
                       path);
    return status == N2CE_OK ? n2_own_file_claim(ctx, path) : status;
}

void n2_own_file_remove(n2ce_ctx *ctx, const char *path) {
    struct stat there;
    if (stat(path, &there) != 0) return; /* which needs no memory */
    own_files *all = all_of(ctx);
    if (all && is_own(all, path)) n2_file_remove(ctx, path);
}
