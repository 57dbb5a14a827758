# A column of names whose first one is missing still holds names.
awk 'BEGIN { print "a,b"; for (i = 0; i < 50; i++) print (i ? substr("xy", 1 + i % 2, 1) : "NA") "," i * 37 % 50 }' >good.csv
printf 'a,b\nx,7\nNA,8\nz,9\n' >new.csv
n2ce detect --normal good.csv new.csv --parts near,margins --worst 1 --save model | sed -n '$s/  */ /gp'
n2ce info model
