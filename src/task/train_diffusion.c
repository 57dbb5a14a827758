#include "train_diffusion.h"

#include "base/numerics.h"
#include "checkpoint_options.h"
#include "diffusion/augment.h"
#include "io/file.h"
#include "ratio_session.h"

#include <math.h>
#include <string.h>

const char *const n2_options_of_lebm[] = {"prior",  "M",          "stages", "base",
                                          "preset", "codes",      "misfit", "noise",
                                          "phases", "prior-rate", NULL};
const char *const n2_options_of_diffusion[] = {"seen",  "augment",   "labels",  "decay",
                                               "halve", "features",  "watched", "looks",
                                               "sheet", "force-cpu", NULL};

n2ce_status n2_options_of_other(n2ce_ctx *ctx, const n2ce_options *o, const char *const *names,
                                const char *other) {
    for (size_t i = 0; names[i]; i++)
        if (n2_options_given(o, names[i]))
            return n2_fail(ctx, N2CE_EINVAL, "--%s is for --model %s. Leave it out.", names[i],
                           other);
    return N2CE_OK;
}

typedef struct session {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    const char *output;
    n2_images *pictures;
    n2_denoiser_spec spec;
    n2_denoiser_schedule schedule;
    n2_denoiser_run run;
    n2_device_choice choice, for_watch;
    n2_checkpoint_use checkpoint;
    char *identity;
    n2_denoiser *m;
    n2_denoiser_record record;
} session;

/* ---- before ---- */

static void read_schedule(session *s) {
    const n2ce_options *o = s->o;
    n2_denoiser_schedule *d = &s->schedule;
    *d = n2_denoiser_schedule_default();
    double seen = (double)d->steps * (double)d->batch;
    if (!n2_options_is_auto(o, "batch")) d->batch = (int64_t)n2_options_count(o, "batch");
    if (!n2_options_is_auto(o, "seen")) seen = n2ce_options_number(o, "seen");
    if (!n2_options_is_auto(o, "rate")) d->rate = n2ce_options_number(o, "rate");
    seen *= n2ce_options_number(o, "effort");
    d->steps = (uint64_t)fmax(1, floor(seen / (double)d->batch + 0.5));
    d->ramp = fmin(d->ramp, seen / 20);
    d->fall = n2ce_options_number(o, "decay");
    d->augment = n2ce_options_number(o, "augment");
    d->seed = n2_options_count(o, "seed");
}

static int64_t count_classes(const n2_images *p) {
    int64_t most = -1;
    for (size_t i = 0; p->labels && i < p->n; i++)
        if (p->labels[i] > most) most = p->labels[i];
    return most + 1;
}

static n2ce_status choose_network(session *s) {
    const char *name = n2ce_options_get(s->o, "net");
    const int64_t width =
        n2_options_is_auto(s->o, "width") ? 0 : (int64_t)n2_options_count(s->o, "width");
    const bool told = n2_options_flag(s->o, "labels");
    if (told && !s->pictures->labels)
        return n2_fail(s->ctx, N2CE_EDATA,
                       "%s: the pictures have no classes. --labels takes files that have them, "
                       "such as CIFAR-10's.",
                       n2ce_options_get(s->o, "images"));
    N2_TRY(n2_denoiser_spec_for(s->ctx, strcmp(name, "auto") == 0 ? "s" : name, s->pictures, width,
                                told ? count_classes(s->pictures) : 0, &s->spec));
    if (n2ce_options_number(s->o, "augment") > 0) s->spec.net.augment = N2_AUGMENT_NUMBERS;
    return N2CE_OK;
}

static n2ce_status check_time(session *s) {
    double seconds = 0;
    if (n2_choice_backend(&s->choice)->device) return N2CE_OK;
    N2_TRY(n2_denoiser_step_seconds(s->ctx, &s->spec, s->schedule.batch, &seconds));
    return n2_diffusion_check_time(s->ctx, s->o, &s->choice, s->schedule.steps, s->schedule.batch,
                                   seconds * (double)s->schedule.steps);
}

