# A constant column is fine, and so are nothing but those: another value is odd.
awk 'BEGIN { print "a,b"; for (i = 0; i < 40; i++) print "7,3" }' >good.csv
printf 'a,b\n7,3\n7,4\n' >new.csv
n2ce detect --normal good.csv new.csv -o flagged.csv -q
cut -d, -f 1,2,5 flagged.csv
