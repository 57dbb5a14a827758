# What a command writes are different files, and it says so before it works.
awk 'BEGIN { srand(5); print "a,b"; for (i = 0; i < 80; i++) print rand() "," rand() }' >a.csv
awk 'BEGIN { srand(1); print "u,v,y"; for (i = 0; i < 40; i++) { u = rand(); print u "," rand() "," u } }' >designs.csv
n2ce detect --normal a.csv a.csv -o same --save ./same -q
echo "exit $?"
n2ce detect --normal a.csv a.csv -o same --save "$PWD/same" --force -q
echo "exit $?"
n2ce optimize designs.csv -m y -o same --checkpoint same -q
echo "exit $?"
mkdir out
n2ce optimize designs.csv -m y -o out/optimize.json --report out -q
echo "exit $?"
n2ce study draw shifted-2d --num same --den same --force -q
echo "exit $?"
# Nor is the first of two written if the second cannot be.
n2ce study draw shifted-2d --num new.csv --den a.csv -q
echo "exit $?"
n2ce optimize designs.csv -m y -o - -q
echo "exit $?"
ls
