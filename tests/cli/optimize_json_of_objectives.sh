# What the CSV says of objectives and of what is required is in the JSON, too.
awk -v n=60 -f "${0%/*}/designs.awk" | awk -F, -v OFS=, '{ $5 = NR > 1 ? 2 * $1 + $2 : "cost" } 1' >d.csv
small="--effort 0.02 --rounds 2 -Q 5 --quiet --json"
lists() { tr '{}' '\n\n' | grep -o '"[a-z_]*": \[[^]"]*\]' | awk -F'[][]' '{ print $1 split($2, x, ",") }' | grep -e _predicted -e front -e chance; }
n2ce optimize d.csv -m yield --minimize '2*count' $small --require "cost >= 60" | lists
n2ce optimize d.csv --target count=3 $small | lists
n2ce optimize d.csv -m yield $small | lists
[ $? = 1 ] && echo none
