#include "smiles.h"

#include <ctype.h>
#include <string.h>

enum { AROMATIC = 4, RINGS = 100, BRANCHES = 64, MATCH_TRIES = 20000 };

/* A ring that was opened: by which atom, with which bond (0: none was written). */
typedef struct open_ring {
    bool open;
    uint8_t atom, order;
} open_ring;

typedef struct reader {
    const char *at;
    n2_molecule *m;
    open_ring ring[RINGS];
    uint8_t branch[BRANCHES]; /* atoms that branches left */
    size_t branches;
    int last;      /* atom that the next one is bound to; -1: none */
    uint8_t order; /* of the bond that was written; 0: none */
} reader;

/* ---- atoms ----------------------------------------------------------------------------------- */

typedef struct element {
    char symbol[3];
    uint8_t number;
    uint8_t valences[3]; /* from the least on; 0: no more */
} element;

/* Two letters before one. */
static const element elements[] = {
    {"Cl", 17, {1}}, {"Br", 35, {1}},   {"B", 5, {3}},        {"C", 6, {4}}, {"N", 7, {3, 5}},
    {"O", 8, {2}},   {"P", 15, {3, 5}}, {"S", 16, {2, 4, 6}}, {"F", 9, {1}}, {"I", 53, {1}},
};

static const element *element_of(uint8_t number) {
    const element *e = elements;
    while (e->number != number) e++;
    return e;
}

/* The element that the text begins with, and how many letters that takes; aromatic ones are
 * small. */
static const element *read_symbol(const char *text, bool *aromatic, size_t *letters) {
    const char upper = (char)toupper((unsigned char)*text);
    *aromatic = *text != upper;
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        const element *e = &elements[i];
        *letters = strlen(e->symbol);
        if (!*aromatic && strncmp(text, e->symbol, *letters) == 0) return e;
        if (*aromatic && *letters == 1 && *e->symbol == upper && strchr("bcnops", *text)) return e;
    }
    return NULL;
}

static const char *add_bond(n2_molecule *m, size_t from, size_t to, uint8_t written) {
    const bool aromatic = m->atom[from].aromatic && m->atom[to].aromatic;
    if (from == to) return "a ring of one atom";
    for (size_t i = 0; i < m->bonds; i++)
        if ((m->bond[i].from == from && m->bond[i].to == to) ||
            (m->bond[i].from == to && m->bond[i].to == from))
            return "two bonds between the same atoms";
    if (m->bonds == N2_MOLECULE_BONDS) return "too many bonds";
    const uint8_t order = written ? written : aromatic ? AROMATIC : 1;
    m->bond[m->bonds++] = (n2_bond){(uint8_t)from, (uint8_t)to, order, false};
    return NULL;
}

static const char *add_atom(reader *r, n2_atom atom) {
    n2_molecule *m = r->m;
    if (m->atoms == N2_MOLECULE_ATOMS) return "too many atoms";
    if (r->last < 0 && m->atoms) return "parts that are not joined";
    if (r->last < 0 && r->order) return "a bond without an atom before it";
    m->atom[m->atoms++] = atom;
    const char *wrong = r->last < 0 ? NULL : add_bond(m, (size_t)r->last, m->atoms - 1, r->order);
    r->last = (int)m->atoms - 1;
    r->order = 0;
    return wrong;
}

static unsigned read_count(const char **at, unsigned otherwise) {
    unsigned n = 0;
    if (!isdigit((unsigned char)**at)) return otherwise;
    while (isdigit((unsigned char)**at) && n < 100) n = 10 * n + (unsigned)(*(*at)++ - '0');
    return n;
}

/* [symbol, hydrogens, charge] */
static const char *read_bracket(reader *r) {
    const char *at = r->at + 1;
    size_t letters;
    bool aromatic;
    const element *e = read_symbol(at, &aromatic, &letters);
    if (!e) return "an element that is not known";
    n2_atom atom = {.number = e->number, .aromatic = aromatic, .bracket = true};
    at += letters;
    if (*at == 'H') {
        at++;
        atom.hydrogens = read_count(&at, 1);
    }
    if (*at == '+' || *at == '-') {
        const int sign = *at++ == '+' ? 1 : -1;
        atom.charge = sign * (int)read_count(&at, 1);
    }
    if (*at != ']') return "a bracket that does not end";
    r->at = at + 1;
    return add_atom(r, atom);
}

static const char *read_atom(reader *r) {
    size_t letters;
    bool aromatic;
    if (*r->at == '[') return read_bracket(r);
    const element *e = read_symbol(r->at, &aromatic, &letters);
    if (!e) return "a sign that is not known";
    r->at += letters;
    return add_atom(r, (n2_atom){.number = e->number, .aromatic = aromatic});
}

/* ---- rings and branches ---------------------------------------------------------------------- */

