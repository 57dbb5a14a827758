#!/bin/sh
# Do the intervals cover, and are the p-values uniform?
#
#   identical   two samples of one 5-D normal, 2000 rows each, 50 seeds: how often the interval of
#               n2ce divergence covers 0, and whether the p-values of n2ce test are uniform
#               (Kolmogorov-Smirnov)
#   tasks       three Gaussian tasks with known answers, 500 rows, 100 repetitions: how often the
#               interval covers the truth, and the mean error
#
#     ./run bench coverage [--json] [--seeds 50] [--repetitions 100] [n2ce's options]
#
# What is not one of these goes to n2ce, e.g. --critic quadratic. The program is $N2CE_BIN or
# build/n2ce. Needs awk and nothing else.
set -eu
cd "$(dirname "$0")/.."
program=${N2CE_BIN:-build/n2ce}
json=0 seeds=50 repetitions=100
while [ $# -gt 0 ]; do
    case $1 in
    --json) json=1 ;;
    --seeds)
        seeds=$2
        shift
        ;;
    --repetitions)
        repetitions=$2
        shift
        ;;
    *) break ;;
    esac
    shift
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

normals() { awk "$@" -f tests/cli/normals.awk; }
say() { printf '\r\033[K%s' "$*" >&2; }
[ -t 2 ] || say() { :; }

# The first estimate, lo and hi of a JSON answer.
interval() {
    tr ',{' '\n\n' | awk -F': ' '/"estimate"/ { e = $2 } /"lo"/ && lo == "" { lo = $2 }
        /"hi"/ && hi == "" { hi = $2 } END { print e, lo, hi }'
}

# ---- identical --------------------------------------------------------------------------------

i=0
while [ $i -lt "$seeds" ]; do
    say "identical: $i of $seeds"
    normals -v n=2000 -v d=5 -v seed=$((2 * i + 1)) >"$scratch/a"
    normals -v n=2000 -v d=5 -v seed=$((2 * i + 2)) >"$scratch/b"
    "$program" divergence --num "$scratch/a" --den "$scratch/b" --seed $i --json "$@" |
        interval >>"$scratch/identical"
    "$program" test --num "$scratch/a" --den "$scratch/b" --seed $i --quiet "$@" >>"$scratch/p"
    i=$((i + 1))
done

# ---- tasks ------------------------------------------------------------------------------------

# task NAME TRUTH COMMAND...: the command prints an answer's JSON; $k is the repetition.
task() {
    name=$1 truth=$2
    shift 2
    k=0
    while [ $k -lt "$repetitions" ]; do
        say "$name: $k of $repetitions"
        "$@" | interval | sed "s/^/$name $truth /" >>"$scratch/tasks"
        k=$((k + 1))
    done
}

pair() { # DIMENSION MEAN SD OPTIONS
    d=$1 mean=$2 sd=$3
    shift 3
    normals -v n=500 -v d="$d" -v seed=$((1000 + 2 * k)) -v mean="$mean" -v sd="$sd" >"$scratch/a"
    normals -v n=500 -v d="$d" -v seed=$((1001 + 2 * k)) >"$scratch/b"
    "$program" divergence --num "$scratch/a" --den "$scratch/b" --seed "$k" --json "$@"
}

joint() { # OPTIONS
    normals -v n=500 -v d=6 -v rho=0.7 -v seed=$((3000 + k)) >"$scratch/a"
    "$program" mi --x 0,2,4 --y 1,3,5 "$scratch/a" --seed "$k" --json "$@"
}

if [ "$repetitions" -gt 0 ]; then
    task shift-5d 0.625 pair 5 0.5 1 "$@" # 5 (1/2)^2 / 2
    task scale-2d 0.4390697837 pair 2 0 1.5 "$@" # 1.5^2 - 1 - ln 1.5^2
    task pairs-3x3 1.0100168400 joint "$@" # -3/2 ln(1 - 0.7^2)
fi
say ""

# ---- the table --------------------------------------------------------------------------------

touch "$scratch/identical" "$scratch/p" "$scratch/tasks"
sort -g "$scratch/p" >"$scratch/p-sorted"
awk -v json="$json" '
function kolmogorov(n, d,    l, j, q) { # Stephens: good for n > 4
    l = (sqrt(n) + 0.12 + 0.11 / sqrt(n)) * d
    if (l < 0.2) return 1
    for (j = 1; j <= 100; j++) q += (j % 2 ? 2 : -2) * exp(-2 * j * j * l * l)
    return q > 1 ? 1 : q
}
FILENAME ~ /identical$/ { seeds++; covered += $2 <= 0 && $3 >= 0; sum += $1 }
FILENAME ~ /p-sorted$/ {
    p[++n] = $1
    below += $1 <= 0.05
}
FILENAME ~ /tasks$/ {
    if (!($1 in count)) order[++tasks] = $1
    truth[$1] = $2
    count[$1]++
    hits[$1] += $4 <= $2 && $5 >= $2
    off[$1] += $3 - $2
    square[$1] += ($3 - $2) ^ 2
}
END {
    for (i = 1; i <= n; i++) {
        if (i / n - p[i] > d) d = i / n - p[i]
        if (p[i] - (i - 1) / n > d) d = p[i] - (i - 1) / n
    }
    ks = n ? kolmogorov(n, d) : 1
    if (json) {
        printf "{\"identical\": {\"seeds\": %d, \"covered\": %d, \"mean\": %.6g, \"ks_p\": %.4g, \"p_below_0.05\": %d}, \"tasks\": [", seeds, covered, (seeds ? sum / seeds : 0), ks, below
        for (i = 1; i <= tasks; i++) {
            t = order[i]
            printf "%s{\"name\": \"%s\", \"truth\": %s, \"repetitions\": %d, \"covered\": %d, \"mean_error\": %.6g, \"rmse\": %.6g}", (i > 1 ? ", " : ""), t, truth[t], count[t], hits[t], off[t] / count[t], sqrt(square[t] / count[t])
        }
        print "]}"
        exit
    }
    printf "one 5-D normal twice, 2000 rows, %d seeds\n", seeds
    printf "  95 %% interval of KL covers 0     %d of %d   (mean estimate %.5f)\n", covered, seeds, (seeds ? sum / seeds : 0)
    printf "  p-values of the test uniform     KS p = %.3f   (%d of %d are at most 0.05)\n", ks, below, n
    for (i = 1; i <= tasks; i++) {
        t = order[i]
        printf "%-12s truth %.4f nats   95 %% interval covers it %d of %d   mean error %+.4f, rmse %.4f\n", t, truth[t], hits[t], count[t], off[t] / count[t], sqrt(square[t] / count[t])
    }
}' "$scratch/identical" "$scratch/p-sorted" "$scratch/tasks"
