/* Writing files so that a crash, a full disk or a Ctrl-C never leaves half of one; and reading
 * small ones whole. */
#ifndef N2_FILE_H
#define N2_FILE_H

#include "base/text.h"

#include <limits.h>
#include <sys/types.h>

/* Creates a folder if it does not exist; its parent must. */
n2ce_status n2_folder_make(n2ce_ctx *ctx, const char *path);

/* N2CE_EIO unless a file can be created in the folder, or the folder itself can be
 * made. Leaves nothing behind. */
n2ce_status n2_folder_check_writable(n2ce_ctx *ctx, const char *path);

/* folder/name into a buffer; N2CE_EINVAL if it does not fit. */
n2ce_status n2_path_join(n2ce_ctx *ctx, char *buffer, size_t size, const char *folder,
                         const char *name);

/* N2CE_EEXIST, with a sentence, if the file is there. */
n2ce_status n2_file_check_absent(n2ce_ctx *ctx, const char *path);

/* Before hours of work: the file is not there, or may be replaced, and can be written. */
n2ce_status n2_file_check_output(n2ce_ctx *ctx, const char *path, bool replace);

/* Whether two names are of one file, be it there or not. */
bool n2_file_is_same(const char *a, const char *b);

/* Whether what is there can be read once only, as a pipe or a terminal. It is not opened. */
bool n2_file_is_pipe(const char *path);

/* The whole file at once: temporary name in the same folder, fsync of both, rename. What a process
 * that was killed had begun of the same file is removed. A file that is
 * replaced leaves its mode to the new one; a link to a file stays, and the file it leads to is
 * replaced. Folders, devices, pipes and links that lead nowhere are refused with N2CE_EIO. */
n2ce_status n2_file_write(n2ce_ctx *ctx, const char *path, const char *bytes, size_t n);

/* The same, but N2CE_EEXIST if something is there by then: of two who write, one loses nothing. */
n2ce_status n2_file_create(n2ce_ctx *ctx, const char *path, const char *bytes, size_t n);

/* One of these two, or another way. */
typedef n2ce_status n2_file_writer(n2ce_ctx *ctx, const char *path, const char *bytes, size_t n);

/* The same for a file whose bytes are not all in memory at once: begun, added to, ended.
 * Errors are sticky: after a write that failed, additions do nothing, and the end
 * reports it. */
typedef struct n2_new_file {
    n2ce_ctx *ctx;
    const char *path;         /* as it was given; it must stay until the end */
    char place[PATH_MAX];     /* where it goes: behind links */
    char temporary[PATH_MAX]; /* "": it has no name */
    int file, error;          /* an errno, 0 while all is well */
    off_t added, stored;      /* bytes; those that the system was told to store */
    bool keep; /* said by the caller after the beginning: what is there at the end stays, and
                  the end fails with N2CE_EEXIST */
} n2_new_file;
n2ce_status n2_new_file_begin(n2ce_ctx *ctx, const char *path, n2_new_file *out);
void n2_new_file_add(n2_new_file *f, const char *bytes, size_t n);

/* For who wants to read what is added, and no file: a second descriptor, -1 if there is none. The
 * file has no name then, and is gone with the process, or when both are closed. */
int n2_new_file_reader(n2_new_file *f);

/* Waits until the bytes are safe, which the end does too: for who ends several files at once. */
void n2_new_file_sync(n2_new_file *f);

/* Puts the file in its place; leaves nothing behind unless `status`, what became of making
 * its bytes, is N2CE_OK. Returns that status, or N2CE_EIO. */
n2ce_status n2_new_file_end(n2_new_file *f, n2ce_status status);

/* The same for files that belong together: all of them are in their places afterwards, or none. */
n2ce_status n2_new_files_end(n2_new_file *list, size_t n, n2ce_status status);

/* Removes a file, or an empty folder, if it is there. */
void n2_file_remove(n2ce_ctx *ctx, const char *path);

/* Adds all bytes of a file; fails as n2_input_open does, or with N2CE_ENOMEM. */
n2ce_status n2_file_read(n2ce_ctx *ctx, const char *path, n2_text *text);

#endif
