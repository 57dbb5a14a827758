#define _GNU_SOURCE /* madvise: posix_madvise does not give memory back; F_SETPIPE_SZ */
#include "input.h"

#include "base/pool.h"
#include "comm/comm.h"
#include "file.h"
#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static n2ce_status unreadable(n2ce_ctx *ctx, const char *label, int error) {
    return n2_fail(ctx, N2CE_EIO, "%s: could not be read: %s. Check the path and your permissions.",
                   label, strerror(error));
}

static n2ce_status io_failure(const n2_input *in, int error) {
    return unreadable(in->ctx, in->label, error);
}

/* Up to `room` bytes of the descriptor. A signal may be the user's wish to stop. */
static n2ce_status read_file(const n2_input *in, void *buffer, size_t room, size_t *n) {
    for (;;) {
        if (n2_cancelled(in->ctx)) return N2CE_ECANCELED;
        const ssize_t got = read(in->file, buffer, room);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_failure(in, errno);
        *n = (size_t)got;
        return N2CE_OK;
    }
}

/* Bytes of a file in slices, a thread each: what takes time is the copy. */
enum { SLICE = 1 << 18, SLICES = 64 };

typedef struct slices_job {
    const n2_input *in;
    char *buffer;
    size_t room, got[SLICES];
    int error[SLICES]; /* 0: none */
} slices_job;

static void read_slice(void *arg, size_t item, int worker) {
    (void)worker;
    slices_job *job = arg;
    const size_t begin = item * SLICE, left = job->room - begin, n = left < SLICE ? left : SLICE;
    const size_t place = job->in->start + job->in->at + begin;
    size_t got = 0;
    for (ssize_t some = 1; got < n && some != 0; got += some > 0 ? (size_t)some : 0) {
        some = pread(job->in->file, job->buffer + begin + got, n - got, (off_t)(place + got));
        if (some >= 0 || errno == EINTR) continue;
        job->error[item] = errno;
        break;
    }
    job->got[item] = got;
}

/* What lies behind a slice that is not full is not there yet. */
static n2ce_status read_slices(const n2_input *in, void *buffer, size_t room, size_t *n) {
    slices_job job = {.in = in, .buffer = buffer, .room = room};
    if (job.room > SLICES * SLICE) job.room = SLICES * SLICE;
    const size_t slices = (job.room + SLICE - 1) / SLICE;
    if (n2_cancelled(in->ctx)) return N2CE_ECANCELED;
    N2_TRY(n2_parallel_for(in->ctx, slices, read_slice, &job));
    for (size_t i = 0; i < slices && *n == i * SLICE; i++) {
        if (job.error[i]) return io_failure(in, job.error[i]);
        *n += job.got[i];
    }
    lseek(in->file, (off_t)(in->start + in->at + *n), SEEK_SET); /* for who shares it */
    return N2CE_OK;
}

static n2ce_status read_head(n2_input *in) {
    const off_t place = lseek(in->file, 0, SEEK_CUR);
    in->start = place > 0 ? (size_t)place : 0;
    for (size_t n = 1; n > 0 && in->n_head < N2_INPUT_HEAD; in->n_head += n)
        N2_TRY(read_file(in, in->head + in->n_head, N2_INPUT_HEAD - in->n_head, &n));
    return N2CE_OK;
}

/* So that what is read at once is worth several threads; a wish. */
static void widen_pipe(int file) {
#ifdef F_SETPIPE_SZ
    fcntl(file, F_SETPIPE_SZ, 1 << 20);
#else
    (void)file;
#endif
}

/* Ranks that read one pipe, or one standard input, would each have a part of it. */
static n2ce_status check_ranks(n2ce_ctx *ctx, const char *label, bool plain) {
    if (plain || n2_world_ranks(ctx) == 1) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL,
                   "%s cannot be read by several ranks. Put it into a file, or leave --ranks or "
                   "mpirun out.",
                   label);
}

n2ce_status n2_open_to_read(n2ce_ctx *ctx, const char *path, int *out) {
    *out = -1;
    /* to open a pipe is to wait for who writes it, so that is not tried first */
    N2_TRY(check_ranks(ctx, path, !n2_file_is_pipe(path)));
    while (*out < 0 && !n2_cancelled(ctx)) {
        *out = open(path, O_RDONLY | O_CLOEXEC);
        if (*out < 0 && errno != EINTR) return unreadable(ctx, path, errno);
    }
    return *out >= 0 ? N2CE_OK : n2_fail(ctx, N2CE_ECANCELED, "Stopped on request.");
}

static n2ce_status open_file(n2_input *in, const char *path) {
    struct stat info;
    if (in->owned) N2_TRY(n2_open_to_read(in->ctx, path, &in->file));
    if (fstat(in->file, &info) != 0) return io_failure(in, errno);
    if (S_ISDIR(info.st_mode))
        return n2_fail(in->ctx, N2CE_EIO, "%s is a folder, not a file. Name a file.", in->label);
    in->plain = S_ISREG(info.st_mode);
    if (S_ISFIFO(info.st_mode)) widen_pipe(in->file);
    return read_head(in);
}

