# Which column is the value?
awk -v n=20 -f "${0%/*}/designs.awk" >designs.csv
n2ce optimize designs.csv
