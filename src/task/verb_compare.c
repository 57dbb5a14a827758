/* compare: how near made pictures are to real ones. */
#include "base/numerics.h"
#include "device_options.h"
#include "image/image.h"
#include "metric/feature_net.h"
#include "metric/patch_features.h"
#include "metric/set_distance.h"
#include "ratio_session.h"

static const n2ce_option compare_options[] = {
    {"real", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "REAL",
     "real pictures: PNG, IDX, CIFAR-10 or NPY, plain or packed by gzip or xz, or a folder of "
     "PNGs"},
    {"made", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "MADE", "pictures to judge, likewise"},
    {"features", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "NET",
     "features of a network: NET.f32, with the list NET_manifest.txt beside it, of a residual "
     "network for CIFAR-10, or NET.bin with NET.param, ncnn's files of SqueezeNet; default: layout "
     "and texture of patches, which needs no file"},
    {"neighbours", 0, N2CE_OPTION_COUNT, "3", 1, N2_NEIGHBOURS_MAX, NULL, "K",
     "of precision and recall: a picture's ball reaches to its K-th nearest"},
    N2_SEED_OPTION,
    N2_DEVICE_OPTION,
    N2_PRECISION_OPTION,
    {0},
};

/* A set of pictures, and what the network says of them. */
typedef struct picture_set {
    const char *path;
    n2_images *pictures;
    float *features;
    double *probabilities; /* [n x classes]; NULL: there are no classes */
    n2_class_score score;
} picture_set;

typedef struct comparison {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    picture_set set[2]; /* real, made */
    const char *net;    /* path; NULL: patches */
    n2_device_choice choice;
    size_t d, classes, k;
    uint64_t seed;
    n2_set_distance made, floor;
} comparison;

/* ---- features ---- */

static n2ce_status read_set(comparison *c, picture_set *s, const char *name) {
    N2_TRY(n2_option_needed(c->ctx, c->o, "compare", name));
    s->path = n2ce_options_get(c->o, name);
    N2_TRY(n2_images_read(c->ctx, s->path, &s->pictures));
    const size_t least = c->k < N2_SET_LEAST / 2 ? N2_SET_LEAST : 2 * (c->k + 1);
    if (s->pictures->n >= least) return N2CE_OK;
    return n2_fail(
        c->ctx, N2CE_EDATA,
        "%s: it has %zu picture%s; at least %zu are needed, and thousands for numbers that "
        "mean something.",
        s->path, s->pictures->n, s->pictures->n == 1 ? "" : "s", least);
}

