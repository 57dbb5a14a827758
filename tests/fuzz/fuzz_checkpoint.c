/* Fuzzes checkpoints. The input is a file, changes to the bytes of a valid one, which may be cut,
 * or changes to its tensors and texts under a check sum that fits: its first byte says which, the
 * last most often. A training goes on from it. What is refused changes nothing and is told in a
 * sentence; from what is accepted training goes to its end, and what it then saves is accepted
 * again.
 *
 * libFuzzer: -max_len=64
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#define _GNU_SOURCE
#include "one_thread.h"
#include "tensor_parts.h"

#include "io/json.h"
#include "train/train.h"

#include <unistd.h>

enum { STEPS = 6, EVERY = 2, ELEMENTS = 6 };

static n2ce_ctx *ctx;
static n2_store *store;
static n2_parameters parameters;
static n2_tensor *w;
static char state_path[64]; /* of the checkpoint */
static char valid[1 << 14];
static size_t valid_bytes;
static float untrained[ELEMENTS];

/* ---- the training: numbers that come nearer to two, and are shaken a little -------------------
 */

static n2ce_status build(void *user, n2_graph *g, n2_outputs *out) {
    (void)user;
    const n2_node shaken = n2g_scale(g, n2g_randn(g, n2_dims(3, 2)), 1e-3);
    const n2_node next = n2g_add(g, n2g_affine(g, n2g_read(g, w), 0.5, 1), shaken);
    n2g_assign(g, w, next);
    n2_output(out, n2g_total(g, next));
    return N2CE_OK;
}

static n2ce_status check(void *user, uint64_t step, double *losses) {
    (void)user;
    *losses = (double)step * 0.5;
    return N2CE_OK;
}

static void cancel(void *user, double done, double total) {
    (void)user;
    if (done * 2 > total) n2ce_ctx_cancel(ctx);
}

