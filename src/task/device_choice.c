#include "device_choice.h"

#include "base/options.h"
#include "cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "cuda" and "cuda:N", up to one of the letters `after`; -1: something else. */
static int gpu_number(const char *word, const char *after) {
    if (strcmp(word, "cuda") == 0) return 0;
    if (strncmp(word, "cuda:", 5) != 0 || !word[5]) return -1;
    char *end;
    const long n = strtol(word + 5, &end, 10);
    return strchr(after, *end) && n >= 0 && n < 1000 ? (int)n : -1;
}

static n2ce_status open_gpu(const n2_place *place, n2ce_ctx *ctx, const n2_backend **out) {
    const n2_cuda_options options = {.device = place->device, .strict = place->strict};
    return n2_cuda_backend(ctx, &options, out);
}

bool n2_wants_all_devices(const n2ce_options *o) {
    return strcmp(n2ce_options_get(o, "device"), "all") == 0;
}

const char *n2_place_name(const n2_place *place) {
    return n2_backend_device(n2_place_backend(place));
}

n2ce_status n2_place_of_options(n2ce_ctx *ctx, const n2ce_options *o, n2_place *out) {
    const char *word = n2ce_options_get(o, "device");
    *out = (n2_place){.reason = "as asked for"};
    out->strict = n2_options_has_word(o, "precision", "float32");
    if (strcmp(word, "cpu") == 0) return N2CE_OK;
    if (strcmp(word, "auto") == 0) {
        snprintf(out->reason, sizeof out->reason, "nothing to be measured");
        out->open = open_gpu;
        out->optional = true;
        return N2CE_OK;
    }
    out->device = gpu_number(word, "");
    if (out->device < 0)
        return n2_fail(ctx, N2CE_EINVAL,
                       "--device is \"%s\"; it is auto, cpu, cuda or cuda:N (N from 0).", word);
    N2_TRY(open_gpu(out, ctx, &out->backend));
    snprintf(out->reason, sizeof out->reason, "%s", n2_cuda_name(out->backend));
    return N2CE_OK;
}

n2ce_status n2_place_again(n2ce_ctx *ctx, const char *name, n2_place *place) {
    place->open = NULL;
    snprintf(place->reason, sizeof place->reason, "where this run began");
    if (strcmp(name, "cpu") == 0) return N2CE_OK;
    place->device = gpu_number(name, ","); /* "cuda:0, tf32" */
    place->strict = strstr(name, "float32") != NULL;
    const n2ce_status status = open_gpu(place, ctx, &place->backend);
    if (status != N2CE_EDEVICE) return status;
    snprintf(place->reason, sizeof place->reason, "%s", n2ce_errmsg(ctx));
    return N2CE_OK;
}
