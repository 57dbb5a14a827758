# fit has an -o and an -f of its own: the common ones give way.
n2ce help fit >help
grep -c '^  -o,' help
grep -c '^  -f,' help
grep -c -- '--force' help
grep -E '^ +(-., )?--(output|report|force)' help
