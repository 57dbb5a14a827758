# The file's own columns and units, a predicted value and the density; better than what was seen.
awk -v n=200 -f "${0%/*}/designs.awk" >designs.csv
n2ce optimize designs.csv --maximize yield --count 12 -o out.csv --effort 0.1 --rounds 6 | sed -n 1p
head -n 1 out.csv
awk -F, 'NR > 1 { n++; bad += $1 < 20 || $1 > 80 || $2 != int($2) || $2 < 1 || $2 > 8; words[$3] }
    END { for (w in words) if (w !~ /^(red|green|blue)$/) bad++; print n, bad }' out.csv
awk -F, 'NR > 1 { v = -(($1 - 50) / 20) ^ 2 - ($2 - 4) ^ 2 / 9 + ($3 == "red"); if (v > 0.5) good++ }
    END { print (good > 5 ? "good" : "poor: " good) }' out.csv
ls
