# A category that was not called one.
awk -v n=30 -f "${0%/*}/designs.awk" >designs.csv
n2ce optimize designs.csv --maximize yield
