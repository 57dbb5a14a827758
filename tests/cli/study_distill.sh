# Students of a tiny teacher: the table, the JSON, a study that goes on, bad input.
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
idx bars 90 16 1
idx others 60 16 2
idx odd 90 15 3
tiny='--images bars --test others --width 4 --batch 4 --effort 3e-6 --number 64 --watched 64 --looks 2 --device cpu --force-cpu'
study() { n2ce study distill $tiny "$@"; }
study --teacher model --students teacher,start,dxmi-m100,sid,sida-m1,sida-control,sida-m50 --seeds 2 --report out 2>log >table
grep -v '^n2ce' table | cut -c 1-28 | sed 's/ *[-+0-9.e]*$//' | head -14
grep -c Frechet log
grep -c 'data:image/png' out/distill-study.html
study --teacher model --students teacher,sida-m50 --json -q --threads 1 >one.json 2>/dev/null
study --teacher model --students teacher,sida-m50 --json -q --threads 2 >two.json 2>/dev/null
rows() { grep -E '"arm": "(teacher|sida-m50)", "seed": 0' "$1" | sed 's/"seconds": [0-9.e-]*/S/; s/,$//'; }
rows one.json >a
rows two.json | cmp - a
study --teacher model --students teacher,sida-m50 --reuse out --json -q >kept.json 2>/dev/null
rows kept.json | cmp - a
study --teacher model --students teacher --reuse out --number 80 2>&1 >/dev/null | grep -c 'made with other pictures'
cp bars kept
idx bars 90 16 7
study --teacher model --students teacher --reuse out 2>&1 >/dev/null | grep -c 'made with other pictures'
cp kept bars
say() {
    "$@" >/dev/null 2>error && status=0 || status=$?
    tail -1 error | cut -c 1-150
    echo "exit $status"
}
unset N2CE_DATA
say n2ce study distill
say study --images odd
say study --students best
say study --teacher bars
say study --watched 0
say study --reuse bars
say n2ce study distill --images bars --device cpu --effort 3e-6 --students sid | sed 's/[0-9]* steps.*/STEPS/'
# a study that is killed has kept what was finished, and the next one takes it over
mkdir killed
sed 's/"seconds": [0-9.e-]*/"seconds": 777/' kept.json >killed/distill-study.json.part
say study --teacher model --students teacher --report killed
study --teacher model --students teacher,sida-m50 --reuse killed --report killed --json -q 2>/dev/null | grep -c '"seconds": 777'
ls killed
