/* How strongly a strand of RNA folds onto itself: the least free energy of a structure without
 * knots, kcal/mol, by nearest neighbours.
 *
 * Energies are Turner's of 2004 for stacked pairs, and for the beginnings of hairpins, bulges and
 * interior loops; ends by AU or GU cost 0.5, asymmetric loops 0.6 a base, a loop with several
 * branches 3.4 and 0.4 a branch. Mismatches, dangling ends and special loops are left out, so
 * values are near those of folding programs, and not theirs. */
#ifndef N2_RNA_FOLD_H
#define N2_RNA_FOLD_H

#include <stddef.h>

enum { N2_RNA_MOST = 64 };

/* Whether bases, 0 to 3 for A, C, G, U, can pair. */
int n2_rna_pairs(int a, int b);

/* Of the pair (i, j) stacked on the next one inward, (p, q), as bases. */
double n2_rna_stack(int i, int j, int p, int q);

/* Of n <= N2_RNA_MOST bases; 0 where nothing is gained by folding. */
double n2_rna_energy(const int *base, size_t n);

#endif
