# One proposal is one chain, whose particle has no neighbours; so it is with few proposals in a Pareto set.
awk -v n=60 -f "${0%/*}/designs.awk" >designs.csv
small="--effort 0.05 --rounds 3 --threads 1 --force --quiet -o out.csv"
n2ce optimize designs.csv -m yield -Q 1 $small >numbers
wc -l <out.csv
n2ce optimize designs.csv -m yield --minimize count --pareto -Q 6 $small >numbers && echo $(($(wc -l <out.csv) > 1))
