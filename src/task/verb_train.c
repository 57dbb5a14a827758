/* train: a latent energy-based model of pictures; train_diffusion.c has the other kind. */
#include "base/numerics.h"
#include "checkpoint_options.h"
#include "device_options.h"
#include "io/file.h"
#include "lebm_options.h"
#include "ratio_session.h"
#include "train_diffusion.h"

#include <stdio.h>

static const n2ce_option train_options[] = {
    {"images", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "IMAGES",
     "pictures to learn from: PNG, IDX, CIFAR-10 or NPY, plain or packed by gzip or xz, or a "
     "folder "
     "of PNGs; several are separated by commas"},
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "write the model here"},
    N2_FORCE_OPTION,
    {"model", 0, N2CE_OPTION_WORD, "lebm", 0, 0, "lebm|diffusion", "KIND",
     "kind of model: lebm, codes with a learnt prior; diffusion, a network that removes noise"},
    {"prior", 0, N2CE_OPTION_WORD, "n2ce", 0, 0, "n2ce|mle|none", "NAME",
     "of the codes: learnt by N2CE, by maximum likelihood, or none but the Gaussian"},
    {"M", 'M', N2CE_OPTION_REAL, "100", 1, 1e6, NULL, "M", "noise magnitude of the prior"},
    {"stages", 'k', N2CE_OPTION_COUNT, "3", 1, N2_PRIOR_STAGES_MAX, NULL, "K",
     "ratios of the prior's telescope"},
    N2_LEBM_OPTIONS,
    N2_TRAIN_DIFFUSION_OPTIONS,
    N2_TIME_LIMIT_OPTION,
    N2_CHECKPOINT_OPTIONS,
    N2_SEED_OPTION,
    N2_DEVICE_OPTION,
    N2_PICTURES_PRECISION_OPTION,
    {0},
};

typedef struct session {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    const char *output;
    n2_images *pictures;
    n2_lebm_plan plan;
    n2_lebm_run run;
    n2_device_choice choice;
    n2_lebm *m;
    n2_lebm_record record;
    n2_checkpoint_use checkpoint;
} session;

/* ---- before ---- */

static n2ce_status choose_device(session *s) {
    s->run.choice = &s->choice;
    N2_TRY(n2_choice_of_options(s->ctx, s->o, &s->choice));
    return n2_checkpoint_choose_device(s->ctx, &s->checkpoint, &s->choice);
}

static n2_prior_kind kind_of(const n2ce_options *o) {
    return n2_options_has_word(o, "prior", "none")  ? N2_PRIOR_GAUSSIAN
           : n2_options_has_word(o, "prior", "mle") ? N2_PRIOR_MLE
                                                    : N2_PRIOR_N2CE;
}

static n2ce_status read_pictures(session *s) {
    enum { LEAST = 16 };
    const char *path = n2ce_options_get(s->o, "images");
    N2_TRY(n2_images_read_list(s->ctx, path, &s->pictures));
    if (s->pictures->n >= LEAST) return N2CE_OK;
    return n2_fail(s->ctx, N2CE_EDATA,
                   "%s: it has %zu picture%s; at least %d are needed, and thousands to learn much.",
                   path, s->pictures->n, s->pictures->n == 1 ? "" : "s", LEAST);
}

static void say_frame(const session *s) {
    const n2_images *p = s->pictures;
    const n2_image_spec *net = s->plan.spec.net;
    if (p->height == (size_t)net->side && p->width == (size_t)net->side &&
        p->channels == (size_t)net->channels)
        return;
    n2_log(s->ctx, N2CE_LOG_INFO,
           "Pictures of %zu x %zu with %zu channel%s are framed in black to the %lld x %lld x %lld "
           "of the net \"%s\"; what is sampled is cut again.",
           p->height, p->width, p->channels, p->channels == 1 ? "" : "s", (long long)net->side,
           (long long)net->side, (long long)net->channels, net->name);
}

static n2ce_status prepare(session *s) {
    N2_TRY(n2_option_needed(s->ctx, s->o, "train", "images"));
    N2_TRY(n2_option_needed(s->ctx, s->o, "train", "output"));
    s->output = n2ce_options_get(s->o, "output");
    N2_TRY(n2_file_check_output(s->ctx, s->output, n2_options_flag(s->o, "force")));
    N2_TRY(n2_checkpoint_of_options(s->ctx, s->o, s->output, &s->checkpoint));
    s->run.checkpoint = s->checkpoint.path;
    s->run.resume = s->checkpoint.resume;
    N2_TRY(choose_device(s));
    N2_TRY(read_pictures(s));
    N2_TRY(n2_lebm_plan_of_options(s->ctx, s->o, s->pictures, &s->plan));
    n2_lebm_plan_prior(s->o, kind_of(s->o), n2ce_options_number(s->o, "M"),
                       (int64_t)n2_options_count(s->o, "stages"), &s->plan);
    say_frame(s);
    s->run.schedule = s->plan.schedule;
    if (!n2_options_is_auto(s->o, "time-limit"))
        s->run.seconds = n2ce_options_number(s->o, "time-limit");
    return N2CE_OK;
}

