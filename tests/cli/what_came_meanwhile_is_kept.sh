# Checkpoints, sheets and pages replace nothing that somebody else made, also while they are at work.
awk 'BEGIN { srand(1); print "u,v,y"; for (i = 0; i < 60; i++) { u = rand(); v = rand(); print u "," v "," u - v * v } }' >designs.csv
export N2CE_SAVE_SECONDS=0.05
optimize() { exec n2ce optimize designs.csv -m y -Q 4 --rounds 1 --ambition 1 -q --threads 1 "$@" >/dev/null; }
# wait_for FILE: until it is there.
wait_for() { for i in $(seq 600); do [ -e "$1" ] && return; sleep 0.1; done; echo "no $1"; }
# A note in the place of the checkpoint, made while training goes on: it stays, and who stops the training is told.
optimize --effort 100 --time-limit 100 -o a.csv --checkpoint state 2>said &
wait_for state
rm state
echo 'a note' >state
kill -TERM $!
wait $!
echo "exit $?, $(cat state): $(tail -n 1 said)"
# Two runs with one output: the state that one of them left is neither replaced nor removed by the other.
N2CE_SAVE_SECONDS=1000 optimize --effort 100 --time-limit 100 -o b.csv 2>said &
second=$!
sleep 1
optimize --effort 100 --time-limit 100 -o b.csv 2>/dev/null &
wait_for b.csv.checkpoint
kill -TERM $!
wait $!
echo "exit $?"
cp b.csv.checkpoint kept
kill -TERM $second
wait $second
echo "exit $?, $(tail -n 1 said)"
cmp kept b.csv.checkpoint && ls b.csv*
# A sheet of pictures, and pages of the manual.
{
    printf '\0\0\010\003\0\0\0\144\0\0\0\010\0\0\0\010'
    awk 'BEGIN { srand(3); for (i = 0; i < 6400; i++) printf "%c", 1 + 120 * rand() }'
} >pictures.idx
train='n2ce train --model diffusion pictures.idx -o teacher --width 4 --batch 8 --seen 64 --looks 2 --watched 0 --force-cpu --device cpu -q'
echo mine >sheet.png
$train --sheet sheet.png
echo "exit $?, $(cat sheet.png), $(ls teacher 2>/dev/null)"
$train --sheet sheet.png --force >/dev/null
echo "exit $?, $(head -c 4 sheet.png | tail -c 3)"
mkdir pages
echo mine >pages/n2ce.1
n2ce man --all pages
echo "exit $?, $(cat pages/n2ce.1)"
# Pictures that would seem to be of the same sample.
n2ce sample teacher -n 3 -o pictures -q
n2ce sample teacher -n 2 -o pictures -q --force
echo "exit $?, $(ls pictures | tr '\n' ' ')"
n2ce sample teacher -n 3 -o pictures -q --force
