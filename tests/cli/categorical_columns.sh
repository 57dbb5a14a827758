# Levels by name; a level the model has not seen is refused by its name.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
for f in a b; do
    awk -v f=$f 'NR == 1 { print $0 ",colour"; next }
        { print $0 "," (NR % 4 == 0 ? "red" : f == "a" || NR % 4 == 1 ? "blue" : "light green") }' $f.csv >$f-c.csv
done
n2ce fit -q -n a-c.csv -d b-c.csv --categorical colour --critic quadratic -o model >/dev/null
n2ce info model | grep colour | head -n 1
printf 'colour,x1,x0\nblue,0.5,0.5\nlight green,0.5,0.5\n' >rows.csv
n2ce score model rows.csv | awk '{ x[NR] = $1 } END { print (x[1] > x[2] + 1 ? "blue is the numerator" : x[1] " " x[2]) }'
printf 'colour,x1,x0\nblue,0.5,0.5\npink,0.5,0.5\n' >rows.csv
n2ce score model rows.csv
