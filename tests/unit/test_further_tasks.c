/* Facts about molecules as strings, folded strands, and the tasks on thin sets of designs. */
#include "bbo_data.h"
#include "design/design_space.h"
#include "design/rna_fold.h"
#include "design/robot.h"
#include "design/smiles.h"

#include <string.h>

/* ---- molecules ---- */

static void assert_molecule(const char *text, bool is) {
    n2_molecule m;
    const char *wrong = n2_smiles_read(text, &m);
    if ((wrong == NULL) != is) print_error("%s: %s\n", text, wrong ? wrong : "was read");
    assert_true((wrong == NULL) == is);
}

static void molecules_are_read(void **state) {
    (void)state;
    const char *const good[] = {"C",
                                "CCO",
                                "c1ccccc1",
                                "Cc1occc1C(=O)Nc2ccccc2",
                                "CN(=O)=O",
                                "c1cc[nH]c1",
                                "n1ccccc1",
                                "c1ccccc1c2ccccc2",
                                "C1CC1",
                                "CC(C)(C)C",
                                "C#N",
                                "CS(=O)(=O)C",
                                "[NH4+]",
                                "C%12CC%12",
                                "Nc1cc(nc(N)n1=O)N2CCCCC2"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) assert_molecule(good[i], true);
}

static void what_is_no_molecule_is_not_read(void **state) {
    (void)state;
    const char *const bad[] = {"",         "C(",      "C)",   "C1CC", "C()C",
                               "(C)",      "=C",      "C==C", "C=",   "C(C)(C)(C)(C)C",
                               "O(C)(C)C", "c1cccc1", "cc",   "F=C",  "C11",
                               "C12CC12",  "C.C",     "Xe",   "[C",   "n1cccc1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_molecule(bad[i], false);
}

static void hydrogens_fill_up_what_is_free(void **state) {
    (void)state;
    n2_molecule m;
    assert_null(n2_smiles_read("CC(=O)c1ccccc1", &m));
    const unsigned hydrogens[] = {3, 0, 0, 0, 1, 1, 1, 1, 1};
    assert_int_equal(m.atoms, 9);
    for (size_t i = 0; i < 9; i++) assert_int_equal(m.atom[i].hydrogens, hydrogens[i]);
    assert_true(m.atom[3].in_ring && !m.atom[0].in_ring);
}

/* The same molecule written from another end has the same bits; another one has not. */
static void bits_do_not_depend_on_how_a_molecule_is_written(void **state) {
    (void)state;
    static double a[2048], b[2048];
    n2_molecule m;
    assert_null(n2_smiles_read("Oc1ccccc1C", &m));
    n2_molecule_bits(&m, 4, 2048, a);
    assert_null(n2_smiles_read("Cc2ccccc2O", &m));
    n2_molecule_bits(&m, 4, 2048, b);
    assert_memory_equal(a, b, sizeof a);
    assert_null(n2_smiles_read("Cc1cccc(O)c1", &m));
    n2_molecule_bits(&m, 4, 2048, b);
    assert_memory_not_equal(a, b, sizeof a);
}

/* ---- strands ---- */

static double energy(const char *text) {
    int base[N2_RNA_MOST];
    for (size_t i = 0; text[i]; i++) base[i] = (int)(strchr("ACGU", text[i]) - "ACGU");
    return n2_rna_energy(base, strlen(text));
}

/* By hand: four stacks of CG on CG, -3.3 each, and a loop of four bases, 5.6. */
static void a_strand_folds_as_calculated_by_hand(void **state) {
    (void)state;
    assert_close(energy("GGGGGAAAACCCCC"), 4 * -3.3 + 5.6, 0, 1e-9);
    assert_close(energy("AAAAAAAAAAAAAA"), 0, 0, 0);
    assert_close(energy("GCGCAAAAGCGC"), -3.4 * 2 - 2.4 + 5.6, 0, 1e-9);
    /* a bulge of one base keeps the stack, for 3.8 */
    assert_close(energy("GGGAGGGAAAACCCCCC"), 5 * -3.3 + 3.8 + 5.6, 0, 1e-9);
}

/* ---- thin sets ---- */

static n2_design_bench *begin(n2ce_ctx *ctx, const char *name, uint64_t seed) {
    n2_design_bench *b = open_task(ctx, name);
    begin_seed(b, seed);
    return b;
}

/* What is offline has the values that the oracle says, none of them the least; chance has. */
static void offline_designs_are_valid_and_chance_is_not(void **state) {
    (void)state;
    const char *const names[] = {"hairpin", "grammar", "recipe"};
    for (size_t t = 0; t < 3; t++) {
        n2ce_ctx *ctx = new_ctx(1);
        n2_design_bench *b = begin(ctx, names[t], 3);
        double y[200], x[200 * 20];
        assert_true(b->offline.rows > 1000);
        assert_int_equal(n2_design_bench_score(b, b->offline.x, 200, y), N2CE_OK);
        for (size_t i = 0; i < 200; i++) assert_close(y[i], b->offline.y[i], 0, 1e-12);
        n2_space_uniform(&b->offline.space, (n2_stream){5, 6, 7}, 200, x);
        assert_int_equal(n2_design_bench_score(b, x, 200, y), N2CE_OK);
        for (size_t i = 0; i < 200; i++) assert_close(y[i], b->task->low, 0, 0);
        n2_design_bench_close(b);
        n2ce_ctx_free(ctx);
    }
}

/* 1/3+x+sin(x*x) in tokens is without error. */
static void the_formula_that_is_sought_is_the_best(void **state) {
    (void)state;
    const double tokens[15] = {2, 7, 4, 5, 1, 5, 10, 8, 1, 6, 1, 9}, cut[15] = {2, 7};
    n2ce_ctx *ctx = new_ctx(1);
    n2_design_bench *b = begin(ctx, "grammar", 0);
    double y;
    assert_int_equal(n2_design_bench_score(b, tokens, 1, &y), N2CE_OK);
    assert_close(y, 0, 0, 1e-12);
    assert_int_equal(n2_design_bench_score(b, cut, 1, &y), N2CE_OK);
    assert_close(y, b->task->low, 0, 0);
    n2_design_bench_close(b);
    n2ce_ctx_free(ctx);
}

static void a_recipe_must_add_up_and_match(void **state) {
    (void)state;
    const double x[3 * 8] = {40, 16, 30, 6, 8,  0,  0,  0, 40, 16, 31, 6,
                             8,  0,  0,  0, 40, 14, 32, 6, 8,  0,  0,  0};
    n2ce_ctx *ctx = new_ctx(1);
    n2_design_bench *b = begin(ctx, "recipe", 0);
    double y[3];
    assert_int_equal(n2_design_bench_score(b, x, 3, y), N2CE_OK);
    assert_true(y[0] > 9);
    assert_close(y[1], 0, 0, 0); /* 101 */
    assert_close(y[2], 0, 0, 0); /* too little hardener */
    n2_design_bench_close(b);
    n2ce_ctx_free(ctx);
}

/* ---- tables with a forest as oracle ---- */

/* Rows offline, their best, and what the forest says of the best designs offline. */
static void tables_are_judged_by_forests(void **state) {
    (void)state;
    const struct {
        const char *name;
        size_t rows;
        double best;
    } expected[] = {{"molecule", 342, 0.269}, {"utr", 10000, 0.594}, {"aav", 10000, 0.466}};
    for (size_t t = 0; t < 3; t++) {
        n2ce_ctx *ctx = new_ctx(2);
        n2_design_bench *b = begin(ctx, expected[t].name, 0);
        double y[256];
        assert_int_equal(b->offline.rows, expected[t].rows);
        assert_close(n2_design_normalise(b->task, largest(b->offline.y, b->offline.rows)),
                     expected[t].best, 0, 1e-3);
        assert_int_equal(n2_design_bench_score(b, b->offline.x, 256, y), N2CE_OK);
        assert_true(largest(y, 256) < b->task->high);
        n2_design_bench_close(b);
        n2ce_ctx_free(ctx);
    }
}

/* ---- robots ---- */

/* Without MuJoCo a sentence says so; with it the usual Ant that does nothing earns 99.1, one point
 * a step less what contacts cost (measured by an independent program), and D'Kitty stands. Stored
 * policies walk. */
static void robots_are_simulated(void **state) {
    (void)state;
    static const double nothing[N2_ROBOT_WEIGHTS];
    n2ce_ctx *ctx = new_ctx(2);
    double value[2], twice[2];
    const n2ce_status status = n2_robot_ready(ctx);
    if (status != N2CE_OK) {
        assert_int_equal(status, N2CE_EIO);
        assert_non_null(strstr(n2ce_errmsg(ctx), "MuJoCo"));
        print_message("Robots are not tested: %s\n", n2ce_errmsg(ctx));
        n2ce_ctx_free(ctx);
        skip();
    }
    const n2_robot *const robots[] = {&n2_ant_robot, &n2_dkitty_robot};
    for (size_t i = 0; i < 2; i++) {
        double designs[2 * N2_ROBOT_COLUMNS_MAX];
        const size_t n = robots[i]->columns;
        memcpy(designs, robots[i]->usual, n * sizeof *designs);
        memcpy(designs + n, robots[i]->usual, n * sizeof *designs);
        designs[n + robots[i]->legs_columns - 1] += 1000; /* moved to the bound */
        assert_int_equal(n2_robot_walk(ctx, robots[i], designs, 2, nothing, false, value), N2CE_OK);
        assert_int_equal(n2_robot_walk(ctx, robots[i], designs, 2, nothing, false, twice), N2CE_OK);
        assert_memory_equal(value, twice, sizeof value);
        if (i == 0) assert_close(value[0], 99.1, 0, 0.5);
        if (i == 1) assert_true(value[0] > -100 && value[0] < 100);
        assert_true(isfinite(value[1]) && value[1] != value[0]);
        const double *policy = robots[i]->policy;
        assert_int_equal(n2_robot_walk(ctx, robots[i], designs, 1, policy, false, twice), N2CE_OK);
        print_message("The usual %s earns %.1f, and %.1f by doing nothing.\n", robots[i]->name,
                      twice[0], value[0]);
        assert_true(twice[0] > value[0] + 20);
    }
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(molecules_are_read),
        cmocka_unit_test(what_is_no_molecule_is_not_read),
        cmocka_unit_test(hydrogens_fill_up_what_is_free),
        cmocka_unit_test(bits_do_not_depend_on_how_a_molecule_is_written),
        cmocka_unit_test(a_strand_folds_as_calculated_by_hand),
        cmocka_unit_test(offline_designs_are_valid_and_chance_is_not),
        cmocka_unit_test(the_formula_that_is_sought_is_the_best),
        cmocka_unit_test(a_recipe_must_add_up_and_match),
        cmocka_unit_test(tables_are_judged_by_forests),
        cmocka_unit_test(robots_are_simulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
