# A model of pictures: trained, stopped by its time, resumed, sampled; bad input.
# idx FILE N SIDE SEED: an IDX file of N grey pictures, a bright bar at a place by chance
idx() {
    printf '\0\0\010\003\0\0\0'"\\$(printf %o "$2")"'\0\0\0'"\\$(printf %o "$3")"'\0\0\0'"\\$(printf %o "$3")" >"$1"
    awk -v n="$2" -v side="$3" -v seed="$4" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++) {
            at = int(side * rand())
            for (k = 0; k < side * side; k++) printf "%c", k % side == at ? 120 : 1
        }
    }' >>"$1"
}
idx bars 100 12 1
idx wide 100 30 2
idx few 9 12 3
tiny='--width 4 --codes 4 --batch 16 --noise 2 --phases 6,6,4 --device cpu'
train() { n2ce train "$@" $tiny; }
train bars -o model 2>log | sed 's/[0-9]*\.[0-9]*/N/g'
grep -c 'nats' log
head -1 log
train bars -o one -q --threads 1 >/dev/null
train bars -o two -q --threads 2 >/dev/null
cmp one two
ls ./*.checkpoint 2>/dev/null
train bars -o model 2>&1 | tail -1
train bars -o model --force --json -q | grep -o '"[a-zA-Z_]*": ' | tr -d '": ' | sort -u | tr '\n' ' '
echo
n2ce info model
n2ce sample model -n 20 -o sheet.png --steps 5 --device cpu
n2ce sample model -n 20 -o made.npy --steps 5 -q
n2ce sample model -n 20 -o folder --steps 5 -q --threads 1
n2ce compare made.npy folder -q | awk 'NR == 1 {print $1 < 1e-9 ? 0 : $1}'
n2ce info made.npy | head -1
n2ce sample model -n 6 -o pairs.png --reconstruct bars -q
n2ce sample model -n 6 -o lines.png --interpolate bars -q
n2ce info pairs.png | head -1
n2ce info lines.png | head -1
say() {
    "$@" >/dev/null 2>error && status=0 || status=$?
    tail -1 error | cut -c 1-150
    echo "exit $status"
}
say n2ce train
say n2ce train bars
say n2ce train bars -o none/model
say train few -o other
say train bars,wide -o other
head -c 500 bars >short
say train short -o other
mkdir empty
say train empty -o other
head -c 60 folder/00000.png >folder/00003.png
say train folder -o other
rm folder/00003.png
n2ce info wide --sheet folder/00004.png --first 1 --force >/dev/null
say train folder -o other
say n2ce train bars -o other --phases 1
say n2ce sample bars -o other.png
say n2ce sample model -o sheet.png
say n2ce sample model -o other.png --reconstruct wide
n2ce train bars -o other -q --width 4 --codes 4 --batch 16 --phases 4,200,0 --prior mle --prior-rate 1 2>&1 >/dev/null |
    sed 's/Step [0-9]*: the op .* built at [a-z_.]*:[0-9]*/Step N: an op/'
rm -f other.checkpoint
head -c 3000 model >cut
say n2ce sample cut -o other.png
ls other* 2>/dev/null
