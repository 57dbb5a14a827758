# Names and levels in quotes may have commas, wherever columns are named; what is written has the file's names.
awk -v n=60 -f "${0%/*}/designs.awk" | awk -F, -v OFS=, '{ $1 = NR > 1 ? $1 : "\"Temp, C\""; sub("green", "\"green, light\"") } 1' >d.csv
run() { n2ce optimize d.csv --effort 0.02 --rounds 2 -Q 4 --force --quiet -o out.csv "$@" >numbers && head -n 1 out.csv; }
run -m yield --fix '"Temp, C"=50.25, colour="green, light"'
sed 1d out.csv | cut -d, -f1,3-4 | uniq
run --minimize '"Temp, C"'
run --minimize '2*"Temp, C",count'
run -m 3,1 -c 0,2
run --target '"Temp, C"=40'
run -m yield --require '"Temp, C" >= 30'
# What cannot be.
run -m yield --fix 'count=3,count=4'
run -m yield --fix 'colour=green'
run -m yield --fix '"Temp, C=50'
