/* Molecules as strings: SMILES, enough of it for the molecules of a table.
 *
 * Known are the atoms B C N O P S F Cl Br I, aromatic b c n o p s, atoms in brackets with hydrogens
 * and a charge ([nH], [N+], [O-]), bonds - = # : / \, branches, rings (1 to 9, %10 to %99). Not
 * known are parts that are not joined ("."), isotopes and stereo centres.
 *
 * A string is a molecule if it can be read, no atom has more bonds than its element allows (C 4; N
 * 3 or 5, as in nitro groups that are written N(=O)=O; O 2; S 2, 4, 6; P 3, 5; B 3; halogens 1),
 * and aromatic atoms lie in rings whose double bonds can be placed. */
#ifndef N2_SMILES_H
#define N2_SMILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { N2_MOLECULE_ATOMS = 128, N2_MOLECULE_BONDS = 160 };

typedef struct n2_atom {
    uint8_t number; /* of the element */
    bool aromatic, bracket, in_ring;
    int charge;
    unsigned hydrogens; /* those that are not atoms of their own */
} n2_atom;

typedef struct n2_bond {
    uint8_t from, to;
    uint8_t order; /* 1, 2, 3; 4: aromatic */
    bool in_ring;
} n2_bond;

typedef struct n2_molecule {
    n2_atom atom[N2_MOLECULE_ATOMS];
    n2_bond bond[N2_MOLECULE_BONDS];
    size_t atoms, bonds;
} n2_molecule;

/* NULL, or what keeps the text from being a molecule, in a few words. */
const char *n2_smiles_read(const char *text, n2_molecule *out);

/* Which of n bits (at most 65,536) a molecule has: every atom sets one for its surroundings up to
 * every radius from 0 on, as circular (Morgan) fingerprints do. Writes 0 and 1. */
void n2_molecule_bits(const n2_molecule *m, size_t radius, size_t n, double *bits);

#endif
