/* Writing files so that a crash, a full disk or a Ctrl-C never leaves half of one; and reading
 * small ones whole. */
#ifndef N2_FILE_H
#define N2_FILE_H

#include "base/text.h"

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

/* Before hours of work: the file is not there, or may be replaced, and its folder is. */
n2ce_status n2_file_check_output(n2ce_ctx *ctx, const char *path, bool replace);

/* The whole file at once: temporary name in the same folder, fsync, rename. */
n2ce_status n2_file_write(n2ce_ctx *ctx, const char *path, const char *bytes, size_t n);

/* Adds all bytes of a file; fails as n2_input_open does, or with N2CE_ENOMEM. */
n2ce_status n2_file_read(n2ce_ctx *ctx, const char *path, n2_text *text);

#endif
