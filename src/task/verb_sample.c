/* sample: pictures of a model that n2ce train wrote. */
#include "device_options.h"
#include "io/file.h"
#include "lebm_options.h"
#include "ratio_session.h"
#include "sample_diffusion.h"

#include <string.h>

static const n2ce_option sample_options[] = {
    {"model", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "MODEL",
     "a model that n2ce train or distill wrote"},
    {"number", 'n', N2CE_OPTION_COUNT, "64", 1, 1e7, NULL, "N",
     "pictures to make, or to take from a file"},
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "write the pictures here: NAME.png, side by side; NAME.npy, an array of bytes; or else a "
     "folder of PNGs"},
    N2_FORCE_OPTION,
    {"across", 0, N2CE_OPTION_COUNT, "auto", 1, 1e4, NULL, "N",
     "pictures in a row of NAME.png; auto: as many as make it nearly square, or fit"},
    {"prior", 0, N2CE_OPTION_WORD, "model", 0, 0, "model|none", "NAME",
     "of the codes: the model's, or none but the Gaussian"},
    {"steps", 0, N2CE_OPTION_COUNT, "auto", 0, 65535, NULL, "T",
     "steps of Langevin dynamics on the prior, from N(0, I), auto: 100; or of a diffusion model's "
     "sampler, auto: 18, or 10 but for heun"},
    N2_CHAINS_OPTIONS,
    {"reconstruct", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "PICTURES",
     "instead show the first pictures of this file beside what their codes become"},
    {"interpolate", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "PICTURES",
     "instead go from picture to picture of this file, pair by pair, in 8 pictures on the line "
     "between their codes"},
    N2_SAMPLE_DIFFUSION_OPTIONS,
    N2_SEED_OPTION,
    N2_DEVICE_OPTION,
    N2_PICTURES_PRECISION_OPTION,
    {0},
};

enum { BETWEEN = 8 };

typedef struct session {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    const char *output;
    n2_device_choice choice;
    n2_lebm *m;
    n2_denoiser *denoiser; /* one of the two is there */
    n2_images *made;
    size_t across; /* 0: as many as make it nearly square */
} session;

/* ---- pictures ---- */

/* The first pictures of a file. */
static n2ce_status read_first(const session *s, const char *path, n2_images **out) {
    const size_t n = (size_t)n2_options_count(s->o, "number");
    N2_TRY(n2_images_read_list(s->ctx, path, out));
    if ((*out)->n > n) (*out)->n = n;
    return N2CE_OK;
}

static n2ce_status of_pictures(session *s, const char *path, bool between) {
    n2_images *pictures;
    N2_TRY(read_first(s, path, &pictures));
    n2ce_status status = between ? n2_lebm_interpolate(s->m, pictures, BETWEEN, &s->made)
                                 : n2_lebm_reconstruct(s->m, pictures, &s->made);
    s->across = BETWEEN;
    n2_images_free(pictures);
    return status;
}

static uint64_t moves_of(const session *s) {
    enum { USUAL = 100 };
    return n2_options_is_auto(s->o, "steps") ? USUAL : n2_options_count(s->o, "steps");
}

static n2ce_status draw(session *s) {
    n2_lebm_sampling how = n2_lebm_sampling_of(s->o);
    how.no_prior = n2_options_has_word(s->o, "prior", "none");
    return n2_lebm_sample(s->m, &how, (size_t)n2_options_count(s->o, "number"), moves_of(s),
                          n2_options_count(s->o, "seed"), &s->made);
}

static n2ce_status make_here(session *s) {
    const char *again = n2ce_options_get(s->o, "reconstruct");
    const char *between = n2ce_options_get(s->o, "interpolate");
    if (s->denoiser) return n2_sample_diffusion(s->denoiser, s->o, &s->choice, &s->made);
    N2_TRY(n2_lebm_settle(s->m, &s->choice, (size_t)n2_options_count(s->o, "number"), moves_of(s)));
    if (again) return of_pictures(s, again, false);
    return between ? of_pictures(s, between, true) : draw(s);
}

static n2ce_status make(session *s) {
    const n2ce_status status = make_here(s);
    return n2_choice_retreat(&s->choice, s->ctx, status) ? make_here(s) : status;
}

/* ---- files ---- */

static bool ends_in(const char *path, const char *ending) {
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && strcmp(path + n - k, ending) == 0;
}

static n2ce_status write_pictures(const session *s) {
    const bool force = n2_options_flag(s->o, "force");
    const size_t across =
        n2_options_is_auto(s->o, "across") ? s->across : (size_t)n2_options_count(s->o, "across");
    if (ends_in(s->output, ".npy")) return n2_images_write_npy(s->made, s->output, force);
    if (ends_in(s->output, ".png"))
        return n2_images_write_sheet(s->made, 0, across, s->output,
                                     force ? n2_file_write : n2_file_create);
    return n2_images_write_folder(s->made, s->output, force);
}

