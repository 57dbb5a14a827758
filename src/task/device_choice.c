#include "device_choice.h"

#include "base/options.h"
#include "cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(n2_device_choice *c, const n2_backend *backend, const char *reason) {
    c->backend[c->n] = backend;
    snprintf(c->reason[c->n++], sizeof c->reason[0], "%s", reason);
}

/* "cuda" and "cuda:N"; -1: something else. */
static int gpu_number(const char *word) {
    if (strcmp(word, "cuda") == 0) return 0;
    if (strncmp(word, "cuda:", 5) != 0 || !word[5]) return -1;
    char *end;
    const long n = strtol(word + 5, &end, 10);
    return *end == '\0' && n >= 0 && n < 1000 ? (int)n : -1;
}

static n2ce_status add_gpu(n2ce_ctx *ctx, const n2ce_options *o, int number,
                           n2_device_choice *out) {
    const n2_cuda_options options = {.device = number,
                                     .strict = n2_options_has_word(o, "precision", "float32")};
    const n2_backend *backend;
    N2_TRY(n2_cuda_backend(ctx, &options, &backend));
    add(out, backend, n2_cuda_name(backend));
    return N2CE_OK;
}

n2ce_status n2_choose_device(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *out) {
    const char *word = n2ce_options_get(o, "device");
    const bool any = strcmp(word, "auto") == 0, all = strcmp(word, "all") == 0;
    const int number = any || all ? 0 : gpu_number(word);
    *out = (n2_device_choice){.n = 0};
    if (all || strcmp(word, "cpu") == 0) add(out, n2_cpu_backend(), "as asked for");
    if (out->n && !all) return N2CE_OK;
    if (number < 0)
        return n2_fail(ctx, N2CE_EINVAL,
                       "--device is \"%s\"; it is auto, cpu, cuda, cuda:N (N from 0) or all.",
                       word);
    const n2ce_status status = add_gpu(ctx, o, number, out);
    if (status == N2CE_OK || status != N2CE_EDEVICE) return status;
    if (any) add(out, n2_cpu_backend(), n2ce_errmsg(ctx));
    if (all) add(out, NULL, n2ce_errmsg(ctx));
    return any || all ? N2CE_OK : status;
}
