#include "table.h"

#include "base/text.h"
#include "input.h"
#include "json.h"

#include <string.h>

/* One column: its texts, and a hash table of their codes with open addressing. */
typedef struct column {
    char *name;
    char **texts;
    size_t n, room;
    size_t *slots;  /* code + 1, or 0: free */
    size_t n_slots; /* a power of two, at least twice as many as texts */
} column;

struct n2_levels {
    n2ce_ctx *ctx;
    column *columns;
    size_t n, room;
    bool frozen;
};

n2ce_status n2_levels_new(n2ce_ctx *ctx, n2_levels **out) {
    n2_levels *levels = *out = n2_alloc(ctx, 1, sizeof *levels);
    if (!levels) return N2CE_ENOMEM;
    levels->ctx = ctx;
    return N2CE_OK;
}

void n2_levels_free(n2_levels *levels) {
    if (!levels) return;
    for (size_t c = 0; c < levels->n; c++) {
        const column *old = &levels->columns[c];
        for (size_t i = 0; i < old->n; i++) n2_free(levels->ctx, old->texts[i]);
        n2_free(levels->ctx, old->texts);
        n2_free(levels->ctx, old->slots);
        n2_free(levels->ctx, old->name);
    }
    n2_free(levels->ctx, levels->columns);
    n2_free(levels->ctx, levels);
}

void n2_levels_freeze(n2_levels *levels) { levels->frozen = true; }
bool n2_levels_frozen(const n2_levels *levels) { return levels->frozen; }

/* ---- asking ----------------------------------------------------------------------------- */

size_t n2_levels_columns(const n2_levels *levels) { return levels->n; }

const char *n2_levels_column(const n2_levels *levels, size_t c) {
    return c < levels->n ? levels->columns[c].name : NULL;
}

static const column *find_column(const n2_levels *levels, const char *name) {
    for (size_t c = 0; c < levels->n; c++)
        if (strcmp(levels->columns[c].name, name) == 0) return &levels->columns[c];
    return NULL;
}

size_t n2_levels_count(const n2_levels *levels, const char *name) {
    const column *c = find_column(levels, name);
    return c ? c->n : 0;
}

const char *n2_levels_text(const n2_levels *levels, const char *name, size_t code) {
    const column *c = find_column(levels, name);
    return c && code < c->n ? c->texts[code] : NULL;
}

/* ---- adding ----------------------------------------------------------------------------- */

/* Room for one more item of an array that holds n. */
static n2ce_status reserve(n2ce_ctx *ctx, void **items, size_t n, size_t *room, size_t size) {
    if (n < *room) return N2CE_OK;
    const size_t wanted = *room ? *room * 2 : 8;
    void *larger = n2_realloc(ctx, *items, wanted, size);
    if (!larger) return N2CE_ENOMEM;
    *items = larger;
    *room = wanted;
    return N2CE_OK;
}

static n2ce_status copy_text(n2ce_ctx *ctx, const char *text, size_t n, char **out) {
    char *copy = *out = n2_alloc(ctx, n + 1, 1);
    if (!copy) return N2CE_ENOMEM;
    memcpy(copy, text, n);
    return N2CE_OK;
}

n2ce_status n2_levels_open(n2_levels *levels, const char *name, size_t *number) {
    const column *known = find_column(levels, name);
    *number = known ? (size_t)(known - levels->columns) : levels->n;
    if (known) return N2CE_OK;
    const n2_shown shown = n2_show(name, strlen(name));
    if (levels->frozen)
        return n2_fail(levels->ctx, N2CE_EDATA,
                       "column \"%s\" is not one of the %zu whose categories are known.",
                       shown.text, levels->n);
    void *columns = levels->columns;
    N2_TRY(reserve(levels->ctx, &columns, levels->n, &levels->room, sizeof *levels->columns));
    levels->columns = columns;
    column new = {.name = NULL};
    N2_TRY(copy_text(levels->ctx, name, strlen(name), &new.name));
    levels->columns[levels->n++] = new;
    return N2CE_OK;
}

