# --quiet: estimates, one a line, and nothing on stderr.
n2ce study ratio --tasks sanity --methods ulsif --n 100 --seeds 2 --quiet >numbers
grep -vE '^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$' numbers
wc -l <numbers | tr -d ' '
