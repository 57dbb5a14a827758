# Ctrl-C while fitting: exit 130 and no file, whole or half.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
n2ce fit -n a.csv -d b.csv -o model --critic net --steps 1e9 --rate 1e-9 &
sleep 2
kill -INT $!
wait $!
code=$?
ls
exit "$code"
