# A checkpoint is gone on from by the run that it is of, and replaces nothing that is not one.
awk 'BEGIN { print "a,b,y"; srand(1); for (i = 0; i < 60; i++) { a = rand(); b = rand(); print a "," b "," a - b * b } }' >designs.csv
sed '7s/.$/7/' designs.csv >others.csv
optimize() { n2ce optimize "$@" --count 4 --rounds 1 --effort 0.02 --quiet 2>&1 >/dev/null | cut -c 1-125; }
state() { optimize "$@" --checkpoint state; }
state designs.csv -m y -o a.csv
cp state kept
state designs.csv -m y -o b.csv
state designs.csv -m y -o b.csv --resume
cmp a.csv b.csv
state designs.csv --minimize y -o c.csv --resume
state others.csv -m y -o c.csv --resume | sed 's/=[0-9a-f]*/=SUM/g'
state designs.csv -m y -o c.csv --resume --M 50
state designs.csv -m y -o c.csv --resume --prior gaussian
state designs.csv -m y -o c.csv --resume --seed 2
state designs.csv -m y -o c.csv -f
cmp a.csv c.csv
printf 'XYZ' | dd of=state bs=1 seek=$(($(wc -c <state) / 2)) conv=notrunc 2>/dev/null
state designs.csv -m y -o d.csv --resume
echo "a note" >state
state designs.csv -m y -o d.csv -f
cat state
cp kept d.csv.checkpoint
optimize designs.csv -m y -o d.csv
cmp kept d.csv.checkpoint
optimize designs.csv -m y -o d.csv --resume
cmp a.csv d.csv
ls ./*checkpoint 2>/dev/null
mkfifo pipe
optimize designs.csv -m y -o pipe -f
ln -s a.csv link
chmod 600 a.csv
optimize designs.csv -m y -o link -f
cmp link d.csv
ls -l a.csv link | awk '{ print substr($1, 1, 10) }'
