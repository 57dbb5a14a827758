#define _GNU_SOURCE /* realpath, renameat2, sync_file_range */

#include "file.h"

#include "comm/comm.h"
#include "input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rank 0 alone writes. Others find every place free and put nothing there: whether it is free, and
 * whether that worked, is rank 0's to say. */
static bool is_silent(const n2ce_ctx *ctx) { return ctx && n2_world_rank(ctx) > 0; }

static n2ce_status io_failure(n2ce_ctx *ctx, const char *what, const char *path, int error) {
    return n2_fail(ctx, N2CE_EIO, "%s: %s: %s. Check the path, your permissions and free space.",
                   path, what, strerror(error));
}

n2ce_status n2_folder_make(n2ce_ctx *ctx, const char *path) {
    if (is_silent(ctx)) return N2CE_OK;
    if (mkdir(path, 0777) == 0) return N2CE_OK;
    const int error = errno;
    struct stat info;
    if (error == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return N2CE_OK;
    if (error == EEXIST)
        return n2_fail(ctx, N2CE_EIO, "%s is a file, not a folder. Name another folder.", path);
    return io_failure(ctx, "the folder could not be made", path, error);
}

n2ce_status n2_path_join(n2ce_ctx *ctx, char *buffer, size_t size, const char *folder,
                         const char *name) {
    const int n = snprintf(buffer, size, "%s/%s", folder, name);
    if (n >= 0 && (size_t)n < size) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "The path %.60s.../%s is too long.", folder, name);
}

/* Where a file of this name is written. */
static n2ce_status find_place(n2ce_ctx *ctx, const char *path, char place[PATH_MAX]) {
    struct stat info;
    const int n = snprintf(place, PATH_MAX, "%s", path);
    if (n < 0 || n >= PATH_MAX) return io_failure(ctx, "cannot be written", path, ENAMETOOLONG);
    if (lstat(path, &info) != 0) return N2CE_OK;
    if (S_ISLNK(info.st_mode) && !realpath(path, place))
        return n2_fail(ctx, N2CE_EIO, "%s is a link that leads nowhere. Name a file.", path);
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EIO,
                   "%s is %s, which is not replaced. Name a file; without one, results go to "
                   "standard output.",
                   path, S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
}

/* The folder that a file is in, with a slash, or "./". */
static void folder_of(const char *place, char folder[PATH_MAX]) {
    const char *slash = strrchr(place, '/');
    const size_t n = slash ? (size_t)(slash - place) + 1 : 0;
    memcpy(folder, n ? place : "./", n ? n : 2);
    folder[n ? n : 2] = '\0';
}

/* ---- temporary files -------------------------------------------------------
 *
 * A file without a name, where the system has such: it goes with the process, whatever ends that.
 * Else PATH.PROCESS-NUMBER, locked by who writes it for as long as it has that name: the lock goes
 * with the process, so that a file that can be locked is nobody's. */

/* The name by which a file without one is given one. */
static const char *link_of(int file, char link[64]) {
    snprintf(link, 64, "/proc/self/fd/%d", file);
    return link;
}

/* -1: the system, or the file system, has none. */
static int open_nameless(const char *place) {
#ifdef O_TMPFILE
    char folder[PATH_MAX];
    if (access("/proc/self/fd", X_OK) != 0) return -1;
    folder_of(place, folder);
    const int file = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file >= 0) (void)flock(file, LOCK_EX); /* it may get a temporary name */
    return file;
#else
    (void)place;
    return -1;
#endif
}

/* False: it was taken for nobody's before it was locked, and is gone. */
static bool lock_new(int file) {
    struct stat info;
    if (flock(file, LOCK_EX) != 0) return true; /* a file system without locks: nobody cleans it */
    return fstat(file, &info) == 0 && info.st_nlink > 0;
}

enum { ATTEMPTS = 1000 };

static bool temporary_name(const char *path, int attempt, char temporary[PATH_MAX]) {
    const int n = snprintf(temporary, PATH_MAX, "%s.%ld-%d", path, (long)getpid(), attempt);
    if (n < 0 || n >= PATH_MAX) errno = ENAMETOOLONG;
    return n >= 0 && n < PATH_MAX;
}

/* Opens a new file beside its final place; `temporary` receives its name. */
static int open_temporary(const char *path, char temporary[PATH_MAX]) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (!temporary_name(path, attempt, temporary)) return -1;
        const int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 && lock_new(file)) return file;
        if (file < 0 && errno != EEXIST) return -1;
        if (file >= 0) close(file);
    }
    return -1;
}

