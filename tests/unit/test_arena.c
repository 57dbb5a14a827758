/* Facts about the arena: zeroed, aligned, apart, and gone with one call. */
#include "close.h"
#include "failing_alloc.h"

#include "base/arena.h"

#include <string.h>

typedef struct fixture {
    failing_alloc memory;
    n2ce_ctx *ctx;
} fixture;

static int set_up(void **state) {
    static fixture f;
    f.memory = failing_alloc_new(NEVER, false);
    const n2ce_ctx_options options = failing_alloc_options(&f.memory, 1);
    *state = &f;
    return n2ce_ctx_new(&f.ctx, &options) == N2CE_OK ? 0 : -1;
}

/* Whatever a test did: after the context is freed, nothing is left. */
static int tear_down(void **state) {
    fixture *f = *state;
    n2ce_ctx_free(f->ctx);
    return f->memory.live == 0 ? 0 : -1;
}

static bool all_bytes_are(const unsigned char *p, size_t n, unsigned char value) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != value) return false;
    return true;
}

static const size_t sizes[] = {1, 3, 63, 64, 65, 100, 1000, 4096, 16383, 16384, 16385, 40000, 7};

/* Every piece is aligned to 64 bytes and zero, also after a free. */
static void pieces_are_aligned_and_zero(void **state) {
    fixture *f = *state;
    n2_arena arena = n2_arena_new(f->ctx);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            unsigned char *p = n2_arena_alloc(&arena, sizes[i], 1);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % N2_ALIGN, 0);
            assert_true(all_bytes_are(p, sizes[i], 0));
            memset(p, 0xee, sizes[i]);
        }
        n2_arena_free(&arena);
    }
}

/* Pieces do not overlap: each keeps the bytes that were written into it. */
static void pieces_do_not_overlap(void **state) {
    enum { PIECES = 500 };
    fixture *f = *state;
    n2_arena arena = n2_arena_new(f->ctx);
    unsigned char *pieces[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        const size_t n = sizes[i % COUNT_OF(sizes)];
        pieces[i] = n2_arena_alloc(&arena, n, 1);
        assert_non_null(pieces[i]);
        memset(pieces[i], (int)(i % 251), n);
    }
    for (size_t i = 0; i < PIECES; i++)
        assert_true(all_bytes_are(pieces[i], sizes[i % COUNT_OF(sizes)], (unsigned char)(i % 251)));
    n2_arena_free(&arena);
}

/* Small pieces share blocks; a piece larger than any block gets its own. */
static void the_arena_grows_in_blocks(void **state) {
    fixture *f = *state;
    n2_arena arena = n2_arena_new(f->ctx);
    assert_int_equal(f->memory.calls, 1); /* the context alone */
    for (int i = 0; i < 100; i++) assert_non_null(n2_arena_alloc(&arena, 1, 8));
    assert_int_equal(f->memory.calls, 2);
    unsigned char *large = n2_arena_alloc(&arena, 1 << 20, 3);
    assert_non_null(large);
    assert_true(all_bytes_are(large, 3u << 20, 0));
    assert_int_equal(f->memory.calls, 3);
    n2_arena_free(&arena);
    assert_int_equal(f->memory.live, 1);
}

/* Nothing is a valid amount to ask for. */
static void an_empty_piece_is_a_valid_pointer(void **state) {
    fixture *f = *state;
    n2_arena arena = n2_arena_new(f->ctx);
    assert_non_null(n2_arena_alloc(&arena, 0, 8));
    assert_non_null(n2_arena_alloc(&arena, 8, 0));
    n2_arena_free(&arena);
    n2_arena_free(&arena); /* empty already */
}

/* n * size beyond what can be counted is out of memory, with a message. */
static void an_overflowing_product_is_out_of_memory(void **state) {
    fixture *f = *state;
    n2_arena arena = n2_arena_new(f->ctx);
    const size_t half = (SIZE_MAX >> 1) + 1;
    assert_null(n2_arena_alloc(&arena, SIZE_MAX, 2));
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "memory"));
    assert_null(n2_arena_alloc(&arena, half, 2));
    assert_null(n2_arena_alloc(&arena, SIZE_MAX, 1));
    assert_null(n2_arena_alloc(&arena, (size_t)1 << 33, (size_t)1 << 33));
    assert_non_null(n2_arena_alloc(&arena, 8, 8)); /* still usable */
    n2_arena_free(&arena);
}

/* The same holds for the context's own allocation functions. */
static void an_overflowing_allocation_is_out_of_memory(void **state) {
    fixture *f = *state;
    assert_null(n2_alloc(f->ctx, SIZE_MAX, 2));
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "memory"));
    char *p = n2_alloc(f->ctx, 3, 1);
    assert_non_null(p);
    p[0] = 'a';
    assert_null(n2_realloc(f->ctx, p, SIZE_MAX / 2, 4));
    assert_int_equal(p[0], 'a'); /* the old block stays valid */
    n2_free(f->ctx, p);
    n2_free(f->ctx, NULL);
    void *nothing = n2_alloc(f->ctx, 0, 8);
    assert_non_null(nothing);
    n2_free(f->ctx, nothing);
}

/* When the allocator fails the arena says so and keeps what it has. */
static void a_failing_allocator_leaves_the_arena_intact(void **state) {
    fixture *f = *state;
    n2_arena arena = n2_arena_new(f->ctx);
    char *kept = n2_arena_strdup(&arena, "kept");
    assert_non_null(kept);
    f->memory.fail_at = f->memory.calls;
    assert_null(n2_arena_alloc(&arena, 1 << 20, 1));
    assert_non_null(n2_arena_alloc(&arena, 1 << 20, 1));
    assert_string_equal(kept, "kept");
    n2_arena_free(&arena);
}

/* A copied string is another string with the same text. */
static void strdup_copies(void **state) {
    fixture *f = *state;
    n2_arena arena = n2_arena_new(f->ctx);
    char original[] = "ratio";
    char *copy = n2_arena_strdup(&arena, original), *empty = n2_arena_strdup(&arena, "");
    original[0] = 'R';
    assert_string_equal(copy, "ratio");
    assert_string_equal(empty, "");
    n2_arena_free(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(pieces_are_aligned_and_zero),
        TEST(pieces_do_not_overlap),
        TEST(the_arena_grows_in_blocks),
        TEST(an_empty_piece_is_a_valid_pointer),
        TEST(an_overflowing_product_is_out_of_memory),
        TEST(an_overflowing_allocation_is_out_of_memory),
        TEST(a_failing_allocator_leaves_the_arena_intact),
        TEST(strdup_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
