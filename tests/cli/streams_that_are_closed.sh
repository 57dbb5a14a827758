# A file does not get the number of a standard stream that is closed, and what is said does not get into a file.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
n2ce fit -n a.csv -d b.csv -o model --critic quadratic -q >&- 2>&-
echo "exit $?, $(ls)"
n2ce score model a.csv -o scores.csv -q
mkfifo rows
# The program has begun to write, and waits for more rows.
n2ce score model rows -o again.csv >&- 2>&- &
exec 3>rows
cat a.csv >&3
for stream in 1 2; do readlink /proc/$!/fd/$stream; done
exec 3>&-
wait $!
echo "exit $?"
cmp scores.csv again.csv
n2ce score model - <&-
echo "exit $?"