/* ---- training ---- */

static n2ce_status train_here(session *s) {
    n2_lebm_free(s->m);
    N2_TRY(n2_lebm_new(s->ctx, &s->plan.spec, s->plan.schedule.seed, &s->m));
    return n2_lebm_train(s->m, s->pictures, &s->run, &s->record);
}

/* Once more on the processor, if a device that nobody insists on failed. */
static n2ce_status train(session *s) {
    n2ce_status status = train_here(s);
    if (n2_choice_retreat(&s->choice, s->ctx, status)) status = train_here(s);
    return status;
}

/* How it was trained, for who looks into the file; nothing of paths and machines. */
static n2ce_status write_model(session *s) {
    n2_text note = n2_text_new(s->ctx);
    char *text;
    n2_lebm_schedule_json(&s->plan.schedule, &note);
    N2_TRY(n2_text_take(&note, &text));
    const n2ce_status status = n2_lebm_save(s->m, text, s->output, n2_options_flag(s->o, "force"));
    n2_free(s->ctx, text);
    if (status == N2CE_OK) n2_checkpoint_used_up(s->ctx, &s->checkpoint);
    return status;
}

/* ---- the answer ---- */

static void say_ratios(n2_text *text, const n2_lebm_look *look, int64_t stages) {
    double sum = 0;
    for (int64_t k = 0; k < stages; k++) sum += look->ratio[k];
    n2_text_add(text, ", f %.2f", sum);
    for (int64_t k = 0; stages > 1 && k < stages; k++)
        n2_text_add(text, "%s%.2f", k ? " + " : " = ", look->ratio[k]);
}

static void say(n2_text *text, const session *s) {
    const n2_lebm_spec *spec = &s->plan.spec;
    const n2_lebm_record *r = &s->record;
    const n2_images *p = s->pictures;
    n2_text_add(text, "pictures   %zu of %zu x %zu pixels, %s\n", p->n, p->height, p->width,
                p->channels == 1 ? "grey" : "RGB");
    n2_text_add(text, "networks   %s: codes of %lld numbers, %lld parameters of pictures",
                spec->net->name, (long long)spec->nz,
                (long long)n2_parameters_count(&s->m->nets.vae));
    if (spec->prior.kind != N2_PRIOR_GAUSSIAN)
        n2_text_add(text, ", %lld of the prior",
                    (long long)n2_parameters_count(&s->m->nets.prior.parameters));
    n2_text_add(text, "\nsteps      %llu vae, %llu prior, %llu joint, %llu settle, on %s (%s)\n",
                (unsigned long long)r->steps[0], (unsigned long long)r->steps[1],
                (unsigned long long)r->steps[2], (unsigned long long)r->steps[3],
                n2_choice_name(&s->choice), s->choice.reason);
    if (r->looks) {
        const n2_lebm_look *last = &r->look[r->looks - 1];
        n2_text_add(text, "at the end misfit %.2f, divergence %.2f nats", last->misfit,
                    last->divergence);
        if (spec->prior.kind != N2_PRIOR_GAUSSIAN) say_ratios(text, last, spec->prior.stages);
        n2_text_add(text, "\n");
    }
    if (r->out_of_time) n2_text_add(text, "The time limit ended it before all steps were done.\n");
    n2_text_add(text, "model      %s\n", s->output);
}

static void say_look(n2_text *json, const n2_lebm_look *look, int64_t stages) {
    n2_text_add(json, "{\"phase\": \"%s\", \"step\": %llu, \"misfit\": ",
                n2_lebm_phase_names[look->phase], (unsigned long long)look->step);
    n2_text_add_number(json, look->misfit);
    n2_text_add(json, ", \"divergence\": ");
    n2_text_add_number(json, look->divergence);
    n2_text_add(json, ", \"f\": [");
    for (int64_t k = 0; k < stages; k++) {
        if (k) n2_text_add(json, ", ");
        n2_text_add_number(json, look->ratio[k]);
    }
    n2_text_add(json, "]}");
}

