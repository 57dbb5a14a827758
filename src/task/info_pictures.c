#include "info_pictures.h"

#include "diffusion/denoiser.h"

#include "image/image.h"
#include "io/file.h"
#include "io/json.h"
#include "lebm/lebm.h"

#include <string.h>

/* What can be said of pixels and labels. */
typedef struct statistics {
    unsigned least, most;
    double mean;
    size_t classes; /* labels that occur; 0: there are none */
} statistics;

static statistics measure(const n2_images *p) {
    const size_t all = p->n * p->height * p->width * p->channels;
    size_t count[256] = {0}, labels[256] = {0};
    statistics s = {.least = 255};
    for (size_t i = 0; i < all; i++) count[p->pixels[i]]++;
    for (unsigned v = 0; v < 256; v++) {
        if (count[v] == 0) continue;
        if (v < s.least) s.least = v;
        s.most = v;
        s.mean += (double)v * (double)count[v] / (double)all;
    }
    for (size_t i = 0; p->labels && i < p->n; i++) s.classes += labels[p->labels[i]]++ == 0;
    return s;
}

static void say(n2_writer *w, const n2_images *p, const statistics *s) {
    n2_text_add(&w->text, "pictures   %zu of %zu x %zu pixels (height x width), %s\n", p->n,
                p->height, p->width, p->channels == 1 ? "grey" : "RGB");
    n2_text_add(&w->text, "format     %s", p->format);
    if (p->packed) n2_text_add(&w->text, ", packed by %s", p->packed);
    n2_text_add(&w->text, "\nrange      %u to %u, mean %.2f\n", s->least, s->most, s->mean);
    if (s->classes) n2_text_add(&w->text, "labels     %zu classes\n", s->classes);
    n2_text_add(&w->brief, "%zu\n", p->n);
    n2_text_add(&w->kept, "nothing\n");
}

static void say_json(n2_text *json, const n2_images *p, const statistics *s) {
    n2_text_add(
        json,
        "{\"pictures\": %zu, \"height\": %zu, \"width\": %zu, \"channels\": %zu, \"format\": "
        "\"%s\", \"packed\": ",
        p->n, p->height, p->width, p->channels, p->format);
    n2_text_add(json, p->packed ? "\"%s\"" : "null", p->packed);
    n2_text_add(json, ", \"least\": %u, \"most\": %u, \"mean\": %.6g, \"classes\": %zu}\n",
                s->least, s->most, s->mean, s->classes);
}

static void note_numbers(n2ce_answer *answer, const n2_images *p, const statistics *s) {
    n2_note_number(answer, "pictures", (double)p->n);
    n2_note_number(answer, "height", (double)p->height);
    n2_note_number(answer, "width", (double)p->width);
    n2_note_number(answer, "channels", (double)p->channels);
    n2_note_number(answer, "least", s->least);
    n2_note_number(answer, "most", s->most);
    n2_note_number(answer, "mean", s->mean);
}

static n2ce_status write_sheet(const n2_images *p, const n2ce_options *o, const char *path) {
    const size_t first = (size_t)n2_options_count(o, "first");
    return n2_images_write_sheet(p, first < p->n ? first : p->n, 0, path,
                                 n2_options_flag(o, "force") ? n2_file_write : n2_file_create);
}

n2ce_status n2_info_of_pictures(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2_images *pictures;
    const char *sheet = n2ce_options_get(o, "sheet");
    if (sheet) N2_TRY(n2_file_check_output(ctx, sheet, n2_options_flag(o, "force")));
    N2_TRY(n2_images_read(ctx, n2ce_options_get(o, "model"), &pictures));
    const statistics s = measure(pictures);
    n2_writer w = n2_writer_new(ctx);
    say(&w, pictures, &s);
    say_json(&w.json, pictures, &s);
    note_numbers(answer, pictures, &s);
    const n2ce_status status = sheet ? write_sheet(pictures, o, sheet) : N2CE_OK;
    if (sheet) n2_text_add(&w.text, "sheet      %s\n", sheet);
    n2_images_free(pictures);
    if (status == N2CE_OK) return n2_writer_take(&w, answer);
    n2_writer_free(&w);
    return status;
}