/* Whether `name` is `base` with the ending of a temporary file. */
static bool is_temporary_of(const char *name, const char *base) {
    const size_t n = strlen(base);
    if (strncmp(name, base, n) != 0 || name[n] != '.') return false;
    const char *at = name + n + 1;
    const size_t process = strspn(at, "0123456789");
    if (process == 0 || at[process] != '-') return false;
    at += process + 1;
    const size_t number = strspn(at, "0123456789");
    return number > 0 && at[number] == '\0';
}

static void remove_if_nobodys(const char *path) {
    const int file = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) (void)unlink(path);
    (void)close(file);
}

/* What processes that were killed left of this file. */
static void remove_orphans(const char *place) {
    char folder[PATH_MAX], path[PATH_MAX];
    const char *slash = strrchr(place, '/'), *base = slash ? slash + 1 : place;
    folder_of(place, folder);
    DIR *list = opendir(folder);
    if (!list) return;
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (!is_temporary_of(entry->d_name, base)) continue;
        const int n = snprintf(path, sizeof path, "%s%s", folder, entry->d_name);
        if (n > 0 && (size_t)n < sizeof path) remove_if_nobodys(path);
    }
    (void)closedir(list);
}

/* Where a file is tried for a folder: in it or, if it is to be made, beside it. The folder itself
 * is not made for that: who removed it again could remove it from under somebody who writes there.
 */
static n2ce_status trial_name(n2ce_ctx *ctx, const char *path, bool there, char name[PATH_MAX]) {
    if (there) return n2_path_join(ctx, name, PATH_MAX, path, ".n2ce");
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    if (n == 0 || n >= PATH_MAX)
        return io_failure(ctx, "the folder could not be made", path, n ? ENAMETOOLONG : ENOENT);
    memcpy(name, path, n);
    name[n] = '\0';
    return N2CE_OK;
}

/* What is meant as standard output is not a folder of that name; a link that leads nowhere is no
 * place for one. `trial`: trial_name. */
static n2ce_status check_folder_name(n2ce_ctx *ctx, const char *path, bool there,
                                     const char *trial) {
    struct stat info;
    if (strcmp(path, "-") == 0)
        return n2_fail(ctx, N2CE_EINVAL,
                       "\"-\" names no folder to write into. Write ./- for one of that name.");
    if (there || lstat(trial, &info) != 0) return N2CE_OK;
    return n2_fail(ctx, N2CE_EIO, "%s is a link that leads nowhere. Name another folder.", path);
}

n2ce_status n2_folder_check_writable(n2ce_ctx *ctx, const char *path) {
    char name[PATH_MAX], temporary[PATH_MAX];
    struct stat info;
    if (is_silent(ctx)) return N2CE_OK;
    const bool there = stat(path, &info) == 0;
    N2_TRY(trial_name(ctx, path, there, name));
    N2_TRY(check_folder_name(ctx, path, there, name));
    if (there && !S_ISDIR(info.st_mode)) return n2_folder_make(ctx, path);
    const int file = open_temporary(name, temporary), error = errno;
    if (file < 0)
        return io_failure(ctx,
                          there ? "nothing can be written there" : "the folder could not be made",
                          path, error);
    close(file);
    unlink(temporary);
    return N2CE_OK;
}

static n2ce_status already_there(n2ce_ctx *ctx, const char *path) {
    return n2_fail(ctx, N2CE_EEXIST,
                   "%s exists already. Use --force to replace it, or name another place.", path);
}

n2ce_status n2_file_check_absent(n2ce_ctx *ctx, const char *path) {
    struct stat info;
    if (is_silent(ctx)) return N2CE_OK;
    return lstat(path, &info) != 0 ? N2CE_OK : already_there(ctx, path);
}

