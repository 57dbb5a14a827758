# A column is a part of designs or what is asked of them; messages name the options that say both.
awk -v n=30 -f "${0%/*}/designs.awk" >d.csv
n2ce optimize d.csv --target temp=40 -c temp,colour
n2ce optimize d.csv -m yield,yield -c temp
n2ce optimize d.csv -m yield -c temp,yield
n2ce optimize d.csv -m yield -c temp,count --require "count >= 3"
n2ce optimize d.csv -m yeild -c temp
n2ce mi d.csv --x temp --y yeild