static const char *close_ring(reader *r, size_t number) {
    open_ring *ring = &r->ring[number];
    if (r->last < 0) return "a ring without an atom";
    if (!ring->open) {
        *ring = (open_ring){true, (uint8_t)r->last, r->order};
        r->order = 0;
        return NULL;
    }
    if (ring->order && r->order && ring->order != r->order) return "a ring closed by another bond";
    const uint8_t order = r->order ? r->order : ring->order;
    ring->open = false;
    r->order = 0;
    return add_bond(r->m, ring->atom, (size_t)r->last, order);
}

static const char *read_ring(reader *r) {
    if (*r->at != '%') return close_ring(r, (size_t)(*r->at++ - '0'));
    if (!isdigit((unsigned char)r->at[1]) || !isdigit((unsigned char)r->at[2]))
        return "a ring without a number";
    const size_t number = (size_t)(10 * (r->at[1] - '0') + r->at[2] - '0');
    r->at += 3;
    return close_ring(r, number);
}

static const char *open_branch(reader *r) {
    if (r->last < 0 || r->order) return "a branch without an atom before it";
    if (r->branches == BRANCHES) return "too many branches";
    r->branch[r->branches++] = (uint8_t)r->last;
    r->at++;
    if (*r->at == ')') return "an empty branch";
    return NULL;
}

static const char *end_branch(reader *r) {
    if (!r->branches || r->order) return "a branch that ends where none began";
    r->last = r->branch[--r->branches];
    r->at++;
    return NULL;
}

static const char *read_bond(reader *r, uint8_t order) {
    if (r->order) return "two bonds in a row";
    r->order = order;
    r->at++;
    return NULL;
}

static const char *read_next(reader *r) {
    switch (*r->at) {
    case '(':
        return open_branch(r);
    case ')':
        return end_branch(r);
    case '-':
    case '/':
    case '\\':
        return read_bond(r, 1);
    case '=':
        return read_bond(r, 2);
    case '#':
        return read_bond(r, 3);
    case ':':
        return read_bond(r, AROMATIC);
    case '%':
        return read_ring(r);
    default:
        return isdigit((unsigned char)*r->at) ? read_ring(r) : read_atom(r);
    }
}

static const char *read_all(const char *text, n2_molecule *m) {
    reader r = {.at = text, .m = m, .last = -1};
    m->atoms = m->bonds = 0;
    while (*r.at) {
        const char *wrong = read_next(&r);
        if (wrong) return wrong;
    }
    if (!m->atoms) return "no atom";
    if (r.order) return "a bond without an atom after it";
    if (r.branches) return "a branch that does not end";
    for (size_t i = 0; i < RINGS; i++)
        if (r.ring[i].open) return "a ring that is not closed";
    return NULL;
}

/* ---- rings, aromatic ones, valences ---------------------------------------------------------- */

/* Whether its atoms are joined without this bond, by spreading from one of them. */
static bool bond_in_ring(const n2_molecule *m, size_t without) {
    bool seen[N2_MOLECULE_ATOMS] = {false}, more = true;
    seen[m->bond[without].from] = true;
    while (more && !seen[m->bond[without].to]) {
        more = false;
        for (size_t i = 0; i < m->bonds; i++) {
            const n2_bond *b = &m->bond[i];
            if (i == without || seen[b->from] == seen[b->to]) continue;
            seen[b->from] = seen[b->to] = more = true;
        }
    }
    return seen[m->bond[without].to];
}

static void find_rings(n2_molecule *m) {
    for (size_t i = 0; i < m->bonds; i++) {
        n2_bond *b = &m->bond[i];
        b->in_ring = bond_in_ring(m, i);
        if (b->in_ring) m->atom[b->from].in_ring = m->atom[b->to].in_ring = true;
        if (b->order == AROMATIC && !b->in_ring) b->order = 1; /* between two rings */
    }
}

/* Sums of orders of the bonds that are no aromatic ones, which count 1. */
static void count_bonds(const n2_molecule *m, unsigned *sum, unsigned *most) {
    memset(sum, 0, N2_MOLECULE_ATOMS * sizeof *sum);
    memset(most, 0, N2_MOLECULE_ATOMS * sizeof *most);
    for (size_t i = 0; i < m->bonds; i++) {
        const n2_bond *b = &m->bond[i];
        const unsigned order = b->order == AROMATIC ? 1 : b->order;
        const uint8_t ends[] = {b->from, b->to};
        for (size_t k = 0; k < 2; k++) {
            sum[ends[k]] += order;
            if (order > most[ends[k]]) most[ends[k]] = order;
        }
    }
}

/* Whether an aromatic atom takes part in a double bond of its ring: carbon unless it has one
 * outside, nitrogen and phosphorus with two bonds and no hydrogen, and nitrogen of an oxide that is
 * written n=O. */
static bool needs_double(const n2_atom *a, unsigned sum, unsigned most) {
    if (a->aromatic && a->number == 7 && most == 2) return true;
    if (!a->aromatic || most > 1) return false;
    if (a->number == 6 || a->number == 5) return sum + a->hydrogens < 4 && a->charge == 0;
    if (a->number == 7 || a->number == 15) return (int)(sum + a->hydrogens) < 3 + a->charge;
    return a->charge > 0; /* oxygen and sulphur give a pair of electrons */
}

