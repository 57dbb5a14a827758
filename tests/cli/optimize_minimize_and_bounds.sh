# Smaller is better, within bounds.
awk -v n=200 -f "${0%/*}/designs.awk" >designs.csv
printf 'column,low,high\ntemp,30,40\n' >box.csv
n2ce optimize designs.csv --minimize yield --categorical colour --bounds box.csv --count 8 --effort 0.05 --rounds 4 2>/dev/null >out.csv
awk -F, 'NR > 1 { n++; bad += $1 < 30 || $1 > 40; last = $4; if (NR == 2) first = $4 }
    END { print n, bad, (first <= last ? "smallest first" : "wrong order") }' out.csv