static n2ce_status make_room(comparison *c, picture_set *s) {
    const size_t n = s->pictures->n;
    s->features = n2_alloc(c->ctx, n * c->d, sizeof *s->features);
    if (c->classes) s->probabilities = n2_alloc(c->ctx, n * c->classes, sizeof(double));
    return s->features && (s->probabilities || !c->classes) ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status patch_features(comparison *c) {
    n2_patch_basis *basis;
    if (n2_gpu_number(n2ce_options_get(c->o, "device")) >= 0)
        return n2_fail(c->ctx, N2CE_EINVAL,
                       "Layout and texture are worked out on the processor: leave --device out, or "
                       "name a network with --features.");
    c->d = N2_PATCH_FEATURES;
    N2_TRY(n2_patch_basis_learn(c->ctx, c->set[0].pictures, &basis));
    n2ce_status status = N2CE_OK;
    for (int i = 0; i < 2 && status == N2CE_OK; i++) {
        picture_set *s = &c->set[i];
        status = make_room(c, s);
        if (status == N2CE_OK) status = n2_patch_features(basis, s->pictures, s->features);
    }
    n2_patch_basis_free(basis);
    return status;
}

static n2ce_status net_features(comparison *c) {
    n2_feature_net *net;
    N2_TRY(n2_feature_net_open(c->ctx, c->net, &net));
    c->d = n2_feature_net_width(net);
    c->classes = n2_feature_net_classes(net);
    n2ce_status status = N2CE_OK;
    for (int i = 0; i < 2 && status == N2CE_OK; i++) {
        picture_set *s = &c->set[i];
        status = make_room(c, s);
        if (status == N2CE_OK)
            status =
                n2_feature_net_apply(net, s->pictures, &c->choice, s->features, s->probabilities);
        if (status == N2CE_OK)
            s->score = n2_class_score_of(s->probabilities, s->pictures->n, c->classes);
    }
    n2_feature_net_free(net);
    return status;
}

static n2ce_status measure(comparison *c) {
    if (c->net || n2_gpu_number(n2ce_options_get(c->o, "device")) < 0)
        N2_TRY(n2_choice_of_options(c->ctx, c->o, &c->choice));
    N2_TRY(read_set(c, &c->set[0], "real"));
    N2_TRY(read_set(c, &c->set[1], "made"));
    N2_TRY(c->net ? net_features(c) : patch_features(c));
    const size_t n = c->set[0].pictures->n;
    const n2_feature_rows real = {n, c->d, c->set[0].features};
    const n2_feature_rows made = {c->set[1].pictures->n, c->d, c->set[1].features};
    N2_TRY(n2_set_distance_of(c->ctx, &real, &made, c->k, c->seed, &c->made));
    return n2_set_floor(c->ctx, c->set[0].features, n, c->d, c->k, c->seed, &c->floor);
}

/* ---- the answer ---- */

static void say_set(n2_text *text, const char *name, const picture_set *s) {
    const n2_images *p = s->pictures;
    n2_text_add(text, "%-10s %s: %zu pictures of %zu x %zu pixels, %s\n", name, s->path, p->n,
                p->height, p->width, p->channels == 1 ? "grey" : "RGB");
}

static void say_table(n2_text *text, const comparison *c) {
    const n2_set_distance *m = &c->made, *f = &c->floor;
    n2_text_add(text, "\n%-18s %12s %16s\n", "", "made", "halves of real");
    n2_text_add(text, "%-18s %12.5g %16.5g\n", "Frechet distance", m->frechet.distance,
                f->frechet.distance);
    n2_text_add(text, "%-18s %12.5g %16.5g\n", "KID", m->kid.mean, f->kid.mean);
    n2_text_add(text, "%-18s %12.2g %16.2g\n", "  spread", m->kid.spread, f->kid.spread);
    n2_text_add(text, "%-18s %12.4f %16.4f\n", "precision", m->neighbours.precision,
                f->neighbours.precision);
    n2_text_add(text, "%-18s %12.4f %16.4f\n", "recall", m->neighbours.recall,
                f->neighbours.recall);
    if (!c->classes) return;
    n2_text_add(text, "\n%-18s %12s %16s\n", "", "made", "real");
    n2_text_add(text, "%-18s %12.4f %16.4f\n", "class score", c->set[1].score.mean,
                c->set[0].score.mean);
}

static void say_limits(n2_text *text, const comparison *c) {
    const size_t half = c->set[0].pictures->n / 2, d = c->d;
    n2_text_add(
        text,
        "\nHalves of real, %zu pictures each, are two samples of one distribution: pictures as "
        "good as\nreal ones come near that column. Compare only what has the same features "
        "and as many pictures.\n",
        half);
    if (c->set[0].pictures->n <= d || c->set[1].pictures->n <= d || half <= d)
        n2_text_add(
            text,
            "There are no more pictures than features (%zu) in a set, or in a half of real: its "
            "covariance is not of\nfull rank, and its Frechet distances are too large.\n",
            d);
    if (c->made.neighbours.real_rows < c->set[0].pictures->n ||
        c->made.neighbours.made_rows < c->set[1].pictures->n)
        n2_text_add(
            text,
            "Precision and recall are those of %d pictures a set, one of each of equal steps.\n",
            (int)N2_NEIGHBOUR_ROWS);
}

static void say(n2_writer *w, const comparison *c) {
    const n2_set_distance *m = &c->made;
    say_set(&w->text, "real", &c->set[0]);
    say_set(&w->text, "made", &c->set[1]);
    n2_text_add(&w->text, "%-10s %zu, ", "features", c->d);
    if (c->net)
        n2_text_add(&w->text, "of %s on %s\n", c->net, n2_choice_name(&c->choice));
    else
        n2_text_add(&w->text, "of layout and texture; --features NET.f32 has those of a network\n");
    say_table(&w->text, c);
    say_limits(&w->text, c);
    const double brief[] = {m->frechet.distance, m->kid.mean, m->neighbours.precision,
                            m->neighbours.recall};
    for (size_t i = 0; i < sizeof brief / sizeof *brief; i++) {
        n2_text_add_number(&w->brief, brief[i]);
        n2_text_add(&w->brief, "\n");
    }
    n2_text_add(&w->kept, "nothing\n");
}

static void json_number(n2_text *json, const char *name, double value, const char *after) {
    n2_text_add(json, "\"%s\": ", name);
    n2_text_add_number(json, value);
    n2_text_add(json, "%s", after);
}

static void json_distance(n2_text *json, const n2_set_distance *d) {
    n2_text_add(json, "{");
    json_number(json, "frechet", d->frechet.distance, ", ");
    json_number(json, "frechet_of_means", d->frechet.means, ", ");
    n2_text_add(json, "\"ranks\": [%zu, %zu], ", d->frechet.rank_a, d->frechet.rank_b);
    json_number(json, "kid", d->kid.mean, ", ");
    json_number(json, "kid_spread", d->kid.spread, ", ");
    n2_text_add(json, "\"kid_rows\": %zu, ", d->kid.subset);
    json_number(json, "precision", d->neighbours.precision, ", ");
    json_number(json, "recall", d->neighbours.recall, ", ");
    n2_text_add(json, "\"neighbour_rows\": [%zu, %zu]}", d->neighbours.real_rows,
                d->neighbours.made_rows);
}

static void json_set(n2_text *json, const char *name, const picture_set *s) {
    n2_text_add(json, "\"%s\": {\"file\": ", name);
    n2_text_add_json_string(json, s->path);
    n2_text_add(json, ", \"pictures\": %zu, ", s->pictures->n);
    json_number(json, "class_score", s->probabilities ? s->score.mean : N2_NAN, ", ");
    json_number(json, "class_score_spread", s->probabilities ? s->score.spread : N2_NAN, "}, ");
}

static void say_json(n2_text *json, const comparison *c) {
    n2_text_add(json, "{\"options\": ");
    n2_options_json(c->o, json);
    n2_text_add(json, ", ");
    json_set(json, "real", &c->set[0]);
    json_set(json, "made", &c->set[1]);
    n2_text_add(json, "\"features\": %zu, \"device\": \"%s\", \"distance\": ", c->d,
                n2_choice_name(&c->choice));
    json_distance(json, &c->made);
    n2_text_add(json, ", \"floor\": ");
    json_distance(json, &c->floor);
    n2_text_add(json, "}\n");
}

static void note_numbers(n2ce_answer *answer, const comparison *c) {
    n2_note_number(answer, "frechet", c->made.frechet.distance);
    n2_note_number(answer, "kid", c->made.kid.mean);
    n2_note_number(answer, "kid_spread", c->made.kid.spread);
    n2_note_number(answer, "precision", c->made.neighbours.precision);
    n2_note_number(answer, "recall", c->made.neighbours.recall);
    n2_note_number(answer, "frechet_floor", c->floor.frechet.distance);
    n2_note_number(answer, "kid_floor", c->floor.kid.mean);
    n2_note_number(answer, "precision_floor", c->floor.neighbours.precision);
    n2_note_number(answer, "recall_floor", c->floor.neighbours.recall);
    if (c->classes) n2_note_number(answer, "class_score", c->set[1].score.mean);
}

static n2ce_status run_compare(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    comparison c = {.ctx = ctx, .o = o, .net = n2ce_options_get(o, "features")};
    c.k = (size_t)n2_options_count(o, "neighbours");
    c.seed = n2_options_count(o, "seed");
    n2ce_status status = measure(&c);
    if (status == N2CE_OK) {
        n2_writer w = n2_writer_new(ctx);
        say(&w, &c);
        say_json(&w.json, &c);
        note_numbers(answer, &c);
        status = n2_writer_take(&w, answer);
    }
    for (int i = 0; i < 2; i++) {
        n2_images_free(c.set[i].pictures);
        n2_free(ctx, c.set[i].features);
        n2_free(ctx, c.set[i].probabilities);
    }
    return status;
}

const n2ce_task n2_compare_task = {
    .name = "compare",
    .summary = "how near made pictures are to real ones, by features of them",
    .description =
        "Frechet distance: that of two normal distributions with the means and covariances of "
        "the features;\n"
        "0 if they agree, less is better. KID: the squared maximum mean discrepancy with the "
        "kernel\n"
        "(x.y / d + 1)^3 over 100 subsets, without bias. Precision: the share of made pictures "
        "that lie where\n"
        "real ones do; recall: the share of real ones that lie where made ones do. Class score: "
        "the form of the\n"
        "inception score, over 10 splits, by the classes of the network.\n"
        "\n"
        "The same of two halves of the real pictures says what the best is that can be hoped for "
        "with so many\n"
        "pictures. Numbers of other features, printed ones of Inception-v3 among them, are not "
        "comparable.\n"
        "Pictures are brought to 32 x 32 RGB first, or to the size that the network wants.\n",
    .examples = "n2ce compare test_batch.bin.xz samples/\n"
                "n2ce compare real.npy made.npy --features cifar10_resnet20.f32 --json\n",
    .options = compare_options,
    .operands = "real made",
    .run = run_compare,
};