/* Gives each atom that is left a partner along an aromatic bond, the one with fewest choices
 * first. */
static bool match(n2_molecule *m, bool *left, size_t *tries) {
    size_t fewest = SIZE_MAX, atom = 0;
    if (++*tries > MATCH_TRIES) return false;
    for (size_t a = 0; a < m->atoms; a++) {
        size_t choices = 0;
        if (!left[a]) continue;
        for (size_t i = 0; i < m->bonds; i++) {
            const n2_bond *b = &m->bond[i];
            if (b->order == AROMATIC && (b->from == a || b->to == a))
                choices += left[b->from] && left[b->to];
        }
        if (choices < fewest) fewest = choices, atom = a;
    }
    if (fewest == SIZE_MAX) return true;
    for (size_t i = 0; i < m->bonds; i++) {
        const n2_bond *b = &m->bond[i];
        if (b->order != AROMATIC || (b->from != atom && b->to != atom)) continue;
        if (!left[b->from] || !left[b->to]) continue;
        left[b->from] = left[b->to] = false;
        if (match(m, left, tries)) return true;
        left[b->from] = left[b->to] = true;
    }
    return false;
}

static const char *check_aromatic(n2_molecule *m, const unsigned *sum, const unsigned *most,
                                  bool *twice) {
    bool left[N2_MOLECULE_ATOMS] = {false};
    size_t tries = 0;
    for (size_t a = 0; a < m->atoms; a++) {
        if (m->atom[a].aromatic && !m->atom[a].in_ring) return "an aromatic atom outside rings";
        left[a] = twice[a] = needs_double(&m->atom[a], sum[a], most[a]);
    }
    return match(m, left, &tries) ? NULL : "aromatic rings without double bonds";
}

/* Fills up with hydrogens to the least valence that suffices. */
static const char *fill_valence(n2_atom *a, unsigned used) {
    const element *e = element_of(a->number);
    const int change = a->charge * (a->number == 7 || a->number == 8 ? 1 : 0);
    for (size_t i = 0; i < 3 && e->valences[i]; i++) {
        const int valence = e->valences[i] + change;
        if (valence < (int)(used + a->hydrogens)) continue;
        if (!a->bracket) a->hydrogens = (unsigned)valence - used;
        return NULL;
    }
    return "an atom with too many bonds";
}

const char *n2_smiles_read(const char *text, n2_molecule *m) {
    unsigned sum[N2_MOLECULE_ATOMS], most[N2_MOLECULE_ATOMS];
    bool twice[N2_MOLECULE_ATOMS] = {false};
    const char *wrong = read_all(text, m);
    if (wrong) return wrong;
    find_rings(m);
    count_bonds(m, sum, most);
    wrong = check_aromatic(m, sum, most, twice);
    for (size_t a = 0; a < m->atoms && !wrong; a++)
        wrong = fill_valence(&m->atom[a], sum[a] + twice[a]);
    return wrong;
}

/* ---- fingerprints ---------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t value) {
    h = (h ^ value) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

static uint64_t atom_kind(const n2_atom *a, size_t degree) {
    const uint64_t parts[] = {a->number,  degree,     a->hydrogens, (uint64_t)(a->charge + 8),
                              a->in_ring, a->aromatic};
    uint64_t h = 1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) h = mix(h, parts[i]);
    return h;
}

/* What atom a looks like one bond further out. A sum of mixed neighbours has no order. */
static uint64_t look_further(const n2_molecule *m, const uint64_t *kind, size_t a) {
    uint64_t around = 0;
    for (size_t i = 0; i < m->bonds; i++) {
        const n2_bond *b = &m->bond[i];
        if (b->from == a) around += mix(b->order, kind[b->to]);
        if (b->to == a) around += mix(b->order, kind[b->from]);
    }
    return mix(kind[a], around);
}

void n2_molecule_bits(const n2_molecule *m, size_t radius, size_t n, double *bits) {
    uint64_t kind[N2_MOLECULE_ATOMS], next[N2_MOLECULE_ATOMS];
    size_t degree[N2_MOLECULE_ATOMS] = {0};
    memset(bits, 0, n * sizeof *bits);
    for (size_t i = 0; i < m->bonds; i++) degree[m->bond[i].from]++, degree[m->bond[i].to]++;
    for (size_t a = 0; a < m->atoms; a++) kind[a] = atom_kind(&m->atom[a], degree[a]);
    for (size_t r = 0; r <= radius; r++) {
        for (size_t a = 0; a < m->atoms; a++) bits[(kind[a] >> 17) % n] = 1;
        for (size_t a = 0; a < m->atoms; a++) next[a] = look_further(m, kind, a);
        memcpy(kind, next, m->atoms * sizeof *kind);
    }
}
