# A report without anything from elsewhere.
awk -v n=100 -f "${0%/*}/designs.awk" >designs.csv
n2ce optimize designs.csv --maximize yield --categorical colour --count 8 --effort 0.02 --rounds 2 -o out.csv --report rep >/dev/null 2>&1
ls rep
grep -cE 'https?://|src=' rep/optimize.html
grep -o '<svg' rep/optimize.html | wc -l | tr -d ' '
