/* A file that is in memory alone, for functions that take paths. */
#ifndef MEMORY_FILE_H
#define MEMORY_FILE_H

#include "require.h"

#include <sys/mman.h>
#include <unistd.h>

typedef struct memory_file {
    int file; /* 0: not made yet */
    char path[32];
} memory_file;

static const char *in_memory(memory_file *m, const void *bytes, size_t n) {
    if (!m->file) {
        m->file = memfd_create("fuzz", 0);
        snprintf(m->path, sizeof m->path, "/proc/self/fd/%d", m->file);
    }
    REQUIRE(m->file > 0 && ftruncate(m->file, 0) == 0);
    REQUIRE(pwrite(m->file, bytes, n, 0) == (ssize_t)n);
    return m->path;
}

#endif
