#!/bin/sh
# run_kills.sh PROGRAM [KILLS [FIRST [SECONDS]]]: verbs that write are killed at moments by chance, then run again.
#
# Three of four are killed outright (SIGKILL), one is told to stop (SIGTERM). After that, every file but a checkpoint and
# what is temporary is as it was; the next run, which goes on from the checkpoint where there is one, leaves exactly what an
# undisturbed run leaves, and nothing else. Checkpoints are written twenty times a second.
# Kills are numbered from FIRST, which decides their moments, so that several programs can share them; SECONDS end it early.
# Prints, for each verb, the number of kills, how many of them met a program at work and how many went on from a
# checkpoint, and what did not hold.
set -u
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
kills=${2:-40} first=${3:-1} until=$(($(date +%s) + ${4:-1000000}))
cli=$(cd "$(dirname "$0")/../cli" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
wrong=0
export N2CE_SAVE_SECONDS=0.05

normals() { awk "$@" -f "$cli/normals.awk"; }
state() { (cd "$1" && find . -type f | sort | xargs -r cksum); }
complain() {
    wrong=$((wrong + 1))
    echo "kill $kill, $verb after $wait s: $1"
}

# The command of a verb; "again" goes on where that is possible.
verbs='fit detect optimize train diffusion distill'
tiny='--force-cpu --device cpu --watched 0 --looks 3 --batch 8 --force -q'
command_of() {
    case $1 in
    fit) echo "fit -n a.csv -d b.csv -o model --critic net --steps 200 --width 16 --folds 2 --force -q" ;;
    detect) echo "detect --normal a.csv b.csv -o flagged.csv --save odd --parts near,margins --force -q" ;;
    optimize) echo "optimize designs.csv -m y -Q 4 --effort 0.05 --rounds 2 --ambition 1 -o next.csv --force -q" ;;
    train) echo "train pictures.idx -o prior --width 4 --codes 2 --batch 8 --noise 2 --phases 60,60,30 --device cpu --force -q" ;;
    diffusion) echo "train --model diffusion pictures.idx -o made --width 4 --seen 800 $tiny" ;;
    distill) echo "distill teacher pictures.idx -o student --seen 160 $tiny" ;;
    esac
}

run() { (cd work && exec "$program" "$@" >/dev/null 2>"$scratch/said"); }

again() {
    # shellcheck disable=SC2046
    if ls work/*.checkpoint >/dev/null 2>&1; then
        echo "$1" >>resumed
        run $(command_of "$1") --resume
    else
        run $(command_of "$1")
    fi
}

mkdir start && cd start || exit 1
normals -v n=1000 -v d=4 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=1000 -v d=4 -v seed=2 -v header=1 >b.csv
awk 'BEGIN { srand(1); print "u,v,y"; for (i = 0; i < 60; i++) { u = rand(); v = rand(); print u "," v "," u - v * v } }' >designs.csv
{
    printf '\0\0\010\003\0\0\0\144\0\0\0\010\0\0\0\010'
    awk 'BEGIN { srand(3); for (i = 0; i < 6400; i++) printf "%c", 1 + 120 * rand() }'
} >pictures.idx
# shellcheck disable=SC2086
"$program" train --model diffusion pictures.idx -o teacher --width 4 --seen 80 $tiny >/dev/null || exit 1
cd ..
for verb in $verbs; do
    rm -rf work && cp -r start work
    begin=$(date +%s%N)
    # shellcheck disable=SC2046
    run $(command_of $verb) || { echo "$verb: $(cat said)" && exit 1; }
    echo $((($(date +%s%N) - begin) / 1000000)) >"$verb.ms"
    state work >"$verb.after"
done
state start >before
kill=$first
while [ "$kill" -lt $((first + kills)) ] && [ "$(date +%s)" -lt "$until" ]; do
    verb=$(awk -v n="$kill" -v verbs="$verbs" 'BEGIN { k = split(verbs, v, " "); print v[n % k + 1] }')
    signal=$([ $((kill / 6 % 4)) = 3 ] && echo TERM || echo KILL)
    wait=$(awk -v seed="$kill" -v ms="$(cat "$verb.ms")" 'BEGIN { srand(seed); print ms * rand() / 1000 }')
    rm -rf work && cp -r start work
    # shellcheck disable=SC2046
    (cd work && exec timeout -s $signal "$wait" "$program" $(command_of "$verb") >/dev/null 2>&1)
    case $? in 124 | 137) echo "$verb" >>met ;; esac
    echo "$verb" >>done
    state work >now
    while read -r line; do
        grep -qxF "$line" now || complain "changed or lost: $line"
    done <before
    again "$verb" || complain "the next run failed: $(cat said)"
    state work | cmp -s - "$verb.after" || complain "other files: $(find work -type f | tr '\n' ' ')"
    kill=$((kill + 1))
done
touch done met resumed
count() { grep -cx "$1" "$2" || true; }
for verb in $verbs; do
    echo "$verb: $(count $verb done) kills, $(count $verb met) of them at work, $(count $verb resumed) went on from a checkpoint"
done
echo "$((kill - first)) kills, $(wc -l <met) of them at work, $(wc -l <resumed) went on from a checkpoint, $wrong wrong"
[ "$wrong" = 0 ]
