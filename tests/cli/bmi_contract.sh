# Three words in, exactly one number out, whatever the file is called and has as a header.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=150 -v d=5 -v seed=7 -v rho=0.5 >plain.csv
normals -v n=150 -v d=5 -v seed=7 -v rho=0.5 -v header=1 >'named file.csv'
n2ce mi --bmi plain.csv 3 2 --steps 20 --width 8 --folds 2 >said 2>&1
wc -l <said | tr -d ' '
grep -cE '^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$' said
n2ce mi --bmi 'named file.csv' 3 2 --steps 20 --width 8 --folds 2 2>&1 | cmp - said
n2ce mi --x 0-2 --y 3-4 plain.csv --steps 20 --width 8 --folds 2 --quiet 2>&1 | cmp - said
