# Neither the number of threads nor the instruction set changes a bit of the result.
study() { n2ce study gaussian --dim 5 --n 30 --runs 40 --steps 20 --json "$@"; }
study --threads 1 >want
study --threads 2 | cmp - want
study --threads 7 | cmp - want
for isa in portable avx2 avx512; do
    N2CE_ISA=$isa study | cmp - want
done
