# What is normal cannot be told from a handful of rows.
printf 'a,b\n1,2\n3,4\n5,6\n' >good.csv
n2ce detect --normal good.csv good.csv -o flagged.csv
