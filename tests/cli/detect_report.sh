# The page has no external files; its JSON is the one that is printed; both are the same for any number of threads.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=150 -v d=3 -v seed=1 -v rho=0.9 -v header=1 >good.csv
normals -v n=50 -v d=3 -v seed=2 -v rho=0.9 -v header=1 >new.csv
echo '2,-2,0' >>new.csv
n2ce detect --normal good.csv new.csv --report a --json --parts near,margins >printed
n2ce detect --normal good.csv new.csv --report b --threads 1 --parts near,margins >/dev/null
for key in normal rows flagged p_flagged worst device options; do grep -c "\"$key\":" printed; done
grep -cE '(src|href)="(http|/)|<script' a/detect.html
for word in '<h1>Which rows of new.csv are odd' 'The oddest rows' 'x0 2 (usual:' 'If all were normal'; do
    grep -ciF "$word" a/detect.html
done
cmp a/detect.html b/detect.html && echo the same page
n2ce detect --normal good.csv new.csv --report a
