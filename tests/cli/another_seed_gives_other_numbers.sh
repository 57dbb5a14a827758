# The seed matters.
study() { n2ce study gaussian --dim 3 --n 20 --runs 4 --steps 10 --quiet "$@"; }
[ "$(study --seed 1)" = "$(study --seed 1)" ] || echo "same seed, other numbers"
[ "$(study --seed 1)" != "$(study --seed 2)" ] || echo "other seed, same numbers"