static n2ce_status prepare(session *s) {
    N2_TRY(n2_options_of_other(s->ctx, s->o, n2_options_of_lebm, "lebm"));
    N2_TRY(n2_option_needed(s->ctx, s->o, "train", "images"));
    N2_TRY(n2_option_needed(s->ctx, s->o, "train", "output"));
    s->output = n2ce_options_get(s->o, "output");
    N2_TRY(n2_file_check_output(s->ctx, s->output, n2_options_flag(s->o, "force")));
    N2_TRY(n2_checkpoint_of_options(s->ctx, s->o, s->output, &s->checkpoint));
    N2_TRY(n2_diffusion_check_sheet(s->ctx, s->o));
    N2_TRY(n2_diffusion_device(s->ctx, s->o, &s->choice));
    N2_TRY(n2_diffusion_pictures(s->ctx, s->o, &s->pictures));
    N2_TRY(choose_network(s));
    read_schedule(s);
    N2_TRY(check_time(s));
    N2_TRY(n2_diffusion_identity(s->ctx, s->o, s->pictures, &s->identity));
    s->run = (n2_denoiser_run){.looks = (size_t)n2_options_count(s->o, "looks"),
                               .sheet = n2ce_options_get(s->o, "sheet"),
                               .checkpoint = s->checkpoint.path,
                               .resume = s->checkpoint.resume,
                               .identity = s->identity,
                               .choice = &s->choice};
    if (!n2_options_is_auto(s->o, "time-limit"))
        s->run.seconds = n2ce_options_number(s->o, "time-limit");
    return n2_open_watch(s->ctx, s->o, s->pictures, &s->choice, &s->for_watch, &s->run);
}

/* ---- the answer ---- */

static void say(n2_text *text, const session *s) {
    const n2_images *p = s->pictures;
    const n2_curve *c = &s->record.curve;
    n2_text_add(text, "pictures   %zu of %zu x %zu pixels, %s\n", p->n, p->height, p->width,
                p->channels == 1 ? "grey" : "RGB");
    n2_text_add(text, "network    %lld parameters%s\n",
                (long long)n2_parameters_count(&s->m->net.parameters),
                s->spec.net.labels ? ", told the classes" : "");
    n2_text_add(text, "steps      %llu of %lld pictures, on %s (%s)\n",
                (unsigned long long)s->record.steps, (long long)s->schedule.batch,
                n2_choice_name(&s->choice), s->choice.reason);
    if (c->n) {
        const n2_curve_point *last = &c->point[c->n - 1];
        n2_text_add(text, "at the end loss %.4g", last->number[0]);
        if (isfinite(last->distance))
            n2_text_add(text, ", Frechet distance of %zu samples %.4g", s->run.watched,
                        last->distance);
        n2_text_add(text, "\n");
    }
    if (s->record.out_of_time)
        n2_text_add(text, "The time limit ended it before all steps were done.\n");
    n2_text_add(text, "model      %s\n", s->output);
}

static void say_json(n2_text *json, const session *s) {
    static const char *const names[] = {"loss", NULL};
    n2_text_add(json, "{\"options\": ");
    n2_options_json(s->o, json);
    n2_text_add(json, ", \"model\": ");
    n2_denoiser_spec_json(&s->spec, json);
    n2_text_add(json, ", \"pictures\": %zu, \"device\": \"%s\", \"steps\": %llu", s->pictures->n,
                n2_choice_name(&s->choice), (unsigned long long)s->record.steps);
    n2_text_add(json, ", \"out_of_time\": %s, \"resumed\": %s, \"curve\": ",
                s->record.out_of_time ? "true" : "false", s->record.resumed ? "true" : "false");
    n2_curve_json(&s->record.curve, names, json);
    n2_text_add(json, "}\n");
}

static n2ce_status answer_of(const session *s, n2ce_answer *answer) {
    const n2_curve *c = &s->record.curve;
    const n2_curve_point *last = c->n ? &c->point[c->n - 1] : NULL;
    n2_writer w = n2_writer_new(s->ctx);
    say(&w.text, s);
    say_json(&w.json, s);
    n2_text_add_number(&w.brief, last ? last->number[0] : N2_NAN);
    n2_text_add(&w.brief, "\n");
    n2_text_add(&w.kept, "the model\n");
    if (last) n2_note_number(answer, "loss", last->number[0]);
    if (last) n2_note_number(answer, "distance", last->distance);
    n2_note_number(answer, "pictures", (double)s->pictures->n);
    return n2_writer_take(&w, answer);
}

static n2ce_status run_session(session *s, n2ce_answer *answer) {
    N2_TRY(prepare(s));
    N2_TRY(n2_denoiser_new(s->ctx, &s->spec, s->schedule.seed, &s->m));
    const n2ce_status status =
        n2_denoiser_train(s->m, s->pictures, &s->schedule, &s->run, &s->record);
    if (status == N2CE_ECANCELED) return n2_checkpoint_stopped(s->ctx, &s->checkpoint, answer);
    N2_TRY(status);
    N2_TRY(n2_denoiser_save(s->m, NULL, s->output, n2_options_flag(s->o, "force")));
    n2_checkpoint_used_up(s->ctx, &s->checkpoint);
    return answer_of(s, answer);
}

n2ce_status n2_train_diffusion(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    session *s = n2_alloc(ctx, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    s->ctx = ctx;
    s->o = o;
    const n2ce_status status = run_session(s, answer);
    n2_distance_watch_close(s->run.watch);
    n2_denoiser_free(s->m);
    n2_images_free(s->pictures);
    n2_free(ctx, s->identity);
    n2_free(ctx, s);
    return status;
}