/* Before the work. */
static n2ce_status check_output(const session *s) {
    const bool force = n2_options_flag(s->o, "force");
    if (ends_in(s->output, ".npy") || ends_in(s->output, ".png"))
        return n2_file_check_output(s->ctx, s->output, force);
    if (n2ce_options_get(s->o, "reconstruct") || n2ce_options_get(s->o, "interpolate"))
        return n2_folder_check_writable(s->ctx, s->output);
    return n2_images_check_folder(s->ctx, s->output, (size_t)n2_options_count(s->o, "number"),
                                  force);
}

/* ---- the answer ---- */

static n2ce_status answer_of(const session *s, n2ce_answer *answer) {
    const n2_images *p = s->made;
    n2_writer w = n2_writer_new(s->ctx);
    n2_text_add(&w.text, "pictures   %zu of %zu x %zu pixels, %s, made on %s\nwritten    %s\n",
                p->n, p->height, p->width, p->channels == 1 ? "grey" : "RGB",
                n2_choice_name(&s->choice), s->output);
    n2_text_add(&w.json, "{\"options\": ");
    n2_options_json(s->o, &w.json);
    n2_text_add(&w.json, ", \"model\": ");
    if (s->denoiser)
        n2_denoiser_spec_json(&s->denoiser->spec, &w.json);
    else
        n2_lebm_spec_json(&s->m->nets.spec, &w.json);
    n2_text_add(&w.json, ", \"pictures\": %zu, \"device\": \"%s\"}\n", p->n,
                n2_choice_name(&s->choice));
    n2_text_add(&w.brief, "%zu\n", p->n);
    n2_text_add(&w.kept, "the pictures\n");
    n2_note_number(answer, "pictures", (double)p->n);
    return n2_writer_take(&w, answer);
}

/* Who asks for what the model cannot do is not to take its pictures for an answer. */
static n2ce_status check_options(const session *s, const char *path, bool diffusion) {
    static const char *const of_codes[] = {"prior",       "step-size",   "chains",
                                           "reconstruct", "interpolate", NULL};
    static const char *const of_diffusion[] = {"sampler",  "churn", "second",
                                               "guidance", "label", NULL};
    const char *const *others = diffusion ? of_codes : of_diffusion;
    for (size_t i = 0; others[i]; i++)
        if (n2_options_given(s->o, others[i]))
            return n2_fail(s->ctx, N2CE_EINVAL, "%s is %s. Leave --%s out, which is for %s.", path,
                           diffusion ? "a diffusion model, which has no codes"
                                     : "a model with a prior of codes",
                           others[i], diffusion ? "models with a prior" : "diffusion models");
    return N2CE_OK;
}

static n2ce_status load(session *s) {
    const char *path = n2ce_options_get(s->o, "model");
    const bool diffusion = n2_denoiser_is_model(s->ctx, path);
    N2_TRY(check_options(s, path, diffusion));
    return diffusion ? n2_denoiser_load(s->ctx, path, &s->denoiser)
                     : n2_lebm_load(s->ctx, path, &s->m);
}

static n2ce_status run_session(session *s, n2ce_answer *answer) {
    N2_TRY(n2_option_needed(s->ctx, s->o, "sample", "model"));
    N2_TRY(n2_option_needed(s->ctx, s->o, "sample", "output"));
    s->output = n2ce_options_get(s->o, "output");
    if (n2ce_options_get(s->o, "reconstruct") && n2ce_options_get(s->o, "interpolate"))
        return n2_fail(s->ctx, N2CE_EINVAL, "Give --reconstruct or --interpolate, not both.");
    N2_TRY(check_output(s));
    N2_TRY(n2_choice_of_options(s->ctx, s->o, &s->choice));
    N2_TRY(load(s));
    N2_TRY(make(s));
    N2_TRY(write_pictures(s));
    return answer_of(s, answer);
}

static n2ce_status run_sample(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    session s = {.ctx = ctx, .o = o};
    const n2ce_status status = run_session(&s, answer);
    n2_images_free(s.made);
    n2_lebm_free(s.m);
    n2_denoiser_free(s.denoiser);
    return status;
}

const n2ce_task n2_sample_task = {
    .name = "sample",
    .summary = "pictures of a model that n2ce train wrote",
    .description =
        "Codes are drawn from the model's prior by Langevin dynamics, from N(0, I), and decoded. "
        "The\n"
        "same seed gives the same pictures, the first of them whatever their number. With\n"
        "--reconstruct, pictures of a file and what the model makes of their codes, in turns; "
        "with\n"
        "--interpolate, pictures on the line between the codes of two.\n"
        "\n"
        "A diffusion model goes from noise to pictures in --steps steps of --sampler; one that\n"
        "n2ce distill wrote, in its own.\n",
    .examples = "n2ce sample digits.model -n 64 -o sheet.png\n"
                "n2ce sample digits.model -n 50000 -o samples.npy --device cuda\n"
                "n2ce sample teacher -n 64 --steps 18 -o sheet.png\n"
                "n2ce sample digits.model --reconstruct t10k-images-idx3-ubyte.gz -o pairs.png\n",
    .options = sample_options,
    .operands = "model",
    .run = run_sample,
};
