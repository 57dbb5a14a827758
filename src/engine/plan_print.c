/* A plan in words: what runs, in which order, on how many rows, at what cost. */
#include "plan_data.h"

#include <string.h>

static void add_operation(n2_text *out, const n2_instruction *i) {
    char shape[64];
    n2_text_add(out, "      %-12s %s%s%s%s%s\n", i->node->op->name,
                n2_shape_text(i->node->shape, shape), i->gate.shape.rank ? ", lrelu_grad" : "",
                i->addend.shape.rank ? ", add" : "", i->out.dtype == N2_NUMBER ? "" : ", ",
                i->out.dtype == N2_NUMBER ? "" : n2_dtype_name(i->out.dtype));
}

static void add_step(const n2_plan *p, const n2_step *s, size_t k, bool code, n2_text *out) {
    static const char *const kinds[] = {"one worker", "all workers", "row program"};
    const double runs = p->timed_runs ? (double)p->timed_runs : 1;
    n2_text_add(out, "%4zu  stage %-2d  %-11s  %4zu ops  %9.3f Mflop", k, s->stage, kinds[s->kind],
                s->n_code, s->flops * 1e-6);
    if (p->timed_runs)
        n2_text_add(out, "  %9.3f ms  %6.1f GFLOP/s", 1e3 * s->seconds / runs,
                    s->seconds > 0 ? 1e-9 * s->flops * runs / s->seconds : 0);
    if (s->kind == N2_STEP_ROWS)
        n2_text_add(out, "  %lld rows, tiles of %lld rows and %zu KiB", (long long)s->n_rows,
                    (long long)s->tile_rows,
                    (size_t)s->tile_rows * s->tile_numbers * p->backend->bytes >> 10);
    n2_text_add(out, "\n");
    for (size_t i = 0; code && i < s->n_code; i++) add_operation(out, &s->code[i]);
}

n2_plan_size n2_plan_measure(const n2_plan *p) {
    const size_t workers = (size_t)p->workers;
    n2_plan_size size = {.steps = p->n_steps,
                         .values = p->block_bytes,
                         .tiles = workers * p->tile_bytes,
                         .scratch = workers * p->scratch_bytes,
                         .kernels = p->kernel_bytes};
    size.bytes = size.values + size.tiles + size.scratch + size.kernels;
    for (size_t i = 0; i < p->n_tensors; i++)
        size.tensors += n2_tensor_bytes(p->store, p->tensors[i]);
    if (p->program) size.launches = p->device->program_launches(p->program);
    for (uint32_t id = 1; id <= p->n_nodes; id++)
        size.again += p->nodes[id].live && n2_node_at(p, id)->again && p->nodes[id].root == id;
    for (size_t k = 0; k < p->n_steps; k++) {
        size.nodes += p->steps[k].n_code;
        size.flops += p->steps[k].flops;
    }
    return size;
}

void n2_plan_print(const n2_plan *p, n2_text *out) {
    const n2_plan_size size = n2_plan_measure(p);
    const double mib = 1048576;
    n2_text_add(out,
                "plan for %s: %zu steps, %zu ops, %.1f Mflop, %.2f MiB (%.2f MiB values, %d "
                "workers x %.2f MiB tile, %.2f MiB scratch, %.2f MiB kernels), tensors %.2f MiB\n",
                p->backend->name, size.steps, size.nodes, size.flops * 1e-6,
                (double)size.bytes / mib, (double)size.values / mib, p->workers,
                (double)p->tile_bytes / mib, (double)size.scratch / mib, (double)size.kernels / mib,
                (double)size.tensors / mib);
    if (size.again) n2_text_add(out, "%zu values are made again for gradients\n", size.again);
    for (size_t k = 0; k < p->n_steps; k++) add_step(p, &p->steps[k], k, p->n_steps < 12, out);
}
