/* Fuzzes tables of designs. The input is tried as a file, and as changes to a valid one. What is
 * accepted has finite values, and codes of levels that are there.
 *
 * libFuzzer: -max_len=256
 * traced: io design
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#define _GNU_SOURCE
#include "memory_file.h"

#include "design/design_table.h"
#include "io/json.h"

#include <math.h>
#include <string.h>

static void check_designs(const n2_designs *d) {
    for (size_t i = 0; i < d->rows; i++) {
        REQUIRE(isfinite(d->y[i]));
        for (size_t j = 0; j < d->space.n; j++) {
            const n2_factor *f = &d->space.factor[j];
            const double x = d->x[i * d->space.n + j];
            REQUIRE(isfinite(x));
            REQUIRE(f->kind == N2_CATEGORY ? x >= 0 && x < (double)f->levels
                                           : x >= f->low && x <= f->high);
        }
    }
}

static void read_list(n2ce_ctx *ctx, const char *bytes, size_t n) {
    static memory_file table;
    n2_design_table t;
    const n2_design_table_options o = {
        .target = "y", .columns = "", .categorical = "", .continuous = ""};
    const n2ce_status status = n2_design_table_read(ctx, in_memory(&table, bytes, n), &o, &t);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA || status == N2CE_EINVAL);
    if (status == N2CE_OK) check_designs(&t.designs);
    if (status != N2CE_OK) REQUIRE(n2_is_utf8(n2ce_errmsg(ctx)));
    n2_design_table_close(&t);
}

static const char valid[] = "u,v,colour,y\n0.5,1,red,3\n0.25,2,blue,1\n0.75,3,red,4\n";

static const char *const pieces[] = {"y",      "\n",     ",",   "\"",   "1e999", "nan",
                                     "-1e308", "1e-320", "red", "\xff", "NA"};

#include "fuzz_list.h"
