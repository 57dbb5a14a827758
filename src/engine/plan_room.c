/* Whether a plan fits into the memory there is. It is asked before memory is, so that what does not
 * fit fails with a sentence, and not somewhere on the way, or by a system that ends the program. */
#include "base/host_memory.h"
#include "plan_data.h"

#include <stdio.h>

enum { SMALL = 64 << 20 }; /* bytes that a host is not asked about */

typedef struct bytes_text {
    char text[16];
} bytes_text;

/* "3.1 GiB" */
static bytes_text show_bytes(size_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    bytes_text out;
    double x = (double)bytes / 1024;
    size_t k = 0;
    for (; x >= 999.95 && k + 1 < sizeof units / sizeof *units; k++) x /= 1024;
    snprintf(out.text, sizeof out.text, "%.1f %s", x, units[k]);
    return out;
}

/* Tensors that have no copy on the device yet. */
static size_t new_copies(const n2_plan *p) {
    size_t bytes = 0;
    for (size_t i = 0; i < p->n_tensors; i++)
        if (!n2_tensor_on(p->tensors[i], p->device))
            bytes += n2_tensor_bytes(p->store, p->tensors[i]);
    return bytes;
}

static n2ce_status check_device(const n2_plan *p, const n2_plan_size *size) {
    size_t taken, left;
    const size_t copies = new_copies(p), need = size->bytes + copies;
    p->device->memory(p->device, &taken, &left);
    if (need <= left) return N2CE_OK;
    return n2_fail(p->ctx, N2CE_EDEVICE,
                   "The GPU is out of memory: this plan needs %s (values %s, tiles %s, tensors "
                   "%s), and %s are free. Use a smaller batch, 16 bits (--precision bf16), or "
                   "--device cpu.",
                   show_bytes(need).text, show_bytes(size->values).text,
                   show_bytes(size->tiles + size->scratch).text, show_bytes(copies).text,
                   show_bytes(left).text);
}

static n2ce_status check_host(const n2_plan *p, const n2_plan_size *size) {
    if (size->bytes < SMALL) return N2CE_OK;
    const size_t left = n2_host_memory();
    if (size->bytes <= left) return N2CE_OK;
    return n2_fail(p->ctx, N2CE_ENOMEM,
                   "Out of memory: this plan needs %s (values %s, %d workers with tiles and "
                   "scratch memory of %s), and this machine has %s left. Use a smaller batch.",
                   show_bytes(size->bytes).text, show_bytes(size->values).text, p->workers,
                   show_bytes(p->tile_bytes + p->scratch_bytes).text, show_bytes(left).text);
}

n2ce_status n2_plan_check_room(const n2_plan *p) {
    const n2_plan_size size = n2_plan_measure(p);
    return p->device ? check_device(p, &size) : check_host(p, &size);
}
