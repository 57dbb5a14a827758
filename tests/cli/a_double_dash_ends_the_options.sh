# After "--" everything is a word, and the study takes none; alone it changes nothing.
study() { n2ce study gaussian --quiet --dim 1 --n 2 --runs 1 --steps 1 "$@"; }
study >want
study -- | cmp - want
study -- --seed 1
