/* Bytes to read once, from front to back: of a file, a pipe, standard input or
 * memory. And texts of strangers as messages show them. */
#ifndef N2_INPUT_H
#define N2_INPUT_H

#include "base/ctx.h"

enum { N2_INPUT_HEAD = 8 };

typedef struct n2_input {
    n2ce_ctx *ctx;
    const char *label; /* what messages call it; must outlive the input */
    size_t chunk;      /* if not 0, at most so many bytes a read and no map, as with a slow pipe */
    size_t at;         /* bytes read so far */

    const unsigned char *memory; /* if not NULL, the bytes */
    size_t memory_bytes;

    int file;                          /* else a descriptor, */
    bool owned, plain;                 /* opened here; of a file that has places */
    size_t start;                      /* read from this place of its file, */
    unsigned char head[N2_INPUT_HEAD]; /* after the first bytes, read already */
    size_t n_head;

    void *map; /* n2_input_map */
    size_t map_bytes;

    size_t gap, resume, stop; /* n2_input_cut; stop 0: it is whole */
} n2_input;

/* A file as the system has it. Nobody may ever write to a pipe that has a name: who waits for that
 * can be stopped, N2CE_ECANCELED. N2CE_EINVAL if several ranks would share a pipe. */
n2ce_status n2_open_to_read(n2ce_ctx *ctx, const char *path, int *out);

/* Opens a file, or standard input if the path is "-". Fails with N2CE_EIO for
 * what cannot be read, folders among it, N2CE_ECANCELED, and N2CE_EINVAL if several ranks would
 * share a pipe. The path must outlive the input. */
n2ce_status n2_input_open(n2ce_ctx *ctx, const char *path, n2_input *out);

/* The n bytes, which must outlive the input. */
n2_input n2_input_memory(n2ce_ctx *ctx, const char *label, const void *bytes, size_t n);

void n2_input_close(n2_input *in); /* twice is fine */

/* The first bytes, N2_INPUT_HEAD or all if there are fewer, before any are read. */
const unsigned char *n2_input_head(const n2_input *in, size_t *n);

/* Up to `room` bytes; *n is 0 only at the end. Many bytes of a file are read on all
 * threads. */
n2ce_status n2_input_read(n2_input *in, void *buffer, size_t room, size_t *n);

/* Bytes 0 .. head - 1 of a file, and then begin .. end - 1, are all that there is: before any are
 * read. It cannot be mapped then. */
void n2_input_cut(n2_input *in, size_t head, size_t begin, size_t end);

/* Of a file that was opened by its name; 0: it has no places, as a pipe. */
size_t n2_input_bytes(const n2_input *in);

/* Bytes [begin, stop) of such a file: the lines that begin in [from, to), if none of the two places
 * is inside of quotes. */
n2ce_status n2_input_find_lines(const n2_input *in, size_t from, size_t to, size_t *begin,
                                size_t *stop);

/* Of an input that is cut so: N2CE_EDATA if there is an odd number of quotes in it, since then one
 * of the ends is inside of quotes. For who has met one. */
n2ce_status n2_input_check_quotes(const n2_input *in);

/* The lines themselves, n bytes in a buffer; quotes are not looked at. Who wants to sees them as
 * they come, some after others. False if there is not room for them, or they cannot be read.
 * Several threads may ask at once. */
typedef struct n2_lines {
    char *buffer;
    size_t room;
    void (*see)(void *user, const char *bytes, size_t n);
    void *user;
    const char *bytes; /* NULL: no line begins there */
    size_t n;
} n2_lines;
bool n2_input_lines(const n2_input *in, size_t from, size_t to, n2_lines *lines);

/* All that is left, without a copy: *n bytes that stay until the input is
 * closed. False if there is no way, as for a pipe. Not to be read from then on.
 * A file must not be cut short while it is mapped. */
bool n2_input_map(n2_input *in, const unsigned char **bytes, size_t *n);

/* Gives the memory of mapped pages back; they are loaded again when touched. */
void n2_input_unload(const n2_input *in);

/* n bytes of a text as messages show them: at most 40, cut between characters, with '?' for what
 * is a control character or not UTF-8. */
typedef struct n2_shown {
    char text[44];
} n2_shown;

n2_shown n2_show(const char *text, size_t n);
n2_shown n2_show_all(const char *text);

#endif
