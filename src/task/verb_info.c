/* info: what is in a model file. */
#include "ratio_session.h"

static const n2ce_option info_options[] = {
    {"model", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "MODEL", "a model that n2ce fit wrote"},
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

static n2ce_status run_info(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2ce_model *m;
    N2_TRY(n2_option_needed(ctx, o, "info", "model"));
    N2_TRY(n2ce_model_load(ctx, n2ce_options_get(o, "model"), &m));
    n2_writer w = n2_writer_new(ctx);
    const n2_ratio *r = m->ratio;
    const n2_critic_options *c = &m->record.used.critic;
    n2_text_add(&w.text, "ratio      %s, nats\n",
                m->x_cols ? "ln p(x,y) / p(x)p(y)" : "ln p_num(x) / p_den(x)");
    say_columns(&w.text, m);
    n2_text_add(&w.text, "parts      %s%s", r->base ? "quadratic" : "", r->kernel ? "kernel" : "");
    if (r->critics)
        n2_text_add(&w.text, "%smean of %zu networks (width %zu, %zu blocks, %zu stage%s)",
                    r->base ? " + " : "", r->critics, c->width, c->blocks, c->stages,
                    c->stages == 1 ? "" : "s");
    n2_text_add(&w.text, "\nfitted as  %s\n", m->json);
    n2_text_add(&w.json, "%s\n", m->json);
    n2_text_add(&w.brief, "%zu\n", m->cols);
    n2_text_add(&w.kept, "nothing\n");
    n2ce_model_free(m);
    return n2_writer_take(&w, answer);
}

const n2ce_task n2_info_task = {
    .name = "info",
    .summary = "what a model file is",
    .description = "Columns, scaling, parts, and how the model was fitted.\n",
    .examples = "n2ce info model.safetensors\n",
    .options = info_options,
    .operands = "model",
    .run = run_info,
};
