#include "queue.h"

#include <string.h>

static bool grow(n2_queue *q) {
    if (q->n < q->capacity) return true;
    const size_t capacity = q->capacity ? 2 * q->capacity : 256;
    noted *list = (noted *)n2_realloc(q->ctx, q->list, capacity, sizeof *list);
    if (!list) {
        q->status = N2CE_ENOMEM;
        return false;
    }
    q->list = list;
    q->capacity = capacity;
    return true;
}

noted *n2_queue_add(n2_queue *q, const job *j, int64_t blocks) {
    if (q->status != N2CE_OK || blocks == 0) return NULL;
    if (blocks > INT32_MAX || j->n > UINT32_MAX) {
        q->status = n2_fail(q->ctx, N2CE_EDEVICE,
                            "An op works on %lld numbers, more than a launch can. Use fewer rows.",
                            (long long)j->n);
        return NULL;
    }
    if (!grow(q)) return NULL;
    noted *n = &q->list[q->n++];
    memset(n, 0, sizeof *n);
    n->j = *j;
    n->j.n_blocks = (uint32_t)blocks;
    return n;
}

static void note(noted *n, const void *at, int64_t floats, bool written) {
    if (!n || !at || floats <= 0) return;
    span *s = &n->spans[n->n_spans < MOST_SPANS ? n->n_spans++ : MOST_SPANS - 1];
    const uintptr_t begin = (uintptr_t)at, end = begin + (uintptr_t)floats * sizeof(float);
    if (!s->end) {
        *s = (span){begin, end, written};
        return;
    }
    /* no room: the last one becomes everything in between */
    if (begin < s->begin) s->begin = begin;
    if (end > s->end) s->end = end;
    s->written |= written;
}

void n2_note_read(noted *n, const void *at, int64_t floats) { note(n, at, floats, false); }
void n2_note_write(noted *n, const void *at, int64_t floats) { note(n, at, floats, true); }

static scratch *find_scratch(n2_queue *q, const void *owner, size_t bytes) {
    for (size_t i = 0; i < q->n_scratches; i++)
        if (q->scratches[i].owner == owner && q->scratches[i].bytes >= bytes)
            return &q->scratches[i];
    return NULL;
}

float *n2_queue_scratch(n2_queue *q, const void *owner, int64_t floats) {
    const size_t bytes = (size_t)floats * sizeof(float);
    if (q->status != N2CE_OK) return NULL;
    scratch *s = find_scratch(q, owner, bytes);
    if (s) return (float *)s->memory;
    if (q->n_scratches == q->scratch_capacity) {
        const size_t capacity = q->scratch_capacity ? 2 * q->scratch_capacity : 64;
        scratch *list = (scratch *)n2_realloc(q->ctx, q->scratches, capacity, sizeof *list);
        if (!list) {
            q->status = N2CE_ENOMEM;
            return NULL;
        }
        q->scratches = list;
        q->scratch_capacity = capacity;
    }
    s = &q->scratches[q->n_scratches];
    *s = (scratch){owner, bytes, NULL};
    q->status = q->device->alloc(q->device, q->ctx, bytes, &s->memory);
    if (q->status != N2CE_OK) return NULL;
    q->n_scratches++;
    return (float *)s->memory;
}

bool n2_noted_conflict(const noted *a, const noted *b) {
    for (int i = 0; i < a->n_spans; i++)
        for (int k = 0; k < b->n_spans; k++) {
            const span *x = &a->spans[i], *y = &b->spans[k];
            if ((x->written || y->written) && x->begin < y->end && y->begin < x->end) return true;
        }
    return false;
}

void n2_queue_free(n2_queue *q) {
    if (!q) return;
    for (size_t i = 0; i < q->n_scratches; i++) q->device->free(q->device, q->scratches[i].memory);
    n2_free(q->ctx, q->scratches);
    n2_free(q->ctx, q->list);
    n2_free(q->ctx, q);
}
