#include "ratio_answer.h"

#include "base/numerics.h"
#include "ratio_report.h"

#include <math.h>
#include <string.h>

double n2_interval_quantile(const n2ce_options *o) {
    return n2_normal_quantile(0.5 + 0.5 * n2ce_options_number(o, "level"));
}

n2_interval n2_interval_of(const n2ce_options *o, n2_estimate e, double most) {
    const double z = n2_interval_quantile(o);
    const double scale = strcmp(n2ce_options_get(o, "unit"), "bits") == 0 ? 1 / log(2) : 1;
    double hi = e.value + z * e.error;
    if (hi > most && e.value < most) hi = most;
    return (n2_interval){scale * e.value, scale * (e.value - z * e.error), scale * hi,
                         scale * e.error};
}

void n2_interval_json(n2_text *json, const char *name, n2_interval v) {
    const char *const names[] = {name, "lo", "hi"};
    const double numbers[] = {v.value, v.lo, v.hi};
    for (size_t i = 0; i < 3; i++) {
        n2_text_add(json, "%s\"%s\": ", i ? ", " : "", names[i]);
        n2_text_add_number(json, numbers[i]);
    }
}

void n2_interval_say(n2_text *text, const n2ce_options *o, const char *name, n2_interval v) {
    n2_text_add(text, "%-22s %10.4f %s   %g %% interval %.4f to %.4f%s\n", name, v.value,
                n2ce_options_get(o, "unit"), 100 * n2ce_options_number(o, "level"), v.lo, v.hi,
                v.lo <= 0 && v.hi >= 0 ? ", consistent with 0" : "");
}

n2_headline n2_headline_of(const n2_session *s) {
    n2_headline h;
    const n2_estimate e = n2_estimate_kl(&s->scores, &s->record, &h.quality);
    h.v = n2_interval_of(s->options, e, N2_INFINITY);
    h.verdict = n2_judge(s, N2_JUDGED_KL, e, &h.quality, n2_interval_quantile(s->options));
    return h;
}

void n2_answer_note(const n2_session *s, const n2_judgement *verdict, const char *name,
                    n2_interval v) {
    const n2ce_estimate e = {.value = v.value,
                             .lo = v.lo,
                             .hi = v.hi,
                             .standard_error = v.error,
                             .unit = n2ce_options_get(s->options, "unit"),
                             .trusted = verdict->trust == N2_TRUSTED,
                             .verdict = n2_trust_name(verdict->trust),
                             .reason = verdict->reason};
    n2_note_estimate(s->answer, name, &e);
}

void n2_verdict_json(n2_text *json, const n2_judgement *verdict) {
    n2_text_add(json, ", \"verdict\": \"%s\", \"reason\": ", n2_trust_name(verdict->trust));
    if (*verdict->reason)
        n2_text_add_json_string(json, verdict->reason);
    else
        n2_text_add(json, "null");
}

static void note_headline(const n2_session *s, const n2_headline *h, const char *name) {
    n2_note_number(s->answer, "estimate", h->v.value);
    n2_note_number(s->answer, "lo", h->v.lo);
    n2_note_number(s->answer, "hi", h->v.hi);
    n2_answer_note(s, &h->verdict, "estimate", h->v);
    n2_answer_note(s, &h->verdict, name, h->v);
}

void n2_headline_begin(const n2_session *s, const n2_headline *h, const char *name, n2_writer *w) {
    note_headline(s, h, name);
    n2_text_add(&w->json, "{");
    n2_interval_json(&w->json, "estimate", h->v);
    n2_text_add(&w->json, ", \"unit\": \"%s\"", n2ce_options_get(s->options, "unit"));
    n2_verdict_json(&w->json, &h->verdict);
}

static void add_quality(n2_text *json, const n2_quality *q) {
    const struct {
        const char *name;
        double value;
    } rows[] = {{"balance", q->balance},
                {"balance_error", q->balance_error},
                {"balance_M", q->balance_magnitude},
                {"normalisation", q->normalisation},
                {"ess", q->ess},
                {"saturated", q->saturated},
                {"sampling", q->sampling},
                {"fitting", q->fitting},
                {"tail", q->tail},
                {"choice", q->choice},
                {"curve", q->curve},
                {"kl_bound", q->bound},
                {"kl_cap", q->cap}};
    n2_text_add(json, ", \"quality\": {");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        n2_text_add(json, "%s\"%s\": ", i ? ", " : "", rows[i].name);
        n2_text_add_number(json, rows[i].value);
    }
    n2_text_add(json, "}");
}

void n2_headline_end(const n2_session *s, const n2_headline *h, const char *kept, n2_writer *w) {
    add_quality(&w->json, &h->quality);
    if (s->report) {
        n2_report_json(s, &w->json);
        n2_text_add(&w->json, "}");
    }
    n2_text_add(&w->json, ", ");
    n2_session_json(s, &w->json);
    n2_text_add(&w->json, "}\n");
    n2_text_add_number(&w->brief, h->v.value);
    n2_text_add(&w->brief, "\n");
    n2_text_add(&w->kept, "%s\n", kept);
}

void n2_headline_say(const n2_session *s, const n2_headline *h, n2_text *text) {
    n2_text_add(text, "\nsamples    ");
    n2_session_samples(s, text);
    n2_text_add(text, "\n");
    n2_text_add(text, "chosen     ");
    n2_session_say(s, text);
    n2_text_add(text,
                "checks     balance %.3g +- %.2g (0 if the ratio is right), effective share of the "
                "denominator %.2g\n",
                h->quality.balance, h->quality.balance_error, h->quality.ess);
    n2_text_add(text, "verdict    %s%s%s\n", n2_trust_name(h->verdict.trust),
                *h->verdict.reason ? ": " : "", h->verdict.reason);
}
