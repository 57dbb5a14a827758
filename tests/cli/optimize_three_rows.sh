# Three designs are too few.
awk -v n=3 -f "${0%/*}/designs.awk" >designs.csv
n2ce optimize designs.csv --maximize yield --categorical colour