n2ce_status n2_input_open(n2ce_ctx *ctx, const char *path, n2_input *out) {
    const bool standard = strcmp(path, "-") == 0;
    *out = (n2_input){.ctx = ctx,
                      .label = standard ? "standard input" : path,
                      .file = standard ? STDIN_FILENO : -1,
                      .owned = !standard};
    n2ce_status status = check_ranks(ctx, out->label, !standard);
    if (status == N2CE_OK) status = open_file(out, path);
    if (status != N2CE_OK) n2_input_close(out);
    return status;
}

n2_input n2_input_memory(n2ce_ctx *ctx, const char *label, const void *bytes, size_t n) {
    return (n2_input){.ctx = ctx,
                      .label = label,
                      .memory = n > 0 ? bytes : (const void *)"",
                      .memory_bytes = n,
                      .file = -1};
}

void n2_input_close(n2_input *in) {
    if (in->map) munmap(in->map, in->map_bytes);
    if (in->owned && in->file >= 0) close(in->file);
    in->map = NULL;
    in->file = -1;
}

const unsigned char *n2_input_head(const n2_input *in, size_t *n) {
    *n = in->memory ? in->memory_bytes : in->n_head;
    if (*n > N2_INPUT_HEAD) *n = N2_INPUT_HEAD;
    return in->memory ? in->memory : in->head;
}

void n2_input_cut(n2_input *in, size_t head, size_t begin, size_t end) {
    in->gap = head;
    in->resume = begin;
    in->stop = end;
    in->chunk = SIZE_MAX; /* no map */
    if (in->n_head > head) in->n_head = head;
    lseek(in->file, (off_t)in->n_head, SEEK_SET);
    in->start = 0;
}

/* Jumps over the gap; the room that is left before it, or before the end. */
static size_t room_in_cut(n2_input *in, size_t room) {
    if (in->at == in->gap && in->start == 0) {
        in->start = in->resume - in->gap;
        lseek(in->file, (off_t)in->resume, SEEK_SET);
    }
    const size_t left = in->at < in->gap ? in->gap - in->at : in->stop - in->start - in->at;
    return left < room ? left : room;
}

n2ce_status n2_input_read(n2_input *in, void *buffer, size_t room, size_t *n) {
    const unsigned char *stored = in->memory ? in->memory : in->head;
    const size_t n_stored = in->memory ? in->memory_bytes : in->n_head;
    if (in->chunk > 0 && room > in->chunk) room = in->chunk;
    *n = 0;
    if (in->stop > 0) room = room_in_cut(in, room);
    if (room == 0) return N2CE_OK;
    if (in->at < n_stored || in->memory) {
        *n = n_stored - in->at < room ? n_stored - in->at : room;
        memcpy(buffer, stored + in->at, *n);
    } else {
        const bool many = in->plain && room >= 2 * SLICE;
        N2_TRY(many ? read_slices(in, buffer, room, n) : read_file(in, buffer, room, n));
    }
    in->at += *n;
    return N2CE_OK;
}

/* ---- lines of a part ---- */

size_t n2_input_bytes(const n2_input *in) {
    struct stat info;
    if (!in->plain || !in->owned || fstat(in->file, &info) != 0) return 0;
    return (size_t)info.st_size;
}

enum { LOOK_BYTES = 1 << 16 };

static n2ce_status look(const n2_input *in, size_t at, size_t room, char *bytes, size_t *n) {
    const ssize_t got = pread(in->file, bytes, room, (off_t)at);
    if (got <= 0) return io_failure(in, got < 0 ? errno : EIO);
    *n = (size_t)got;
    return N2CE_OK;
}

/* Where the first line begins at or behind a byte. */
static n2ce_status next_line(const n2_input *in, size_t at, size_t *line) {
    char some[LOOK_BYTES];
    const size_t bytes = n2_input_bytes(in);
    *line = at == 0 ? 0 : bytes;
    for (size_t n = 0; at > 0 && at < bytes; at += n) {
        N2_TRY(look(in, at - 1, sizeof some, some, &n));
        const char *newline = memchr(some, '\n', n);
        if (newline) *line = at + (size_t)(newline - some);
        if (newline) break;
    }
    return N2CE_OK;
}

n2ce_status n2_input_check_quotes(const n2_input *in) {
    char some[LOOK_BYTES];
    bool odd = false;
    const size_t end = in->stop;
    for (size_t n = 0, begin = in->resume; begin < end; begin += n) {
        N2_TRY(look(in, begin, end - begin < sizeof some ? end - begin : sizeof some, some, &n));
        for (const char *at = some; (at = memchr(at, '"', (size_t)(some + n - at))); at++)
            odd = !odd;
    }
    if (!odd) return N2CE_OK;
    return n2_fail(
        in->ctx, N2CE_EDATA,
        "%s has line breaks inside quotes: it cannot be cut for several ranks. Run it on "
        "one.",
        in->label);
}

