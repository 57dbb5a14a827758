# A column that is required is no part of a design; proposals are likely to have what is asked for.
awk 'BEGIN { s = 1; for (i = 0; i < 150; i++) { s = s * 16807 % 2147483647; a = s % 1000 / 100
     s = s * 16807 % 2147483647; b = s % 1000 / 100; if (!i) print "a,b,purity,y"
     printf "%.2f,%.2f,%.4f,%.4f\n", a, b, 1 - a / 10, a + b } }' >runs.csv
small="--count 16 --effort 0.1 --rounds 8 --force"
n2ce optimize runs.csv --maximize y $small --require "purity >= 0.6" -o out.csv >/dev/null 2>&1
head -n 1 out.csv
awk -F, 'NR > 1 && 1 - $1 / 10 < 0.55 { bad++ } END { print (NR > 8), bad + 0 }' out.csv
n2ce optimize runs.csv --maximize y --require "purity > 0.6" 2>&1
n2ce optimize runs.csv --maximize y --require "y >= 3" 2>&1
