/* A library to preload (LD_PRELOAD): of all calls that change files, number N2CE_FAIL_AT fails,
 * with "no space left" for those that write and "input/output error" for the others, or with the
 * error that N2CE_FAIL_WITH numbers. Their number, when the program ends, is written to the file
 * that N2CE_FAIL_COUNT names.
 *
 * Counted are open for writing, write, fsync, rename, renameat2, link, linkat, close of what was
 * opened for writing, mkdir and fchmod; standard output and standard error are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 1024 };
static bool written[MOST_FILES]; /* by descriptor */
static long count;

/* Whether this call is the one. */
static bool fails(int error) {
    const char *at = getenv("N2CE_FAIL_AT");
    if (++count != (at ? atol(at) : 0)) return false;
    const char *with = getenv("N2CE_FAIL_WITH");
    errno = with ? atoi(with) : error;
    return true;
}

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static bool is_written(int file) { return file >= 0 && file < MOST_FILES && written[file]; }

int open(const char *path, int flags, ...) {
    int (*const real)(const char *, int, ...) = (int (*)(const char *, int, ...))next("open");
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    if (writes && fails(ENOSPC)) return -1;
    const int file = real(path, flags, mode);
    if (file >= 0 && file < MOST_FILES) written[file] = writes;
    return file;
}

ssize_t write(int file, const void *bytes, size_t n) {
    ssize_t (*const real)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))next("write");
    if (!is_written(file)) return real(file, bytes, n);
    if (!fails(ENOSPC)) return real(file, bytes, n);
    const int error = errno;
    if (n > 1) (void)!real(file, bytes, n / 2); /* half of it got there */
    errno = error;
    return -1;
}

int fsync(int file) {
    int (*const real)(int) = (int (*)(int))next("fsync");
    return is_written(file) && fails(EIO) ? -1 : real(file);
}

int close(int file) {
    int (*const real)(int) = (int (*)(int))next("close");
    const bool fail = is_written(file) && fails(EIO);
    if (file >= 0 && file < MOST_FILES) written[file] = false;
    const int result = real(file);
    if (fail) errno = EIO;
    return fail ? -1 : result;
}

int rename(const char *from, const char *to) {
    int (*const real)(const char *, const char *) =
        (int (*)(const char *, const char *))next("rename");
    return fails(EIO) ? -1 : real(from, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    int (*const real)(int, const char *, int, const char *, unsigned) =
        (int (*)(int, const char *, int, const char *, unsigned))next("renameat2");
    return fails(EIO) ? -1 : real(a, from, b, to, flags);
}

int link(const char *from, const char *to) {
    int (*const real)(const char *, const char *) =
        (int (*)(const char *, const char *))next("link");
    return fails(EIO) ? -1 : real(from, to);
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
    int (*const real)(int, const char *, int, const char *, int) =
        (int (*)(int, const char *, int, const char *, int))next("linkat");
    return fails(EIO) ? -1 : real(a, from, b, to, flags);
}

int mkdir(const char *path, mode_t mode) {
    int (*const real)(const char *, mode_t) = (int (*)(const char *, mode_t))next("mkdir");
    return fails(ENOSPC) ? -1 : real(path, mode);
}

int fchmod(int file, mode_t mode) {
    int (*const real)(int, mode_t) = (int (*)(int, mode_t))next("fchmod");
    return fails(EIO) ? -1 : real(file, mode);
}

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("N2CE_FAIL_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) fprintf(file, "%ld\n", count);
    if (file) fclose(file);
}
