# Half a model, one with a wrong byte, and what never was one.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
n2ce fit -q -n a.csv -d b.csv --critic quadratic -o model >/dev/null
size=$(wc -c <model)
head -c $((size - 8)) model >half
cp model wrong
printf '\377' | dd of=wrong bs=1 seek=$((size - 9)) conv=notrunc 2>/dev/null
for file in half wrong a.csv nothing; do
    n2ce score $file a.csv
    echo "exit $?"
done
n2ce info wrong
