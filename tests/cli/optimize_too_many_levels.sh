# A category with 10,000 levels is no category.
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 10000; i++) print i % 97 ",level" i "," i % 13 }' >designs.csv
n2ce optimize designs.csv --maximize y --categorical b
