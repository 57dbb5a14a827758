#include "checkpoint_options.h"

#include "io/file.h"
#include "io/own_file.h"
#include "nn/nn.h"

#include <stdio.h>
#include <unistd.h>

static n2ce_status name_file(n2ce_ctx *ctx, const n2ce_options *o, const char *output,
                             n2_checkpoint_use *out) {
    const char *own = n2ce_options_get(o, "checkpoint");
    if (!own && !output) return N2CE_OK;
    out->implied = !own;
    const int n = own ? snprintf(out->path, sizeof out->path, "%s", own)
                      : snprintf(out->path, sizeof out->path, "%s.checkpoint", output);
    if (n >= 0 && (size_t)n < sizeof out->path) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "The name of the checkpoint is too long.");
}

/* A file of this name is there, and nobody wants to go on from it. */
static n2ce_status may_replace(n2ce_ctx *ctx, const char *path, bool force) {
    if (!n2_is_checkpoint(ctx, path))
        return n2_fail(ctx, N2CE_EEXIST,
                       "%s is there and is no checkpoint: it is not replaced by one. Name another "
                       "file with --checkpoint.",
                       path);
    if (force) return n2_own_file_claim(ctx, path);
    return n2_fail(ctx, N2CE_EEXIST,
                   "%s has the state of an earlier run. Go on from it with --resume, replace it "
                   "with --force, or name another file with --checkpoint.",
                   path);
}

n2ce_status n2_checkpoint_of_options(n2ce_ctx *ctx, const n2ce_options *o, const char *output,
                                     n2_checkpoint_use *out) {
    *out = (n2_checkpoint_use){.resume = n2_options_flag(o, "resume")};
    N2_TRY(name_file(ctx, o, output, out));
    if (!*out->path && out->resume)
        return n2_fail(ctx, N2CE_EINVAL,
                       "--resume needs a state to continue from: give --output or --checkpoint.");
    if (!*out->path) return N2CE_OK;
    N2_TRY(n2_file_check_output(ctx, out->path, true)); /* not when hours are to be kept there */
    if (out->resume || access(out->path, F_OK) != 0) return N2CE_OK;
    return may_replace(ctx, out->path, n2_options_flag(o, "force"));
}

n2ce_status n2_checkpoint_choose_device(n2ce_ctx *ctx, const n2_checkpoint_use *use,
                                        n2_device_choice *choice) {
    char began[N2_DEVICE_NAME];
    if (!use->resume || access(use->path, F_OK) != 0 || !choice->open) return N2CE_OK;
    N2_TRY(n2_checkpoint_device(ctx, use->path, began));
    return began[0] ? n2_choice_again(ctx, began, choice) : N2CE_OK;
}

n2ce_status n2_checkpoint_stopped(n2ce_ctx *ctx, const n2_checkpoint_use *use,
                                  n2ce_answer *answer) {
    n2_writer w = n2_writer_new(ctx);
    n2_text_add(&w.text, "The state of training is in %s; go on with --resume.\n", use->path);
    n2_text_add(&w.kept, "the state of training\n");
    n2_text_add(&w.brief, "nan\n");
    n2_text_add(&w.json, "{\"checkpoint\": ");
    n2_text_add_json_string(&w.json, use->path);
    n2_text_add(&w.json, "}\n");
    (void)n2_writer_take(&w, answer);
    return N2CE_ECANCELED;
}

void n2_checkpoint_used_up(n2ce_ctx *ctx, const n2_checkpoint_use *use) {
    if (use->implied && *use->path) n2_own_file_remove(ctx, use->path);
}
