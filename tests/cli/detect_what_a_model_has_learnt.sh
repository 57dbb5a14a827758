# How to learn has no say where a model has learnt; and rows that were judged before are not judged
# into a table with two columns of one name.
awk 'BEGIN { print "a,b"; for (i = 0; i < 40; i++) print i % 7 "," i % 5 }' >good.csv
n2ce detect --normal good.csv --save model --parts near -q
for option in --columns=a --categorical=b --parts=near --max-rows=20 --seed=3; do
    n2ce detect --model model good.csv $option || echo "$option: $?"
done
n2ce detect --model model good.csv -o once.csv -q
n2ce detect --model model once.csv -q
n2ce detect --model model once.csv -o twice.csv || echo $?
ls