n2ce_status n2_input_find_lines(const n2_input *in, size_t from, size_t to, size_t *begin,
                                size_t *stop) {
    N2_TRY(next_line(in, from, begin));
    return next_line(in, to, stop);
}

/* Bytes [from, to) of the file; *n of them came. False: it cannot be read. */
static bool read_at(const n2_input *in, char *buffer, size_t from, size_t to, size_t *n) {
    ssize_t some = 1;
    for (*n = 0; from + *n < to && some != 0; *n += some > 0 ? (size_t)some : 0) {
        some = pread(in->file, buffer + *n, to - from - *n, (off_t)(from + *n));
        if (some < 0 && errno != EINTR) return false;
    }
    return true;
}

/* Looked at while they are in the processor's cache. */
enum { AT_ONCE = 1 << 17 };

/* One byte before the first tells whether a line begins there. */
static bool read_lines(const n2_input *in, size_t from, size_t to, n2_lines *l) {
    const size_t first = from > 0 ? from - 1 : 0;
    size_t got = 0, some = 1;
    l->bytes = from > 0 ? NULL : l->buffer;
    for (size_t at = first; at < to && some > 0; at += some, got += some) {
        const size_t end = to - at < AT_ONCE ? to : at + AT_ONCE;
        if (!read_at(in, l->buffer + got, at, end, &some)) return false;
        const char *fresh = l->buffer + got, *newline = NULL;
        if (!l->bytes) newline = memchr(fresh, '\n', some);
        if (newline) l->bytes = fresh = newline + 1;
        if (l->bytes) l->see(l->user, fresh, (size_t)(l->buffer + got + some - fresh));
    }
    l->n = l->bytes ? (size_t)(l->buffer + got - l->bytes) : 0;
    return true;
}

/* The last line goes on behind the bytes that were asked for. */
static bool end_last_line(const n2_input *in, size_t to, n2_lines *l) {
    enum { MORE = 4096 };
    for (size_t more = MORE; more == MORE && l->n > 0 && l->bytes[l->n - 1] != '\n'; to += more) {
        char *behind = l->buffer + (l->bytes - l->buffer) + l->n;
        if ((size_t)(behind - l->buffer) + MORE > l->room) return false;
        if (!read_at(in, behind, to, to + MORE, &more)) return false;
        const char *newline = memchr(behind, '\n', more);
        const size_t n = newline ? (size_t)(newline + 1 - behind) : more;
        l->see(l->user, behind, n);
        l->n += n;
    }
    return true;
}

bool n2_input_lines(const n2_input *in, size_t from, size_t to, n2_lines *l) {
    if (to - from + 1 > l->room) return false;
    return read_lines(in, from, to, l) && end_last_line(in, to, l);
}

static bool map_file(n2_input *in) {
    struct stat info;
    if (fstat(in->file, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    if ((uint64_t)info.st_size < in->start + in->at || info.st_size == 0) return false;
    in->map_bytes = (size_t)info.st_size;
    void *map = mmap(NULL, in->map_bytes, PROT_READ, MAP_PRIVATE, in->file, 0);
    if (map == MAP_FAILED) return false;
    in->map = map;
    lseek(in->file, 0, SEEK_END); /* as if it had been read, for who shares the descriptor */
    return true;
}

bool n2_input_map(n2_input *in, const unsigned char **bytes, size_t *n) {
    if (in->chunk > 0) return false;
    if (in->memory) {
        *bytes = in->memory + in->at;
        *n = in->memory_bytes - in->at;
        return true;
    }
    if (!map_file(in)) return false;
    *bytes = (const unsigned char *)in->map + in->start + in->at;
    *n = in->map_bytes - in->start - in->at;
    return true;
}

void n2_input_unload(const n2_input *in) {
    if (in->map) madvise(in->map, in->map_bytes, MADV_DONTNEED);
}

static bool is_control(unsigned char c, unsigned char before) {
    return c < 0x20 || c == 0x7f || (before == 0xc2 && c >= 0x80 && c < 0xa0);
}

n2_shown n2_show_all(const char *text) { return n2_show(text, strlen(text)); }

n2_shown n2_show(const char *text, size_t n) {
    enum { LIMIT = 40 };
    n2_shown s;
    size_t length = n < LIMIT ? n : LIMIT;
    if (n > LIMIT)
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    unsigned char before = 0;
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        s.text[i] = is_control(c, before) ? '?' : text[i];
        if (s.text[i] == '?' && c >= 0x80) s.text[i - 1] = '?';
        before = c;
    }
    s.text[length] = '\0';
    for (size_t i = 0; i < length && !n2_is_utf8(s.text); i++)
        if ((unsigned char)s.text[i] >= 0x80) s.text[i] = '?';
    strcpy(s.text + length, n > LIMIT ? "..." : "");
    return s;
}
