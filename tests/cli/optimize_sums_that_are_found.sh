# A sum is found in its summands' own scale, and only where it holds in all rows; what --fix makes of it is told.
mix() { awk -v off="$1" -v small="$2" 'BEGIN { s = 1; for (i = 0; i < 120; i++) { s = s * 16807 % 2147483647; a = int(s % 1000) / 10
     s = s * 16807 % 2147483647; b = int((1000 - 10 * a) * (s % 1000) / 1000) / 10; if (!i) print "a,b,c,dye,y"
     s = s * 16807 % 2147483647; c = 100 - a - b + off * (s % 21 - 10)
     printf "%.1f,%.1f,%.1f,%.9f,%.4f\n", a, b, c, small * (s % 97), a * b / 1000 } }'; }
small="--maximize y --count 4 --effort 0.02 --rounds 2 --force -o out.csv"
said() { n2ce optimize "$@" $small 2>&1 | grep 'add up' || echo "no sum"; }
mix 0 1 >mix.csv
said mix.csv
mix 0 1e-7 >dye.csv
said dye.csv
awk -F, 'NR > 1 { s = $1 + $2 + $3 - 100; if (s * s > 1e-16) bad++ } END { print NR - 1, bad + 0 }' out.csv
mix 0.1 1 >about.csv
said about.csv
awk -F, -v OFS=, 'NR == 50 { $3 += 0.3 } 1' mix.csv >but_one.csv
said but_one.csv
awk -F, -v OFS=, 'NR % 3 == 0 { $3 += 0.1 } 1' mix.csv >rounded.csv
said rounded.csv
said mix.csv --fix a=80,b=80
n2ce optimize mix.csv $small --sum "a,b,c = 100" --fix a=80,b=80 2>&1
