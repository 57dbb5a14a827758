# A number or range of columns that the file does not have.
printf 'a,b\n1,2\n' >a.csv
n2ce divergence --num a.csv --den a.csv --columns 0-5
