# The keys of the answers' objects, at the first level.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
# Keys outside of inner brackets.
keys() {
    awk '{
        for (i = 1; i <= length($0); i++) {
            c = substr($0, i, 1)
            if (c == "\"") {
                text = ""
                for (i++; substr($0, i, 1) != "\""; i++) text = text substr($0, i, 1)
                if (depth == 1 && substr($0, i + 1, 1) == ":") printf " %s", text
            }
            depth += (c == "{" || c == "[") - (c == "}" || c == "]")
        }
        print ""
    }'
}
small='--steps 20 --width 8 --folds 2 --json'
# shellcheck disable=SC2086
{
    n2ce fit -n a.csv -d b.csv -o model $small | keys
    n2ce divergence -n a.csv -d b.csv $small | keys
    n2ce mi --x 0 --y 1 a.csv $small | keys
    n2ce test -n a.csv -d b.csv $small | keys
}
n2ce score model a.csv --json | keys
n2ce score model a.csv -o out.txt --json
n2ce info model --json | keys
