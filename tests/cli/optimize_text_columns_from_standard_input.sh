# Columns that hold texts are categories, in a file and in what is piped in: it is read once.
awk 'BEGIN { srand(1); print "dose,colour,yield"; for (i = 0; i < 200; i++) { d = rand(); c = i % 3; print d "," substr("red  green blue ", 5 * c + 1, 5 - (c != 1)) "," d * (c + 1) } }' | sed 's/ *,/,/g' >designs.csv
head -n 3 designs.csv | cut -d, -f2
run() { n2ce optimize "$@" -m yield --count 4 --effort 0.02 --rounds 1 2>/dev/null; }
run designs.csv >file
cat designs.csv | run - >piped
cmp file piped
head -n 1 piped
{ cat designs.csv; echo 0.5,7,1; } | n2ce optimize - -m yield
