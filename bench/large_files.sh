#!/bin/bash
# Reading files larger than memory: wc -l, n2ce fit and n2ce score of the same CSV by several ranks, in turn.
#
#   bash bench/large_files.sh PROGRAM [GB [RANKS [ROUNDS [FOLDER]]]]
#
# In FOLDER (default: a new one in $TMPDIR), which needs 1.3 times GB, a file of ten columns of six digits is made and
# removed. "cold": the file is put out of memory before each run, and all processes of the run together have 1 GiB,
# what they keep of files included (a control group, which takes a superuser; else 256 MiB of address space a rank).
# "warm": without limits, read before. A line a run: what, seconds, seconds of processors, MB a second, and the speed as
# a share of that of wc -l of the same round.
set -eu
program=$(realpath "$1") gb=${2:-5} ranks=${3:-4} rounds=${4:-3} made=
folder=${5:-$(mktemp -d "${TMPDIR:-/tmp}/large_files.XXXXXX")}
[ $# -ge 5 ] || made=1
cd "$folder"
groups=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
group=
clean() {
    cd /
    [ -z "$group" ] || rmdir "$group" 2>/dev/null || true
    rm -f "$folder"/{large.csv,small.csv,other.csv,large.model,large.out,fitted,scores.txt}
    [ -z "$made" ] || rm -rf "$folder"
}
trap clean EXIT

if mkdir "$groups/n2ce" 2>/dev/null && echo 1073741824 >"$groups/n2ce/memory.limit_in_bytes" 2>/dev/null; then
    group=$groups/n2ce
else
    echo "no control group of one's own: 256 MiB of address space a rank instead"
fi

rows() { # n seed
    awk -v n="$1" -v seed="$2" 'BEGIN {
        srand(seed); OFS = ","
        for (i = 0; i < n; i++) {
            for (k = 0; k < 10; k++) {
                x = sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand())
                printf "%.6f%s", x, k < 9 ? "," : "\n"
            }
        }
    }'
}
rows 300000 1 >small.csv
rows 20000 2 | sed 's/^0/1/; s/^-/-1/' >other.csv
size=$(stat -c %s small.csv)
times=$(awk -v gb="$gb" -v size="$size" 'BEGIN { printf "%d", gb * 1e9 / size }')
for ((i = 0; i < times; i++)); do cat small.csv; done >large.csv
bytes=$(stat -c %s large.csv)
echo "$bytes bytes, $(nproc) processors, $ranks ranks of one thread"

limited() { # command...
    if [ -n "$group" ]; then
        bash -c 'echo $$ >"$0"/cgroup.procs && exec "$@"' "$group" "$@"
    else
        (ulimit -v 262144 && exec "$@")
    fi
}
wc_speed=
timed() { # name state command...
    local name=$1 state=$2 how=
    shift 2
    if [ "$state" = cold ]; then
        dd if=large.csv iflag=nocache count=0 2>/dev/null
        how=limited
    fi
    local TIMEFORMAT='%R %U %S'
    { time $how "$@" >/dev/null; } 2>large.out || { cat large.out && exit 1; }
    local seconds user system
    read -r seconds user system <<<"$(tail -n 1 large.out)"
    local speed
    speed=$(awk -v b="$bytes" -v s="$seconds" 'BEGIN { printf "%.0f", b / s / 1e6 }')
    [ "$name" != "wc" ] || wc_speed=$speed
    awk -v n="$name" -v st="$state" -v s="$seconds" -v u="$user" -v y="$system" -v v="$speed" -v w="$wc_speed" \
        'BEGIN { printf "%-6s %-5s %7.2f s %7.2f s of processors %6d MB/s  %.2f\n", n, st, s, u + y, v, v / w }'
}

"$program" fit -n small.csv -d other.csv --critic quadratic --max-rows 20000 -o large.model --force >/dev/null 2>&1
model=large.model
for ((round = 1; round <= rounds; round++)); do
    for state in cold warm; do
        [ $state = cold ] || cat large.csv >/dev/null
        timed wc $state wc -l large.csv
        timed fit $state "$program" fit -n large.csv -d small.csv --critic quadratic --max-rows 20000 -o fitted \
            --force --ranks "$ranks" --threads 1
        timed score $state "$program" score $model large.csv -o scores.txt --force --ranks "$ranks" --threads 1
        rm -f fitted scores.txt
    done
done