static void say_json(n2_text *json, const session *s) {
    const n2_lebm_record *r = &s->record;
    const n2_prior_spec *prior = &s->plan.spec.prior;
    const int64_t stages = prior->kind == N2_PRIOR_GAUSSIAN ? 0 : prior->stages;
    n2_text_add(json, "{\"options\": ");
    n2_options_json(s->o, json);
    n2_text_add(json, ", \"model\": ");
    n2_lebm_spec_json(&s->plan.spec, json);
    n2_text_add(json,
                ", \"pictures\": %zu, \"device\": \"%s\", \"steps\": [%llu, %llu, %llu, %llu]",
                s->pictures->n, n2_choice_name(&s->choice), (unsigned long long)r->steps[0],
                (unsigned long long)r->steps[1], (unsigned long long)r->steps[2],
                (unsigned long long)r->steps[3]);
    n2_text_add(json, ", \"out_of_time\": %s, \"resumed\": %s, \"looks\": [",
                r->out_of_time ? "true" : "false", r->resumed ? "true" : "false");
    for (size_t i = 0; i < r->looks; i++) {
        n2_text_add(json, i ? ", " : "");
        say_look(json, &r->look[i], stages);
    }
    n2_text_add(json, "]}\n");
}

static n2ce_status answer_of(const session *s, n2ce_answer *answer) {
    const n2_lebm_record *r = &s->record;
    n2_writer w = n2_writer_new(s->ctx);
    say(&w.text, s);
    say_json(&w.json, s);
    n2_text_add_number(&w.brief, r->looks ? r->look[r->looks - 1].misfit : N2_NAN);
    n2_text_add(&w.brief, "\n");
    n2_text_add(&w.kept, "the model\n");
    if (r->looks) {
        n2_note_number(answer, "misfit", r->look[r->looks - 1].misfit);
        n2_note_number(answer, "divergence", r->look[r->looks - 1].divergence);
    }
    n2_note_number(answer, "pictures", (double)s->pictures->n);
    return n2_writer_take(&w, answer);
}

static n2ce_status run_session(session *s, n2ce_answer *answer) {
    N2_TRY(prepare(s));
    const n2ce_status status = train(s);
    if (status == N2CE_ECANCELED) return n2_checkpoint_stopped(s->ctx, &s->checkpoint, answer);
    N2_TRY(status);
    N2_TRY(write_model(s));
    return answer_of(s, answer);
}

static n2ce_status run_train(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    if (n2_options_has_word(o, "model", "diffusion")) return n2_train_diffusion(ctx, o, answer);
    N2_TRY(n2_options_of_other(ctx, o, n2_options_of_diffusion, "diffusion"));
    session *s = n2_alloc(ctx, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    s->ctx = ctx;
    s->o = o;
    const n2ce_status status = run_session(s, answer);
    n2_lebm_free(s->m);
    n2_images_free(s->pictures);
    n2_free(ctx, s);
    return status;
}

const n2ce_task n2_train_task = {
    .name = "train",
    .summary = "a generative model of pictures: codes with a learnt prior, or diffusion",
    .description =
        "Learns a variational autoencoder of the pictures (phase vae), then a prior of its codes,\n"
        "a Gaussian times exp f, with f learnt by N2CE over K stages between noise and codes\n"
        "(prior), then all of it together (joint). Progress is told as lines: misfit, the mean\n"
        "squared error of a picture, summed over its pixels in [-1, 1]; divergence of codes from\n"
        "N(0, I), in nats; what each stage adds to f on codes of pictures.\n"
        "\n"
        "Pictures are 28 x 28 grey, or 32 x 32, 64 x 64 or 256 x 256 RGB; smaller ones are "
        "framed.\n"
        "Ctrl-C keeps the state of training beside the output; --resume goes on from there and\n"
        "gives what an uninterrupted run gives. n2ce sample makes pictures with the model.\n"
        "\n"
        "--model diffusion trains a network that removes noise of any level (EDM), on a GPU, for\n"
        "pictures whose sides can be halved twice: 16 x 16, 28 x 28, 32 x 32. --net is s (the\n"
        "default), ddpmpp or ddpm. n2ce distill makes a one-step generator of it.\n",
    .examples = "n2ce train images/ -o faces.model\n"
                "n2ce train train-images-idx3-ubyte.gz -o digits.model --effort 0.5\n"
                "n2ce train a.bin.xz,b.bin.xz -o model --preset paper --net cifar --device cuda\n"
                "n2ce train --model diffusion images/ -o teacher --sheet sofar.png\n",
    .options = train_options,
    .operands = "images",
    .run = run_train,
};
