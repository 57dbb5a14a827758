# A model that is there stays unless --force says otherwise.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
echo mine >model
n2ce fit -q -n a.csv -d b.csv --critic quadratic -o model
echo "exit $?"
cat model
n2ce fit -q -n a.csv -d b.csv --critic quadratic -o model --force >/dev/null
n2ce info model -q
ls
