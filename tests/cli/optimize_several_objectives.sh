# Objectives by weights, as a Pareto set, near a value; and rows that were tried since.
awk 'BEGIN { s = 1; for (i = 0; i < 120; i++) { s = s * 16807 % 2147483647; a = s % 1000 / 100
     s = s * 16807 % 2147483647; b = s % 1000 / 100; if (!i) print "a,b,cost,y"
     printf "%.2f,%.2f,%.4f,%.4f\n", a, b, a, a + b } }' >runs.csv
small="--effort 0.05 --rounds 4 --force --quiet"
n2ce optimize runs.csv --maximize y --minimize "3*cost" --count 8 $small -o weighted.csv >numbers
head -n 1 weighted.csv
# y = a + b, cost = a; one of eight is the best of some designs by chance
awk -F, 'NR > 1 && ($1 > 3 || $2 < 7) { bad++ } END { print "off", (bad > 1 ? bad : "at most one") }' weighted.csv
n2ce optimize runs.csv --maximize y --minimize cost --pareto --count 10 $small -o front.csv >numbers
head -n 1 front.csv
awk -F, 'NR > 1 { low = low || $1 < 2; high = high || $1 > 8; n += $NF } END { print NR - 1, low, high, (n > 0) }' front.csv
n2ce optimize runs.csv --target y=10 --columns a,b --count 8 $small -o near.csv >numbers
head -n 1 near.csv
awk -F, 'NR > 1 { d = $1 + $2 - 10; if (d < -1 || d > 1) bad++ } END { print "off", bad + 0 }' near.csv
# What was tried since: other columns, another order, a row without a value, a value beyond all others.
printf 'y_predicted,y,b,a\n1,99,5,5\n1,,4,4\n' >tried.csv
n2ce optimize runs.csv --maximize y --columns a,b --append tried.csv --count 4 --effort 0.05 --rounds 4 -o next.csv 2>&1 | grep -e appended -e ^seen
# What cannot be.
n2ce optimize runs.csv --maximize y --pareto 2>&1
n2ce optimize runs.csv --target y 2>&1
n2ce optimize runs.csv --maximize "0*y,cost" 2>&1
n2ce optimize runs.csv --maximize y --minimize y 2>&1
n2ce optimize runs.csv --maximize y --append none.csv 2>&1
