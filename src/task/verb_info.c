/* info: what is in a model file, or in a file of pictures. */
#include "detect/detector_file.h"
#include "detect_pictures.h"
#include "detect_session.h"
#include "image/image.h"
#include "info_pictures.h"
#include "ratio_session.h"

static const n2ce_option info_options[] = {
    {"model", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "MODEL",
     "a model that n2ce fit, detect or train wrote; or pictures: PNG, IDX, CIFAR-10 or NPY, plain "
     "or packed by gzip or xz, or a folder of PNGs"},
    {"sheet", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "PNG",
     "write pictures side by side to this file"},
    {"first", 0, N2CE_OPTION_COUNT, "64", 1, 1e6, NULL, "N",
     "how many pictures, the first ones, the sheet has"},
    N2_FORCE_OPTION,
    {0},
};

static void say_columns(n2_text *text, const n2ce_model *m) {
    for (size_t c = 0; c < m->cols; c++) {
        const n2_feature *f = &m->ratio->features->column[c];
        static const char *const kinds[] = {"constant, left out", "standardised", "normal margins",
                                            "levels"};
        n2_text_add(text, "%-10s %-16s %s", c ? "" : "columns", m->names[c], kinds[f->kind]);
        if (f->kind == N2_FEATURE_LINEAR)
            n2_text_add(text, ", mean %.6g, scale %.6g", f->mean, f->scale);
        if (f->kind == N2_FEATURE_LEVELS) n2_text_add(text, ", %zu", f->levels);
        if (m->x_cols) n2_text_add(text, c < m->x_cols ? "  (x)" : "  (y)");
        n2_text_add(text, "\n");
    }
}

/* What scores are worth, by rows that the fit has not seen. */
static void say_reliability(n2_text *text, const n2_reliability *r) {
    if (r->bins == 0) return;
    n2_text_add(
        text,
        "weights    mean %.3g +- %.2g over the denominator (1 if scores are right), effective "
        "share of it %.2g\n",
        r->mean_weight.value, r->mean_weight.error, r->share);
    for (size_t k = 0; k < r->bins; k++) {
        const n2_reliability_bin *b = &r->bin[k];
        n2_text_add(text,
                    "%-10s log ratio %6.2f predicted, %6.2f +- %.2f seen, of %.0f and %.0f rows\n",
                    k ? "" : "reliable?", b->predicted, b->observed, b->error, b->num, b->den);
    }
}

static n2ce_status info_of_model(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2ce_model *m;
    N2_TRY(n2ce_model_load(ctx, n2ce_options_get(o, "model"), &m));
    n2_writer w = n2_writer_new(ctx);
    const n2_ratio *r = m->ratio;
    const n2_critic_options *c = &m->record.used.critic;
    n2_text_add(&w.text, "ratio      %s, nats\n",
                m->x_cols ? "ln p(x,y) / p(x)p(y)" : "ln p_num(x) / p_den(x)");
    say_columns(&w.text, m);
    n2_text_add(&w.text, "parts      %s%s", r->base ? "quadratic" : "", r->kernel ? "kernel" : "");
    if (r->smooths)
        n2_text_add(&w.text, " + mean of %zu smooth parts (%zu kernels%s)", r->smooths,
                    r->smooth[0]->centres,
                    r->smooth[0]->shapes ? " and functions of columns, in the quadratic's place"
                                         : "");
    if (r->forests)
        n2_text_add(&w.text, " + mean of %zu times %zu trees", r->forests, r->trees[0]->trees);
    if (r->critics)
        n2_text_add(&w.text, "%smean of %zu networks (width %zu, %zu blocks, %zu stage%s)",
                    r->base ? " + " : "", r->critics, c->width, c->blocks, c->stages,
                    c->stages == 1 ? "" : "s");
    n2_text_add(&w.text, "\n");
    say_reliability(&w.text, &m->reliability);
    n2_text_add(&w.text, "fitted as  %s\n", m->json);
    n2_text_add(&w.json, "%s\n", m->json);
    n2_text_add(&w.brief, "%zu\n", m->cols);
    n2_text_add(&w.kept, "nothing\n");
    n2ce_model_free(m);
    return n2_writer_take(&w, answer);
}

static n2ce_status run_info(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    N2_TRY(n2_option_needed(ctx, o, "info", "model"));
    const char *path = n2ce_options_get(o, "model"), *sheet = n2ce_options_get(o, "sheet");
    if (n2_may_be_images(ctx, path)) return n2_info_of_pictures(ctx, o, answer);
    N2_TRY(n2_is_detector_file(ctx, path)          ? n2_info_of_detector(ctx, path, answer)
           : n2_is_detector_of_pictures(ctx, path) ? n2_info_of_odd_pictures(ctx, path, answer)
           : n2_is_picture_model(ctx, path)        ? n2_info_of_picture_model(ctx, o, answer)
                                                   : info_of_model(ctx, o, answer));
    if (!sheet) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "%s is a model, and --sheet is for pictures. Leave it out.",
                   path);
}

const n2ce_task n2_info_task = {
    .name = "info",
    .summary = "what a model file is, or a file of pictures",
    .description = "Of a model: columns, scaling, parts, and how it was fitted. Of pictures: how "
                   "many, height, width,\n"
                   "channels, format, the range of their values, and labels where the file has "
                   "them; --sheet shows the\n"
                   "first of them. Files are recognised by what they hold.\n",
    .examples = "n2ce info model.safetensors\n"
                "n2ce info train-images-idx3-ubyte.gz --sheet digits.png\n",
    .options = info_options,
    .operands = "model",
    .run = run_info,
};
