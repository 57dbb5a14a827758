#include "diffusion_options.h"

#include "cuda/cuda.h"
#include "device_options.h"
#include "io/own_file.h"
#include "metric/set_distance.h"

#include <stdio.h>
#include <string.h>

/* ---- devices ---- */

static n2_precision precision_of(const n2ce_options *o) {
    if (n2_options_is_auto(o, "precision")) return (n2_precision){.narrow = N2_BF16};
    return n2_precision_of_options(o);
}

n2ce_status n2_diffusion_device(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *out) {
    const char *word = n2ce_options_get(o, "device");
    const n2_precision precision = precision_of(o);
    if (strcmp(word, "auto") != 0) return n2_choice_of_word(ctx, word, precision, out);
    const n2ce_status status = n2_choice_of_word(ctx, "cuda", precision, out);
    if (status != N2CE_EDEVICE) return status;
    N2_TRY(n2_choice_of_word(ctx, "cpu", precision, out));
    snprintf(out->reason, sizeof out->reason, "there is no GPU");
    return N2CE_OK;
}

static n2ce_status watch_device(n2ce_ctx *ctx, const n2_device_choice *device,
                                n2_device_choice *out) {
    *out = (n2_device_choice){.strict = true, .reason = "as asked for"};
    if (!n2_choice_backend(device)->device) return N2CE_OK;
    const n2_cuda_options options = {.device = device->device, .strict = true};
    return n2_cuda_backend(ctx, &options, &out->backend);
}

n2ce_status n2_diffusion_check_sheet(n2ce_ctx *ctx, const n2ce_options *o) {
    const char *sheet = n2ce_options_get(o, "sheet");
    const bool force = n2_options_flag(o, "force");
    if (!sheet) return N2CE_OK;
    N2_TRY(n2_file_check_output(ctx, sheet, force));
    return n2_own_file_claim(ctx, sheet);
}

n2ce_status n2_open_watch(n2ce_ctx *ctx, const n2ce_options *o, const n2_images *pictures,
                          const n2_device_choice *device, n2_device_choice *own,
                          n2_denoiser_run *run) {
    run->watched = (size_t)n2_options_count(o, "watched");
    if (run->watched == 0) return N2CE_OK;
    if (run->watched < N2_SET_LEAST)
        return n2_fail(ctx, N2CE_EINVAL,
                       "--watched is %zu: a distance takes %d pictures or more; 0: none is "
                       "measured.",
                       run->watched, N2_SET_LEAST);
    N2_TRY(watch_device(ctx, device, own));
    return n2_distance_watch_open(ctx, n2ce_options_get(o, "features"), pictures, own, &run->watch);
}

/* ---- how long ---- */

static void say_time(double seconds, char out[48]) {
    const struct {
        double least, unit;
        const char *name;
    } units[] = {{2 * 86400, 86400, "days"},
                 {2 * 3600, 3600, "hours"},
                 {120, 60, "minutes"},
                 {0, 1, "seconds"}};
    size_t i = 0;
    while (seconds < units[i].least) i++;
    const double n = seconds / units[i].unit;
    snprintf(out, 48, "%.*f %s", n < 10, n, units[i].name);
}

n2ce_status n2_diffusion_check_time(n2ce_ctx *ctx, const n2ce_options *o,
                                    const n2_device_choice *choice, uint64_t steps, int64_t batch,
                                    double seconds) {
    char time[48];
    if (n2_choice_backend(choice)->device) return N2CE_OK;
    say_time(seconds, time);
    if (n2_options_flag(o, "force-cpu")) {
        n2_log(ctx, N2CE_LOG_INFO, "On the processor this takes about %s.", time);
        return N2CE_OK;
    }
    return n2_fail(ctx, N2CE_EDEVICE,
                   "Without a GPU, %llu steps of %lld pictures would take about %s on this "
                   "processor. Go on with --force-cpu, or give it less to do first: --seen, "
                   "--batch, --width.",
                   (unsigned long long)steps, (long long)batch, time);
}

/* ---- pictures ---- */

static n2ce_status prepare_pictures(n2ce_ctx *ctx, const n2ce_options *o, n2_images *p) {
    enum { LEAST = 100 };
    for (uint64_t i = n2_options_count(o, "halve"); i > 0; i--) N2_TRY(n2_images_halve(p));
    if (p->n >= LEAST) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDATA,
                   "%s: it has %zu picture%s; at least %d are needed, and tens of thousands to "
                   "learn much.",
                   n2ce_options_get(o, "images"), p->n, p->n == 1 ? "" : "s", LEAST);
}

n2ce_status n2_diffusion_pictures(n2ce_ctx *ctx, const n2ce_options *o, n2_images **out) {
    N2_TRY(n2_images_read_list(ctx, n2ce_options_get(o, "images"), out));
    const n2ce_status status = prepare_pictures(ctx, o, *out);
    if (status == N2CE_OK) return N2CE_OK;
    n2_images_free(*out);
    *out = NULL;
    return status;
}

n2ce_status n2_diffusion_identity(n2ce_ctx *ctx, const n2ce_options *o, const n2_images *pictures,
                                  char **out) {
    char sum[N2_CHECKSUM_ROOM];
    n2_text lines = n2_text_new(ctx);
    n2_images_sum(pictures, sum);
    n2_options_lines(o,
                     " output force images teacher checkpoint resume device time-limit report "
                     "sheet force-cpu ",
                     &lines);
    n2_text_add(&lines, "pictures=%s\n", sum);
    return n2_text_take(&lines, out);
}

/* ---- curves ---- */

void n2_curve_json(const n2_curve *curve, const char *const *names, n2_text *out) {
    n2_text_add(out, "[");
    for (size_t i = 0; i < curve->n; i++) {
        const n2_curve_point *p = &curve->point[i];
        n2_text_add(out, "%s{\"seen\": ", i ? ", " : "");
        n2_text_add_number(out, p->seen);
        n2_text_add(out, ", \"distance\": ");
        n2_text_add_number(out, p->distance);
        for (size_t k = 0; k < sizeof p->number / sizeof *p->number && names[k]; k++) {
            n2_text_add(out, ", \"%s\": ", names[k]);
            n2_text_add_number(out, p->number[k]);
        }
        n2_text_add(out, "}");
    }
    n2_text_add(out, "]");
}