/* FNV-1a. */
static size_t hash(const char *text, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

/* The slot of a text, or the free one where it would go. */
static size_t *find_slot(const column *c, const char *text, size_t n) {
    for (size_t i = hash(text, n);; i++) {
        size_t *slot = &c->slots[i & (c->n_slots - 1)];
        if (*slot == 0) return slot;
        const char *known = c->texts[*slot - 1];
        if (strlen(known) == n && memcmp(known, text, n) == 0) return slot;
    }
}

static n2ce_status grow_slots(n2_levels *levels, column *c) {
    if (c->n_slots >= 2 * (c->n + 1)) return N2CE_OK;
    const size_t wanted = c->n_slots ? 2 * c->n_slots : 16;
    size_t *slots = n2_alloc(levels->ctx, wanted, sizeof *slots);
    if (!slots) return N2CE_ENOMEM;
    n2_free(levels->ctx, c->slots);
    c->slots = slots;
    c->n_slots = wanted;
    for (size_t code = 0; code < c->n; code++)
        *find_slot(c, c->texts[code], strlen(c->texts[code])) = code + 1;
    return N2CE_OK;
}

/* Names what was found and what would have been understood. */
static n2ce_status unknown_text(const n2_levels *levels, const column *c, const char *text,
                                size_t n) {
    enum { LISTED = 12 };
    n2_text known = n2_text_new(levels->ctx);
    for (size_t i = 0; i < c->n && i < LISTED; i++)
        n2_text_add(&known, "%s\"%s\"", i ? ", " : "",
                    n2_show(c->texts[i], strlen(c->texts[i])).text);
    if (c->n > LISTED) n2_text_add(&known, " and %zu more", c->n - LISTED);
    n2ce_status status = N2CE_ENOMEM;
    if (!known.failed)
        status = n2_fail(levels->ctx, N2CE_EDATA,
                         "\"%s\" is not a known category of column \"%s\". Known are: %s.",
                         n2_show(text, n).text, n2_show(c->name, strlen(c->name)).text,
                         known.data ? known.data : "none");
    n2_text_free(&known);
    return status;
}

static n2ce_status refuse(const n2_levels *levels, const char *text, size_t n, const char *why) {
    return n2_fail(levels->ctx, N2CE_EDATA, "\"%s\" %s", n2_show(text, n).text, why);
}

static n2ce_status add_text(n2_levels *levels, column *c, const char *text, size_t n) {
    if (c->n == N2_LEVELS_MAX)
        return refuse(levels, text, n, "would be category 65537: too many. Leave the column out.");
    void *texts = c->texts;
    N2_TRY(reserve(levels->ctx, &texts, c->n, &c->room, sizeof *c->texts));
    c->texts = texts;
    N2_TRY(grow_slots(levels, c));
    char *copy;
    N2_TRY(copy_text(levels->ctx, text, n, &copy));
    if (strlen(copy) != n || !n2_is_utf8(copy)) {
        n2_free(levels->ctx, copy);
        return refuse(levels, text, n, "is not UTF-8. Convert the file to UTF-8.");
    }
    *find_slot(c, text, n) = c->n + 1;
    c->texts[c->n++] = copy;
    return N2CE_OK;
}

bool n2_levels_find(const n2_levels *levels, size_t number, const char *text, size_t n,
                    size_t *code) {
    const column *c = &levels->columns[number];
    const size_t *slot = c->n_slots ? find_slot(c, text, n) : NULL;
    if (!slot || *slot == 0) return false;
    *code = *slot - 1;
    return true;
}

n2ce_status n2_levels_code(n2_levels *levels, size_t number, const char *text, size_t n,
                           size_t *code) {
    if (n2_levels_find(levels, number, text, n, code)) return N2CE_OK;
    column *c = &levels->columns[number];
    if (levels->frozen) return unknown_text(levels, c, text, n);
    *code = c->n;
    return add_text(levels, c, text, n);
}

n2ce_status n2_levels_add(n2_levels *levels, const char *name, const char *text, size_t *code) {
    size_t number;
    N2_TRY(n2_levels_open(levels, name, &number));
    return n2_levels_code(levels, number, text, strlen(text), code);
}

static n2ce_status copy_all(n2_levels *to, const n2_levels *from) {
    for (size_t c = 0; from && c < from->n; c++)
        for (size_t k = 0; k < from->columns[c].n; k++) {
            size_t code;
            N2_TRY(n2_levels_add(to, from->columns[c].name, from->columns[c].texts[k], &code));
        }
    to->frozen = true;
    return N2CE_OK;
}

n2ce_status n2_levels_copy(n2ce_ctx *ctx, const n2_levels *from, n2_levels **out) {
    N2_TRY(n2_levels_new(ctx, out));
    const n2ce_status status = copy_all(*out, from);
    if (status == N2CE_OK) return N2CE_OK;
    n2_levels_free(*out);
    *out = NULL;
    return status;
}
