# What one weighting of the objectives has proposed, no other one proposes; and of a few proposals none is by chance.
awk 'BEGIN { srand(4); print "a,b,y,cost"; for (i = 0; i < 200; i++) { a = 10 * rand(); b = 10 * rand()
     printf "%.2f,%.2f,%.3f,%.3f\n", a, b, -(a - 7) ^ 2 - (b - 2) ^ 2, a + b } }' >two.csv
n2ce optimize two.csv --maximize y --minimize cost --pareto --count 20 --effort 0.05 --rounds 4 -o front.csv --quiet >/dev/null
tail -n +2 front.csv | cut -d, -f1,2 | sort | uniq -d | wc -l
n2ce optimize two.csv --maximize y --columns a,b --count 3 --effort 0.05 --rounds 4 -o few.csv --quiet >/dev/null
awk -F, 'NR > 1 { if (($1 - 7) ^ 2 + ($2 - 2) ^ 2 > 4) bad++ } END { print NR - 1, "proposals,", bad + 0, "far off" }' few.csv
