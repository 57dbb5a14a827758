# Two sets of pictures as near as they are: the table, the JSON, bad input.
# idx FILE N SEED LEVELS: an IDX file of N grey pictures of 8 x 8
idx() {
    printf '\0\0\010\003\0\0\0'"\\$(printf %o "$2")"'\0\0\0\010\0\0\0\010' >"$1"
    awk -v n="$2" -v seed="$3" -v levels="$4" 'BEGIN {
        srand(seed)
        for (i = 0; i < n * 64; i++) printf "%c", 1 + int(levels * rand())
    }' >>"$1"
}
idx real 120 1 120
idx made 100 2 120
idx dark 100 3 30
idx few 9 4 120
n2ce compare real made | sed 's/[0-9.e-]*[0-9]\.[0-9.e-]*[0-9]/N/g; s/  */ /g'
n2ce compare real made -q >near
n2ce compare real dark -q >far
n2ce compare real real -q >same
paste near far same | awk '
    NR == 1 { print ($1 < $2 ? "dark is farther" : "dark is nearer"), ($3 < 1e-6 ? "0" : $3) }
    NR == 4 { print "recall of the same set:", $3 }'
n2ce compare real made --json --threads 1 >one.json
n2ce compare real made --json --threads 3 | cmp - one.json
grep -o '"[a-z_]*": ' one.json | tr -d '": ' | tr '\n' ' '
echo
say() {
    n2ce compare "$@" 2>&1 >/dev/null | cut -c 1-100
    n2ce compare "$@" >/dev/null 2>&1 || echo "exit $?"
}
say real
say real few
say real made --device cuda
say real made --device gpu
say real made --features net.pt
printf 'conv1.weight 2x3x3x3 0 54\n' >net_manifest.txt
printf '1234' >net.f32
say real made --features net.f32
