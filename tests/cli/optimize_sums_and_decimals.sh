# A sum that the decimals of the data cannot have is refused, or let go if it was found; one that they can have holds.
awk -v n=60 -f "${0%/*}/designs.awk" | awk -F, -v OFS=, 'NR > 1 { $1 = sprintf("%.1f", $1) } 1' >d.csv
run() { n2ce optimize d.csv -m yield --effort 0.02 --rounds 2 -Q 8 --force --quiet -o out.csv "$@" >numbers && sed 1d out.csv | awk -F, '{ print $1 + $2 }' | uniq; }
run --sum "temp,count = 50.55"
run --sum "temp,count = 50.55" --fix temp=44.5
run --sum "temp,count = 50.5"
run --sum "temp,count = 50.55" --continuous count
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 60; i++) printf "%.1f,%.1f,%d\n", i * 7 % 60 / 2, 100 - i * 7 % 60 / 2, i * 11 % 17 }' >mix.csv
n2ce optimize mix.csv -m y --effort 0.02 --rounds 2 -Q 2 --fix a=20.05 2>&1 | grep 'add up'
