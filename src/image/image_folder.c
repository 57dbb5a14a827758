/* A folder of PNGs as one set of pictures. */
#include "image_formats.h"
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct folder {
    n2ce_ctx *ctx;
    const char *path;
    char **names;
    size_t n, room;
} folder;

static void free_names(folder *f) {
    for (size_t i = 0; i < f->n; i++) n2_free(f->ctx, f->names[i]);
    n2_free(f->ctx, f->names);
}

static n2ce_status add_name(folder *f, const char *name) {
    const size_t bytes = strlen(name) + 1;
    if (f->n == f->room) {
        const size_t room = f->room ? 2 * f->room : 64;
        char **names = n2_realloc(f->ctx, f->names, room, sizeof *names);
        if (!names) return N2CE_ENOMEM;
        f->names = names;
        f->room = room;
    }
    char *copy = n2_alloc(f->ctx, bytes, 1);
    if (!copy) return N2CE_ENOMEM;
    f->names[f->n++] = memcpy(copy, name, bytes);
    return N2CE_OK;
}

static bool is_png_name(const char *name) {
    const size_t n = strlen(name);
    return n > 4 && name[0] != '.' && strcasecmp(name + n - 4, ".png") == 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static n2ce_status list_names(folder *f) {
    n2ce_status status = N2CE_OK;
    DIR *dir = opendir(f->path);
    if (!dir)
        return n2_fail(f->ctx, N2CE_EIO,
                       "%s: the folder could not be read: %s. Check the path and your permissions.",
                       f->path, strerror(errno));
    for (struct dirent *d; status == N2CE_OK && (d = readdir(dir));)
        if (is_png_name(d->d_name)) status = add_name(f, d->d_name);
    closedir(dir);
    N2_TRY(status);
    if (f->n == 0)
        return n2_fail(f->ctx, N2CE_EDATA,
                       "%s: there is no file *.png in this folder. Name another, or a file.",
                       f->path);
    qsort(f->names, f->n, sizeof *f->names, by_name);
    return N2CE_OK;
}

/* Puts picture i, which is alone in `one`, to its place; the first says how large they all are. */
static n2ce_status place(const folder *f, size_t i, const char *path, const n2_images *one,
                         n2_images **all) {
    if (one->n != 1)
        return n2_fail(f->ctx, N2CE_EDATA, "%s is named *.png and is no PNG. Convert it.", path);
    if (i == 0) N2_TRY(n2_images_new(f->ctx, f->n, one->height, one->width, one->channels, all));
    const n2_images *a = *all;
    const size_t bytes = a->height * a->width * a->channels;
    if (one->height != a->height || one->width != a->width || one->channels != a->channels)
        return n2_fail(
            f->ctx, N2CE_EDATA,
            "%s is %zu x %zu with %zu channels, and %s, the first in its folder, is %zu x "
            "%zu with %zu. Pictures of a folder must be of one size: scale or move them.",
            path, one->height, one->width, one->channels, f->names[0], a->height, a->width,
            a->channels);
    memcpy(a->pixels + i * bytes, one->pixels, bytes);
    return N2CE_OK;
}

static n2ce_status read_one(const folder *f, size_t i, n2_images **all) {
    char path[PATH_MAX];
    n2_images *one;
    N2_TRY(n2_path_join(f->ctx, path, sizeof path, f->path, f->names[i]));
    N2_TRY(n2_image_file_read(f->ctx, path, &one));
    const n2ce_status status = place(f, i, path, one, all);
    n2_images_free(one);
    return status;
}

static n2ce_status read_folder(n2ce_ctx *ctx, const char *path, n2_images **out) {
    folder f = {.ctx = ctx, .path = path};
    n2ce_status status = list_names(&f);
    for (size_t i = 0; status == N2CE_OK && i < f.n; i++) status = read_one(&f, i, out);
    free_names(&f);
    if (status == N2CE_OK) {
        (*out)->format = "a folder of PNGs";
        return N2CE_OK;
    }
    n2_images_free(*out);
    *out = NULL;
    return status;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool n2_may_be_images(n2ce_ctx *ctx, const char *path) {
    return is_folder(path) || n2_image_file_may_be(ctx, path);
}

n2ce_status n2_images_read(n2ce_ctx *ctx, const char *path, n2_images **out) {
    *out = NULL;
    return is_folder(path) ? read_folder(ctx, path, out) : n2_image_file_read(ctx, path, out);
}

/* ---- writing ---- */

static n2ce_status path_of(n2ce_ctx *ctx, const char *where, size_t i, char *path) {
    char name[32];
    snprintf(name, sizeof name, "%05zu.png", i);
    return n2_path_join(ctx, path, PATH_MAX, where, name);
}

n2ce_status n2_images_check_folder(n2ce_ctx *ctx, const char *path, size_t n, bool overwrite) {
    char one[PATH_MAX];
    N2_TRY(n2_folder_check_writable(ctx, path));
    for (size_t i = 0; i < n && !overwrite; i++) {
        N2_TRY(path_of(ctx, path, i, one));
        N2_TRY(n2_file_check_absent(ctx, one));
    }
    N2_TRY(path_of(ctx, path, n, one));
    if (access(one, F_OK) != 0) return N2CE_OK;
    return n2_fail(
        ctx, N2CE_EEXIST,
        "%s is there already, and would seem one of the %zu pictures. Remove it, or name "
        "another folder.",
        one, n);
}

/* The first n pictures, and the folder unless it was there: half of a result is none. */
static void take_back(n2ce_ctx *ctx, const char *path, size_t n, bool was_there) {
    char one[PATH_MAX];
    for (size_t i = 0; i < n; i++)
        if (path_of(ctx, path, i, one) == N2CE_OK) n2_file_remove(ctx, one);
    if (!was_there) n2_file_remove(ctx, path);
}

n2ce_status n2_images_write_folder(const n2_images *images, const char *path, bool overwrite) {
    char one[PATH_MAX];
    n2_file_writer *write = overwrite ? n2_file_write : n2_file_create;
    N2_TRY(n2_images_check_folder(images->ctx, path, images->n, overwrite));
    const bool was_there = is_folder(path);
    N2_TRY(n2_folder_make(images->ctx, path));
    n2ce_status status = N2CE_OK;
    size_t i = 0;
    for (; i < images->n && status == N2CE_OK; i++) {
        status = path_of(images->ctx, path, i, one);
        if (status == N2CE_OK) status = n2_images_write_png(images, i, one, write);
    }
    if (status != N2CE_OK && !overwrite) take_back(images->ctx, path, i - 1, was_there);
    return status;
}
