/* Facts about what a practitioner would do in n2ce's place. */
#include "base/random.h"
#include "contexts.h"
#include "study/ratio_peers.h"

enum { ROWS = 1000, COLS = 2 };

static void normal_rows(double *x, double shift, uint32_t stream) {
    for (size_t i = 0; i < ROWS * COLS; i++) {
        float z;
        n2_fill_normal((n2_stream){1, stream, 0}, i, 1, &z);
        x[i] = (double)z + shift;
    }
}

static double ask(n2_peer_fn *peer, const n2_peer_rows *rows, int threads) {
    double found;
    n2ce_ctx *ctx = new_ctx(threads);
    assert_int_equal(peer(ctx, rows, &found), N2CE_OK);
    n2ce_ctx_free(ctx);
    return found;
}

static n2_peer_fn *const peers[] = {n2_peer_neighbours, n2_peer_boosting, n2_peer_mlp};
enum { PEERS = sizeof peers / sizeof peers[0] };

/* KL of N(a, I) from N(0, I) is |a|^2 / 2. */
static void peers_find_a_shift(void **state) {
    (void)state;
    static double num[ROWS * COLS], den[ROWS * COLS];
    const n2_peer_rows rows = {num, den, ROWS, ROWS, COLS, 0};
    normal_rows(num, 0.7, 1);
    normal_rows(den, 0, 2);
    for (size_t p = 0; p < PEERS; p++) assert_close(ask(peers[p], &rows, 1), 0.49, 0, 0.15);
}

/* y = (x + e) / sqrt(2): ln(2) / 2 nats. */
static void peers_find_mutual_information(void **state) {
    (void)state;
    static double both[ROWS * COLS];
    const n2_peer_rows rows = {both, NULL, ROWS, 0, COLS, 1};
    normal_rows(both, 0, 3);
    for (size_t i = 0; i < ROWS; i++) both[2 * i + 1] = (both[2 * i] + both[2 * i + 1]) / sqrt(2.0);
    for (size_t p = 0; p < PEERS; p++) assert_close(ask(peers[p], &rows, 1), 0.3466, 0, 0.1);
}

static void peers_do_not_depend_on_threads(void **state) {
    (void)state;
    static double num[ROWS * COLS], den[ROWS * COLS];
    const n2_peer_rows rows = {num, den, ROWS, ROWS, COLS, 0};
    normal_rows(num, 0.7, 1);
    normal_rows(den, 0, 2);
    for (size_t p = 0; p < PEERS; p++)
        assert_true(ask(peers[p], &rows, 1) == ask(peers[p], &rows, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_find_a_shift),
        cmocka_unit_test(peers_find_mutual_information),
        cmocka_unit_test(peers_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
