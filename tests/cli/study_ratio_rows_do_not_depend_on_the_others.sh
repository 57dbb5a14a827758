# A fit is the same alone and among others, whatever the order and the threads; only seconds vary.
rows() { n2ce study ratio --n 100 --json "$@" | sed 's/"seconds": [0-9.]*, //; s/},$/}/' | grep '^    {"task".*"truth"'; }
rows --tasks sanity,bivariate-normal --methods kliep,ulsif --seeds 2 --threads 2 >want
rows --tasks sanity,bivariate-normal --methods ulsif,kliep --seeds 2 --threads 1 | cmp - want
rows --tasks sanity-2d --methods ulsif --seeds 1 --seed 1 >alone
wc -l <alone | tr -d ' '
grep -Fxc -f alone want
