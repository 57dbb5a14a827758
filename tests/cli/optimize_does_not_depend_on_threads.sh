# The same proposals for any number of threads, and others for another seed.
awk -v n=120 -f "${0%/*}/designs.awk" >designs.csv
run() { n2ce optimize designs.csv --maximize yield --categorical colour --count 8 --effort 0.02 --rounds 2 "$@" 2>/dev/null; }
run --threads 1 >one
run --threads 3 >three
run --seed 7 >other
cmp one three && ! cmp -s one other && echo same
