# One distribution twice: 0 is in the interval of KL.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=400 -v d=3 -v seed=5 >a.csv
normals -v n=400 -v d=3 -v seed=6 >b.csv
n2ce divergence -n a.csv -d b.csv --steps 60 --width 8 --json >answer
tr ',{' '\n\n' <answer | awk -F': ' '/"lo"/ && !lo { lo = $2; l = 1 } /"hi"/ && !hi { hi = $2 }
    END { print (l && lo < 0 && hi > 0 && hi - lo < 0.2 ? "covers 0" : "wrong: " lo " to " hi) }'
