# Priors of codes on tiny pictures: the table, the JSON, a study that goes on, bad input.
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
idx bars 90 12 1
idx few 30 12 2
tiny='--images bars --width 4 --codes 4 --batch 16 --noise 2 --phases 4,4,2 --number 40 --device cpu'
study() { n2ce study images $tiny "$@"; }
study --seeds 2 2>log | cut -c 1-34 | sed 's/ *[-+0-9.e]*$//' | head -22
sed 's/distance .*/distance/' log | sort | uniq -c | sed 's/^ *//' | head -4
study --arms vae,n2ce --json -q --threads 1 >one.json
study --arms vae,n2ce --json -q --threads 3 >two.json
seconds() { sed 's/"seconds": [0-9.e-]*/"seconds": S/' "$1"; }
seconds one.json >a
seconds two.json | cmp - a
study --arms vae --report out -q >/dev/null
study --arms vae,n2ce --reuse out --report out --force -q --json >both.json
grep '"arm"' both.json | sed 's/, "seconds.*//' >c
grep '"arm"' one.json | sed 's/, "seconds.*//' | cmp - c
grep -c 'data:image/png' out/images.html
study --arms vae --reuse out --codes 5 2>&1 >/dev/null | head -1
# other pictures, as many and as large
idx bars 90 12 3
study --arms vae --reuse out 2>&1 >/dev/null | head -1
say() {
    "$@" >/dev/null 2>error && status=0 || status=$?
    tail -1 error | cut -c 1-150
    echo "exit $status"
}
unset N2CE_DATA
say n2ce study images
say n2ce study images --data nowhere
say n2ce study images --images few
say study --reuse bars
say study --effort 100 --features nowhere # nothing is trained before it is there
say study --arms best
