/* Fuzzes files of bounds. The input is tried as a file, and as changes to a valid one. Bounds that
 * are accepted are finite, in order, and apart.
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

static const char designs[] = "u,v,colour,y\n0.5,1,red,3\n0.25,2,blue,1\n0.75,3,red,4\n";

static void read_list(n2ce_ctx *ctx, const char *bytes, size_t n) {
    static memory_file table, bounds;
    n2_design_table t;
    const n2_design_table_options o = {.target = "y",
                                       .columns = "",
                                       .categorical = "",
                                       .continuous = "",
                                       .bounds = in_memory(&bounds, bytes, n)};
    const char *path = in_memory(&table, designs, sizeof designs - 1);
    const n2ce_status status = n2_design_table_read(ctx, path, &o, &t);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    for (size_t j = 0; status == N2CE_OK && j < t.designs.space.n; j++) {
        const n2_factor *f = &t.designs.space.factor[j];
        if (f->kind != N2_CATEGORY)
            REQUIRE(isfinite(f->low) && isfinite(f->high) && f->low < f->high);
    }
    if (status != N2CE_OK) REQUIRE(n2_is_utf8(n2ce_errmsg(ctx)));
    n2_design_table_close(&t);
}

static const char valid[] = "column,low,high\nu,0.1,0.9\n\"v\",0,5\n";

static const char *const pieces[] = {"colour", "\n",     ",",   "\"",  "1e999",
                                     "nan",    "-1e308", "0.9", "9,1", "\xff"};

#include "fuzz_list.h"
