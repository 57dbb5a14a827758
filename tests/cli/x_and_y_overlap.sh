# A column cannot be in x and in y.
printf 'a,b\n1,2\n' >a.csv
n2ce mi --x a --y b,a a.csv
