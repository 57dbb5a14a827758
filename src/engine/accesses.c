#include "accesses.h"

#ifdef N2_TELL_ACCESSES
/* Of the sanitizer; no header has them. */
void __tsan_read_range(const void *address, unsigned long n);
void __tsan_write_range(void *address, unsigned long n);

static size_t bytes_of(const n2_view *v, size_t bytes) {
    return (size_t)n2_elements(v->shape) * n2_dtype_bytes(v->dtype, bytes);
}

static void tell_read(const void *data, size_t n) {
    if (data) __tsan_read_range(data, n);
}

static void tell_whole(const n2_call *c, size_t bytes) {
    const size_t out = bytes_of(&c->out, bytes);
    for (int k = 0; k < c->node->n_in; k++) tell_read(c->in[k].data, bytes_of(&c->in[k], bytes));
    tell_read(c->gate, out);
    tell_read(c->addend, out);
    if (c->out.data) __tsan_write_range(c->out.data, out);
}

/* Of a node that is shared between workers its kernel alone knows who touches what. */
void n2_tell_accesses(const n2_call *c, size_t bytes) {
    if (c->queue) return; /* a device's memory */
    if (c->work) __tsan_write_range(c->work, 1);
    if (c->parts == 1) tell_whole(c, bytes);
}
#else
typedef int n2_nothing_to_tell; /* a file is not empty */
#endif
