# --quiet: numbers, one a line, and nothing on stderr.
n2ce study gaussian --dim 3 --n 20 --runs 4 --steps 10 --quiet --report r >numbers
grep -vE '^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$' numbers
wc -l <numbers | tr -d ' '