/* ---- models of pictures ---- */

static void say_prior(n2_text *text, const n2_prior *p) {
    const n2_prior_spec *s = &p->spec;
    static const char *const kinds[] = {"N(0, I)", "learnt by N2CE",
                                        "learnt by maximum likelihood"};
    n2_text_add(text, "prior      %s", kinds[s->kind]);
    if (s->kind == N2_PRIOR_N2CE)
        n2_text_add(text, ", M = %g, K = %lld", s->magnitude, (long long)s->stages);
    if (s->kind != N2_PRIOR_GAUSSIAN)
        n2_text_add(text, ", %lld parameters", (long long)n2_parameters_count(&p->parameters));
    n2_text_add(text, "%s\n", s->fitted ? ", over a Gaussian that is fitted to codes" : "");
}

static void say_kind(n2_text *text, const n2_denoiser_spec *s) {
    if (s->kind == N2_DENOISER_ONE_STEP)
        n2_text_add(text, "distilled to one step, from noise of sigma = %g\n", s->sigma);
    else if (s->kind == N2_DENOISER_FEW_STEPS)
        n2_text_add(text, "distilled to %zu ancestral steps\n", s->steps);
    else
        n2_text_add(text, "a diffusion model, for any sampler\n");
}

static n2ce_status info_of_denoiser(n2ce_ctx *ctx, const char *path, n2ce_answer *answer) {
    n2_denoiser *m;
    N2_TRY(n2_denoiser_load(ctx, path, &m));
    n2_writer w = n2_writer_new(ctx);
    const n2_denoiser_spec *s = &m->spec;
    n2_text_add(&w.text, "model      of pictures of %lld x %lld pixels (height x width), %s\n",
                (long long)s->height, (long long)s->width, s->net.channels == 1 ? "grey" : "RGB");
    n2_text_add(&w.text, "network    U-Net of base %lld, %d levels, %lld parameters",
                (long long)s->net.base, s->net.levels,
                (long long)n2_parameters_count(&m->net.parameters));
    if (s->net.labels) n2_text_add(&w.text, ", told %lld classes", (long long)s->net.labels);
    n2_text_add(&w.text, "\nkind       ");
    say_kind(&w.text, s);
    n2_denoiser_spec_json(s, &w.json);
    n2_text_add(&w.json, "\n");
    n2_text_add(&w.brief, "%lld\n", (long long)n2_parameters_count(&m->net.parameters));
    n2_text_add(&w.kept, "nothing\n");
    n2_denoiser_free(m);
    return n2_writer_take(&w, answer);
}

bool n2_is_picture_model(n2ce_ctx *ctx, const char *path) {
    return n2_lebm_is_model(ctx, path) || n2_denoiser_is_model(ctx, path);
}

n2ce_status n2_info_of_picture_model(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const char *path = n2ce_options_get(o, "model");
    n2_lebm *m;
    if (n2_denoiser_is_model(ctx, path)) return info_of_denoiser(ctx, path, answer);
    N2_TRY(n2_lebm_load(ctx, path, &m));
    n2_writer w = n2_writer_new(ctx);
    const n2_lebm_spec *s = &m->nets.spec;
    n2_text_add(&w.text, "model      of pictures of %zu x %zu pixels (height x width), %s\n",
                s->frame.height, s->frame.width, s->frame.channels == 1 ? "grey" : "RGB");
    n2_text_add(&w.text, "networks   %s: codes of %lld numbers, %lld parameters\n", s->net->name,
                (long long)s->nz, (long long)n2_parameters_count(&m->nets.vae));
    say_prior(&w.text, &m->nets.prior);
    n2_lebm_spec_json(s, &w.json);
    n2_text_add(&w.json, "\n");
    n2_text_add(&w.brief, "%lld\n", (long long)s->nz);
    n2_text_add(&w.kept, "nothing\n");
    n2_lebm_free(m);
    return n2_writer_take(&w, answer);
}
