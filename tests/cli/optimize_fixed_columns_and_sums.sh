# Fixed columns and sums hold in every proposal; what cannot hold is told, with what excludes it.
awk 'BEGIN { s = 1; for (i = 0; i < 120; i++) { s = s * 16807 % 2147483647; a = int(s % 1000) / 10
     s = s * 16807 % 2147483647; b = int((1000 - 10 * a) * (s % 1000) / 1000) / 10
     if (!i) print "a,b,c,t,y"; t = 20 + s % 60
     printf "%.1f,%.1f,%.1f,%d,%.4f\n", a, b, 100 - a - b, t, a * b / 1000 - (t - 50) ^ 2 / 900 } }' >mix.csv
small="--count 16 --effort 0.02 --rounds 3 --force"
n2ce optimize mix.csv --maximize y $small -o out.csv 2>&1 | grep 'add up'
awk -F, 'NR > 1 { s = $1 + $2 + $3 - 100; if (s * s > 1e-16) bad++ } END { print NR - 1, bad + 0 }' out.csv
n2ce optimize mix.csv --maximize y $small --fix t=55 --sum "a,b = 60" -o out.csv >/dev/null 2>&1
awk -F, 'NR > 1 { s = $1 + $2 - 60; if (s * s > 1e-16 || $4 != 55) bad++ } END { print NR - 1, bad + 0 }' out.csv
n2ce optimize mix.csv --maximize y --fix t=500 2>&1
n2ce optimize mix.csv --maximize y --sum "a,b = 900" 2>&1
n2ce optimize mix.csv --maximize y --fix t=warm 2>&1
n2ce optimize mix.csv --maximize y --sum "a,b=60; b,c=40" 2>&1
n2ce optimize mix.csv --maximize y --fix t 2>&1