static bool write_all(int file, const char *bytes, size_t n) {
    while (n > 0) {
        const ssize_t written = write(file, bytes, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}

/* With a name or without. */
static n2ce_status begin(n2ce_ctx *ctx, const char *path, bool named, n2_new_file *out) {
    struct stat before;
    *out = (n2_new_file){.ctx = ctx, .path = path, .file = -1};
    if (is_silent(ctx)) return N2CE_OK;
    N2_TRY(find_place(ctx, path, out->place));
    remove_orphans(out->place);
    if (!named) out->file = open_nameless(out->place);
    if (out->file < 0) out->file = open_temporary(out->place, out->temporary);
    if (out->file < 0) return io_failure(ctx, "could not be created", path, errno);
    if (stat(out->place, &before) == 0) (void)fchmod(out->file, before.st_mode & 07777);
    return N2CE_OK;
}

n2ce_status n2_new_file_begin(n2ce_ctx *ctx, const char *path, n2_new_file *out) {
    return begin(ctx, path, false, out);
}

/* So that a rename outlives a power cut; where a folder cannot be synced there is nothing to do. */
static void sync_folder(const char *place) {
    char folder[PATH_MAX];
    folder_of(place, folder);
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return;
    (void)fsync(file);
    (void)close(file);
}

int n2_new_file_reader(n2_new_file *f) {
    char link[64];
    const bool named = *f->temporary;
    const int file = open(named ? f->temporary : link_of(f->file, link), O_RDONLY | O_CLOEXEC);
    if (named) unlink(f->temporary);
    return file;
}

/* The system begins to store what is there by now, so that there is less to wait for at the end. */
static void store_some(n2_new_file *f) {
    enum { SOME = 16 << 20 };
    if (f->added - f->stored < SOME) return;
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range(f->file, f->stored, f->added - f->stored, SYNC_FILE_RANGE_WRITE);
#endif
    f->stored = f->added;
}

void n2_new_file_add(n2_new_file *f, const char *bytes, size_t n) {
    if (is_silent(f->ctx)) return;
    if (f->error == 0 && !write_all(f->file, bytes, n)) f->error = errno;
    f->added += (off_t)n;
    store_some(f);
}

void n2_new_file_sync(n2_new_file *f) {
    if (is_silent(f->ctx)) return;
    if (f->error == 0 && fsync(f->file) != 0) f->error = errno;
}

/* Gives a file its name unless that is taken, at once: by the system call for it, where there is
 * one and the file system knows it, else by a second name, which cannot be one that is taken. */
static bool name_new(const char *temporary, const char *place) {
#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, place, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
#endif
    if (link(temporary, place) != 0) return false;
    (void)unlink(temporary);
    return true;
}

/* The place itself, or a temporary name in its folder, for a file that has none. */
static bool link_file(const n2_new_file *f, const char *name) {
    char from[64];
    return linkat(AT_FDCWD, link_of(f->file, from), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

static bool give_temporary_name(n2_new_file *f) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (!temporary_name(f->place, attempt, f->temporary)) break;
        if (link_file(f, f->temporary)) return true;
        if (errno != EEXIST) break;
    }
    f->temporary[0] = '\0';
    return false;
}

static bool name_file(n2_new_file *f) {
    if (f->keep) return *f->temporary ? name_new(f->temporary, f->place) : link_file(f, f->place);
    if (!*f->temporary && !give_temporary_name(f)) return false;
    return rename(f->temporary, f->place) == 0;
}

/* What `status`, or the file's own error, comes to; it has no name, and is gone. */
static n2ce_status drop_file(n2_new_file *f, n2ce_status status) {
    (void)close(f->file);
    if (*f->temporary) unlink(f->temporary);
    if (status != N2CE_OK) return status;
    if (f->keep && f->error == EEXIST) return already_there(f->ctx, f->path);
    return io_failure(f->ctx, "could not be written", f->path, f->error);
}

n2ce_status n2_new_file_end(n2_new_file *f, n2ce_status status) {
    if (is_silent(f->ctx)) return status;
    if (status == N2CE_OK) n2_new_file_sync(f);
    if (status == N2CE_OK && f->error == 0 && !name_file(f)) f->error = errno;
    if (status != N2CE_OK || f->error != 0) return drop_file(f, status);
    (void)close(f->file); /* and unlocked, now that it has its name; the bytes are safe */
    sync_folder(f->place);
    return N2CE_OK;
}

/* ---- files that belong together ---- */

/* A second name for what is to be replaced: "" where nothing is there, or none can be given. */
static void save_old(const n2_new_file *f, char saved[PATH_MAX]) {
    saved[0] = '\0';
    if (f->keep || access(f->place, F_OK) != 0) return;
    if (!temporary_name(f->place, ATTEMPTS, saved) || link(f->place, saved) != 0) saved[0] = '\0';
}

/* As if the file had not got its name. */
static void put_back(const n2_new_file *f, const char *saved) {
    if (*saved) (void)rename(saved, f->place);
    if (!*saved && f->keep) (void)unlink(f->place);
}

n2ce_status n2_new_files_end(n2_new_file *list, size_t n, n2ce_status status) {
    char saved[PATH_MAX] = "";
    if (n == 0 || is_silent(list->ctx)) return status;
    for (size_t i = 0; i < n && status == N2CE_OK; i++) n2_new_file_sync(&list[i]);
    for (size_t i = 1; i < n; i++)
        if (list[0].error == 0) list[0].error = list[i].error;
    if (status == N2CE_OK) save_old(&list[0], saved);
    const n2ce_status first = n2_new_file_end(&list[0], status);
    const n2ce_status others = n2_new_files_end(list + 1, n - 1, first);
    if (first == N2CE_OK && others != N2CE_OK) put_back(&list[0], saved);
    if (*saved) (void)unlink(saved);
    return others;
}

static n2ce_status write_file(n2ce_ctx *ctx, const char *path, const char *bytes, size_t n,
                              bool keep) {
    n2_new_file file;
    N2_TRY(n2_new_file_begin(ctx, path, &file));
    file.keep = keep;
    n2_new_file_add(&file, bytes, n);
    return n2_new_file_end(&file, N2CE_OK);
}

n2ce_status n2_file_write(n2ce_ctx *ctx, const char *path, const char *bytes, size_t n) {
    return write_file(ctx, path, bytes, n, false);
}

n2ce_status n2_file_create(n2ce_ctx *ctx, const char *path, const char *bytes, size_t n) {
    return write_file(ctx, path, bytes, n, true);
}

void n2_file_remove(n2ce_ctx *ctx, const char *path) {
    if (!is_silent(ctx)) (void)remove(path);
}

static n2ce_status check_folder(n2ce_ctx *ctx, const char *path) {
    struct stat info;
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (n == 0 || n >= sizeof folder) return N2CE_OK; /* writing will tell */
    memcpy(folder, path, n);
    folder[n] = '\0';
    if (stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EIO, "%s cannot be written: there is no folder %s. Make it first.",
                   path, folder);
}

static n2ce_status check_output(n2ce_ctx *ctx, const char *path, bool replace) {
    n2_new_file trial;
    if (is_silent(ctx)) return N2CE_OK;
    if (strcmp(path, "-") == 0)
        return n2_fail(ctx, N2CE_EINVAL,
                       "\"-\" names no file to write. Leave the option out where results go to "
                       "standard output, or write ./- for a file of that name.");
    if (!replace) N2_TRY(n2_file_check_absent(ctx, path));
    N2_TRY(check_folder(ctx, path));
    N2_TRY(begin(ctx, path, true, &trial));
    (void)n2_new_file_end(&trial, N2CE_ECANCELED); /* it was to be possible, no more */
    return N2CE_OK;
}

/* If rank 0 cannot write, nobody need work. */
n2ce_status n2_file_check_output(n2ce_ctx *ctx, const char *path, bool replace) {
    return n2_comm_outcome(ctx, 0, check_output(ctx, path, replace));
}

/* The folder that a file is, or would be, in. */
static bool stat_folder(const char *path, struct stat *info) {
    char folder[PATH_MAX];
    if (strlen(path) >= sizeof folder) return false;
    folder_of(path, folder);
    return stat(folder, info) == 0;
}

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool n2_file_is_same(const char *a, const char *b) {
    struct stat x, y;
    const bool there = stat(a, &x) == 0 && stat(b, &y) == 0;
    if (!there &&
        (strcmp(name_of(a), name_of(b)) != 0 || !stat_folder(a, &x) || !stat_folder(b, &y)))
        return false;
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool n2_file_is_pipe(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

n2ce_status n2_file_read(n2ce_ctx *ctx, const char *path, n2_text *text) {
    char buffer[1 << 14];
    size_t n = 1;
    n2_input in;
    N2_TRY(n2_input_open(ctx, path, &in));
    n2ce_status status = N2CE_OK;
    while (n > 0 && status == N2CE_OK) {
        status = n2_input_read(&in, buffer, sizeof buffer, &n);
        if (status == N2CE_OK) n2_text_add_raw(text, buffer, n);
    }
    n2_input_close(&in);
    return text->failed ? N2CE_ENOMEM : status;
}
