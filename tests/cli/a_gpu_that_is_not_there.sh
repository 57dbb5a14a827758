# Without a GPU, or in a build without CUDA, a verb that is asked for one says so and exits with 4;
# "auto" works without it and names what it used; optimize says why, and goes on where it began.
export CUDA_VISIBLE_DEVICES=
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
small='--steps 20 --width 8 --folds 2'
# shellcheck disable=SC2086
n2ce fit -n a.csv -d b.csv -o model $small --quiet >/dev/null
asked() {
    n2ce "$@" --device cuda >said 2>why
    echo "$1: exit $?, $(wc -c <said | tr -d ' ') bytes, $(grep -c -e '^n2ce: .*--device cpu' why) sentence"
}
asked fit -n a.csv -d b.csv -o other $small
asked divergence -n a.csv -d b.csv $small
asked mi --x 0 --y 1 a.csv $small
asked test -n a.csv -d b.csv $small
asked score model a.csv
asked optimize a.csv --maximize 1
asked study bbo --tasks branin --methods n2ce
asked study ratio --tasks sanity-2d --n 100
asked bench step --seconds 0.01
asked bench svgd --iterations 1
[ ! -e other ] || echo "a model was written"
for device in auto cpu; do
    # shellcheck disable=SC2086
    n2ce divergence -n a.csv -d b.csv $small --device $device --json | grep -o '"device": "[a-z]*", "samples"'
    n2ce score model a.csv --device $device --json | grep -o '"device": "[a-z]*"'
done
awk -v n=120 -f "${0%/*}/designs.awk" >designs.csv
propose() { n2ce optimize designs.csv -m yield --count 4 --rounds 1 --effort 0.02 --checkpoint state -f -o "$@"; }
why() { sed -n 's/^device .*cpu (Th[^.]*\.)$/device: none but cpu/; /^device/p'; }
propose cpu.csv --device cpu | why
propose auto.csv --device auto | why
propose again.csv --device auto --resume | why
cmp cpu.csv auto.csv && cmp auto.csv again.csv
n2ce study bbo --tasks branin-50 --methods coms,random --beside none --scale 1000 --seeds 2 --device auto --json 2>why |
    sed -n '/"rows"/,/^  ],/s/.*"method": \(.*\), "max.*"device": "\([a-z]*\)".*/\1 on \2/p'
sed -n 's/(Th[^.]*\.)/(no other)/p' why
n2ce mi --x 0 --y 1 a.csv --device gpu
