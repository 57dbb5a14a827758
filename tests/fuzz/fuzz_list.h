/* Fuzzing of texts that are lists. Who includes this has defined, before,
 *
 *     static void read_list(n2ce_ctx *ctx, const char *bytes, size_t n);   reads one, and requires
 *     static const char valid[];                                           one that is accepted
 *     static const char *const pieces[];                                   what may stand in one
 *
 * The input is tried as a list, and as changes to the valid one. */
#ifndef FUZZ_LIST_H
#define FUZZ_LIST_H

#include "one_thread.h"

/* One of the pieces over the list of n bytes, as much of it as fits. */
static void put_piece(char *list, size_t n, size_t which, size_t place) {
    const char *piece = pieces[which % (sizeof pieces / sizeof pieces[0])];
    const size_t at = place % n, length = strlen(piece);
    memcpy(list + at, piece, length < n - at ? length : n - at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    char changed[sizeof valid];
    n2ce_ctx *ctx = one_thread();
    read_list(ctx, (const char *)bytes, n);
    memcpy(changed, valid, sizeof valid);
    for (size_t i = 0; i + 1 < n && i < 16; i += 2)
        changed[bytes[i] % (sizeof valid - 1)] = (char)bytes[i + 1];
    read_list(ctx, changed, sizeof valid - 1);
    for (size_t i = 0; i + 1 < n && i < 8; i += 2)
        put_piece(changed, sizeof valid - 1, bytes[i], bytes[i + 1]);
    read_list(ctx, changed, sizeof valid - 1);
    n2ce_ctx_free(ctx);
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* The valid list, a few of its bytes replaced by pieces of others. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    const size_t n = sizeof valid - 1;
    REQUIRE(n <= room);
    memcpy(buffer, valid, n);
    for (uint32_t left = next_random(state) % 4; left > 0; left--) {
        const uint32_t which = next_random(state);
        put_piece((char *)buffer, n, which, next_random(state));
    }
    return next_random(state) % 8 ? n : next_random(state) % n;
}
#endif

#endif
