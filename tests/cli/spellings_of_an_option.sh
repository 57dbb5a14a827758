# --name value, --name=value, the letter, and the suffix K mean the same; the last one counts.
study() { n2ce study gaussian --quiet --runs 2 --steps 3 "$@"; }
study --dim 3 --n 1000 >want
study --dim=3 --n=1e3 | cmp - want
study --dim 3 --n 1K -s 0 | cmp - want
study --dim 2 --dim 3 --n 1000 | cmp - want
