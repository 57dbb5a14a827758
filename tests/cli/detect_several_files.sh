# Rows of several files are written as those of one; columns that differ and pipes are told before the work.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v header=1 >normal.csv
normals -v n=30 -v d=3 -v seed=2 -v header=1 >all.csv
head -n 11 all.csv >part-1.csv
{ head -n 1 all.csv && tail -n 20 all.csv; } >part-2.csv
n2ce detect --normal normal.csv all.csv --columns x0,x1 -o one.csv --save model -q
n2ce detect --normal normal.csv 'part-*.csv' --columns x0,x1 -o several.csv -q
cmp one.csv several.csv
n2ce detect --model model 'part-[12].csv' -o loaded.csv -q
cmp one.csv loaded.csv
# the same without names, and from two kinds of files
tail -n +2 part-1.csv >bare-1.csv
tail -n +2 part-2.csv >bare-2.csv
tail -n +2 all.csv >bare.csv
n2ce detect bare.csv -o one.csv --force -q
n2ce detect 'bare-*.csv' -o several.csv --force -q
cmp one.csv several.csv
head -n 1 several.csv
say() {
    timeout 20 n2ce detect "$@" -q
    echo "exit $?"
}
awk -F, '{ print $1 "," $3 "," $2 }' part-2.csv >part-3.csv
say --normal normal.csv 'part-[13].csv' --columns x0,x1 -o other.csv
mkfifo part-4.csv
say --model model 'part-[14].csv' -o other.csv
say part-4.csv
ls other* 2>/dev/null
# What comes out of a pipe is all there: nothing of it is lost to a look at what it is.
n2ce detect --normal normal.csv all.csv --columns x0,x1 | head -n 1
cat normal.csv | n2ce detect --normal /dev/stdin all.csv --columns x0,x1 | head -n 1
cat normal.csv >part-4.csv &
timeout 20 n2ce detect --normal part-4.csv all.csv --columns x0,x1 | head -n 1
cat all.csv >part-4.csv &
timeout 20 n2ce detect --model model part-4.csv | sed -n 2p
n2ce detect --normal - all.csv --columns x0,x1 <normal.csv | head -n 1
cat normal.csv | n2ce detect --normal - all.csv --columns x0,x1 | head -n 1
