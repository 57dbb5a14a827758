# A diffusion model: no GPU, trained, killed and resumed, sampled, distilled; bad input.
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
idx bars 120 8 1
idx odd 120 10 2
idx few 99 8 3
idx other 120 16 4
tiny='--width 4 --batch 4 --seen 40 --watched 64 --looks 2 --device cpu'
train() { n2ce train --model diffusion $tiny "$@"; }
distill() { n2ce distill "$@" --batch 4 --seen 24 --watched 64 --looks 2 --device cpu; }
train bars -o teacher 2>&1 | sed 's/about [0-9.e+-]* [a-z]*/about TIME/'
train bars -o teacher --force-cpu --sheet sofar.png 2>log | sed 's/[0-9]*\.[0-9]*/N/g; s/loss [0-9][0-9.]*/loss N/'
sed 's/[0-9]*\.[0-9]*/N/g; s/loss [0-9][0-9.]*/loss N/; s/about .*/about TIME/' log | sort -u
train bars -o one -q --force-cpu --threads 1 >/dev/null
train bars -o two -q --force-cpu --threads 2 >/dev/null
cmp one two
cmp one teacher
ls ./*.checkpoint 2>/dev/null
for sampler in heun ancestral fastdpm; do
    n2ce sample teacher -n 5 -o $sampler.npy --sampler $sampler --steps 3 --device cpu
done
n2ce sample teacher -n 3 -o first.npy --sampler heun --steps 3 --device cpu -q
tail -c 320 heun.npy | head -c 192 >a
tail -c 192 first.npy | cmp - a
for method in sid sida dxmi; do
    distill teacher bars -o $method --method $method --force-cpu 2>/dev/null | sed 's/-*[0-9]\.*[0-9.e-]*\([,;]\)/N\1/g; s/samples .*/samples N/; s/N2CE, M = N/N2CE, M/'
done
distill teacher bars -o again --method sid2a --generator sid --force-cpu --loss published --report page -q 2>/dev/null | wc -l
grep -c 'data:image/png' page/distill.html
for model in teacher sida dxmi; do n2ce info $model | tail -n +2; done
rm teacher
n2ce sample sida -n 4 -o s.png --device cpu
n2ce sample dxmi -n 4 -o d.png --device cpu
mv one teacher
say() {
    "$@" >/dev/null 2>error && status=0 || status=$?
    tail -1 error | cut -c 1-150
    echo "exit $status"
}
say train few -o x
say train odd -o x
say train bars -o x --labels
say train bars -o x --prior none
say n2ce train bars -o x --seen 10
say train bars -o x --net cifar --force-cpu
say distill teacher other -o x
say distill sida bars -o x --force-cpu
say distill bars bars -o x
say distill teacher bars -o x --generator sid
say distill teacher bars -o x --method sid2a
say distill teacher bars -o x --method sid2a --generator teacher
say n2ce distill teacher bars -o x --watched 9 --seen 24 --force-cpu
say distill teacher bars
say n2ce sample sida -o x.png --steps 5
say n2ce sample teacher -o x.png --steps 1
say n2ce sample teacher -o x.png --label 3
say n2ce sample teacher -o x.png --reconstruct bars
say n2ce sample teacher -o x.png --chains plain
n2ce train bars -o codes --width 4 --codes 4 --batch 16 --noise 2 --phases 1,1,1 --device cpu -q >/dev/null
for option in sampler=heun churn=1 second=0.6 guidance=2 label=3; do say n2ce sample codes -o x.png --$option; done
ls x* 2>/dev/null
# stopped at any moment, and gone on with
timeout -s TERM 0.7 n2ce train --model diffusion bars -o three -q --force-cpu $tiny --seen 1000 >/dev/null 2>&1
[ -f three ] || train bars -o three -q --force-cpu --seen 1000 --resume >/dev/null
train bars -o four -q --force-cpu --seen 1000 >/dev/null
cmp three four