/* From the checkpoint if `resume`, else to its third quarter. */
static n2ce_status train(bool resume) {
    const n2_phase phases[2] = {{.build = build,
                                 .steps = STEPS,
                                 .seed = 1,
                                 .parameters = &parameters,
                                 .average = 0.5,
                                 .check = check,
                                 .check_every = EVERY,
                                 .patience = 3},
                                {.build = build, .steps = STEPS, .seed = 2}};
    const n2_trainer t = {.store = store,
                          .phases = phases,
                          .n_phases = 2,
                          .progress = resume ? NULL : cancel,
                          .checkpoint = state_path,
                          .resume = resume,
                          .identity = "M=1\ndata=7\n"};
    n2_phase_record records[2];
    memcpy(w->data, untrained, sizeof untrained);
    const n2ce_status status = n2_train(&t, records);
    for (size_t i = 0; i < 2 && status == N2CE_OK; i++) REQUIRE(records[i].steps <= STEPS);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------
 */

static void put_file(const void *bytes, size_t n) {
    FILE *file = fopen(state_path, "wb");
    REQUIRE(file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}

static void remove_folder(void) {
    unlink(state_path);
    *strrchr(state_path, '/') = 0;
    rmdir(state_path);
}

/* A checkpoint in the midst of the second phase. */
static void set_up(void) {
    char folder[] = "/dev/shm/fuzz_checkpoint_XXXXXX";
    ctx = one_thread();
    REQUIRE(mkdtemp(folder));
    snprintf(state_path, sizeof state_path, "%s/state", folder);
    atexit(remove_folder);
    REQUIRE(n2_store_new(ctx, sizeof(float), &store) == N2CE_OK);
    parameters = n2_parameters_new(store, 7);
    w = n2_parameter(&parameters, "w", n2_dims(3, 2), 0.1);
    REQUIRE(w);
    memcpy(untrained, w->data, sizeof untrained);
    REQUIRE(train(false) == N2CE_ECANCELED);
    n2_cancel_reset(ctx);
    FILE *file = fopen(state_path, "rb");
    REQUIRE(file && (valid_bytes = fread(valid, 1, sizeof valid, file)) < sizeof valid);
    fclose(file);
}

static void go_on(const void *bytes, size_t n) {
    float first[ELEMENTS];
    put_file(bytes, n);
    const n2ce_status status = train(true);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA || status == N2CE_ENAN);
    if (status != N2CE_OK) REQUIRE(n2_is_utf8(n2ce_errmsg(ctx)));
    if (status == N2CE_EDATA) REQUIRE(memcmp(w->data, untrained, sizeof untrained) == 0);
    if (status != N2CE_OK) return;
    memcpy(first, w->data, sizeof first);
    REQUIRE(train(true) == N2CE_OK && memcmp(w->data, first, sizeof first) == 0);
}

/* ---- changes -------------------------------------------------------------------------------- */

/* Three bytes at a time: where, where, what. Returns whether anything is other than before. */
static bool change_bytes(char *changed, const uint8_t *bytes, size_t n) {
    memcpy(changed, valid, valid_bytes);
    for (size_t i = 0; i + 2 < n && i < 48; i += 3)
        changed[((size_t)bytes[i] << 8 | bytes[i + 1]) % valid_bytes] = (char)bytes[i + 2];
    return memcmp(changed, valid, valid_bytes) != 0;
}

/* A number of the note, as a text: the place, or a record's. */
static void change_note(st_parts *p, size_t at, size_t which) {
    static const char *const numbers[] = {"-1", "nan", "1e30", "7",   "0",
                                          "1",  "6",   "0.5",  "inf", ""};
    const size_t i = find_text(p, "n2ce.note");
    char *note = p->texts[i], *begin = note, *changed = calloc(strlen(note) + 8, 1);
    REQUIRE(changed);
    for (at %= 60; at > 0 && strchr(begin, ' '); at--) begin = strchr(begin, ' ') + 1;
    const size_t n = (size_t)(begin - note);
    memcpy(changed, note, n);
    strcat(changed, numbers[which % (sizeof numbers / sizeof numbers[0])]);
    strcat(changed, begin + strcspn(begin, " "));
    free(note);
    p->pairs[i].value = p->texts[i] = changed;
}

/* No numbers, but of the right shape. */
static void make_bool(st_parts *p, size_t i) {
    n2_st_tensor *t = &p->tensors[i];
    t->dtype = N2_ST_BOOL;
    t->bytes = n2_st_elements(t);
    memset(own(p, i), 1, t->bytes);
}

static void change_part(st_parts *p, const uint8_t e[3]) {
    char *text = p->texts[e[1] % p->n_pairs];
    const size_t n = strlen(text);
    if (e[0] % 6 == 0) change_note(p, e[1], e[2]);
    if (e[0] % 6 == 1 && n > 0) text[e[2] % n] = (char)(' ' + e[2] % 95);
    if (e[0] % 6 == 2) make_bool(p, e[1] % p->n);
    if (e[0] % 6 > 2) edit_tensor(p, e[0] % 6 - 3, e[1], e[2]);
}

static void change_parts(const uint8_t *bytes, size_t n) {
    static n2_st_file *file;
    st_parts p;
    size_t length;
    if (!file) REQUIRE(n2_st_parse(ctx, "valid", valid, valid_bytes, &file) == N2CE_OK);
    take_apart(file, &p);
    for (size_t i = 0; i + 2 < n && i < 12; i += 3) change_part(&p, bytes + i);
    char *encoded = put_together(ctx, &p, &length);
    if (encoded) go_on(encoded, length);
    n2_free(ctx, encoded);
    parts_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static char changed[sizeof valid];
    if (!ctx) set_up();
    const unsigned way = n ? bytes[0] % 8u : 7;
    if (way == 0) go_on(bytes + 1, n - 1);
    if (way == 1 && change_bytes(changed, bytes + 1, n - 1)) go_on(changed, valid_bytes);
    if (way == 2 && n > 2) go_on(valid, ((size_t)bytes[1] << 8 | bytes[2]) % valid_bytes);
    if (way > 2) change_parts(bytes + (n > 0), n - (n > 0));
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    const size_t n = next_random(state) % (room < 60 ? room : 60);
    for (size_t i = 0; i < n; i++) buffer[i] = (uint8_t)next_random(state);
    return n;
}
#endif
