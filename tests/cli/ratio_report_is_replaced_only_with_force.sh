# A second report into the same folder is refused without --force, before any work is done.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=80 -v d=1 -v seed=1 -v mean=1 >a.csv
normals -v n=80 -v d=1 -v seed=2 >b.csv
divergence() { n2ce divergence -n a.csv -d b.csv --critic quadratic --report r "$@" | tail -n 1; }
divergence
cp r/divergence.json first.json
n2ce divergence -n not_there.csv -d b.csv --report r
echo "exit $?"
cmp r/divergence.json first.json && echo "the first is still there"
divergence --level 0.9 --force
cmp -s r/divergence.json first.json || echo "the second is there"
n2ce divergence -n a.csv -d b.csv --critic quadratic --json --report other >printed
cmp printed other/divergence.json
n2ce fit -n a.csv -d b.csv --critic quadratic -o model --report r --quiet >numbers
n2ce fit -n a.csv -d b.csv --critic quadratic -o other_model --report r --quiet
echo "exit $?"
ls -A . r
