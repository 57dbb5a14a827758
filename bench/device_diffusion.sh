#!/bin/bash
# Diffusion models on a GPU: a teacher of CIFAR-10 at 16 x 16, its students, and speed beside PyTorch. Never stops
# at a failure; every section ends with its status, and a table of those that others waited for comes last.
#
#   bash bench/device_diffusion.sh [PART...]     from the repository's root; without parts, all but smoke
#
#   smoke     every training for a few seconds: what fails, fails at once            1 minute
#   speed     an iteration of SiDA and a step of the teacher beside PyTorch, at the end; it compiles beside the others
#   teacher   the teacher, for LIMIT seconds                                         LIMIT + 10 seconds
#   samplers  50,000 samples of it by Heun's 18 steps beside the pictures, with every --second:--guidance of JUDGED, and
#             with that of TRY that suits it best, chosen by samples of another seed 2 minutes
#   student   SiDA with N2CE from it for STUDENT_LIMIT seconds, 50,000 samples       STUDENT_LIMIT + 30 seconds
#   study     study distill: arms of one step and of ten side by side, SEEDS seeds, for STUDY_LIMIT seconds, or until END
#             seconds after the start; goes on from the answers in KEPT              STUDY_LIMIT + 30 seconds
#
# PICTURES is what bench/pack_pictures.py packed; FEATURES the network to judge by, OTHER_FEATURES more of them, WATCHED_BY
# that of curves and the study, RATES more options of it; TEACHER the teacher's file, which `teacher` writes and the others read; TEACH its options, WIDTH that of its network, SEEN
# the pictures it learns from in all: the rate falls towards the end of these, so they must fit into LIMIT (without SEEN: as
# many as fit, by the speed of a step). STUDENT and STUDENT_SEEN likewise. N2CE, if set, is a program that is built already.
# ON='--device cpu' tries the script on a processor.
# Results: $OUT/*.json, distances in $OUT/distances.jsonl, sheets as $OUT/*.png, pages in $OUT/sida and $OUT/dxmi.
cd "$(dirname "$0")/.." || exit 1
. bench/device_sections.sh
N=${N2CE:-$BUILD/n2ce}
PARTS=${*:-speed teacher samplers student study}
PICTURES=${PICTURES:-carry/c16.bin}
WATCHED_BY=${WATCHED_BY:-carry/cifar10_resnet20.f32}
FEATURES=${FEATURES:-carry/squeezenet_v1.1_ncnn_fp16.bin}
OTHER_FEATURES=${OTHER_FEATURES:-$WATCHED_BY carry/cifar10_resnet56.f32}
TEACHER=${TEACHER:-carry/c16.teacher}
WIDTH=${WIDTH:-128}
TEACH="${TEACH:---labels} --width $WIDTH"
STUDENT=${STUDENT:---method sida -M 50 --lambda 0.5 --decay 0.5}
LIMIT=${LIMIT:-400}
STUDENT_LIMIT=${STUDENT_LIMIT:-340}
SAMPLES=${SAMPLES:-50000}
TRIED=${TRIED:-10000}
TRY=${TRY-1:1 0.75:1 0.6:1 1:1.15 0.75:1.15 0.6:1.15 0.6:1.3}
ON=${ON:---device cuda}
WITH=($ON --precision bf16)
TRAIN=("${WITH[@]}")
[[ $ON == *cpu* ]] && TRAIN+=(--force-cpu)
WATCHED=(--watched "${WATCH:-5000}" --features "$WATCHED_BY")
LEARNT=(train.bin --halve 1) # with classes; train.npy has the same pictures
wanted() { [[ " $PARTS " == *" $1 "* ]]; }

unpacking=
if [ ! -f train.bin ]; then
    section unpack 120 python3 bench/pack_pictures.py unpack "$PICTURES" train.npy test.npy train.bin test.bin &
    unpacking=$!
fi
if [ -z "${N2CE:-}" ]; then
    section configure 60 cmake -G Ninja -S . -B "$BUILD" -DN2CE_CUDA=on -DN2CE_TESTS=OFF -DN2CE_CUDA_ARCHS=90a -DN2CE_WERROR=OFF
    section build 200 bash -c "quiet ninja -C $BUILD n2ce"
fi

# PyTorch compiles beside all that follows, and is measured at the end.
speed=
peers() {
    wanted speed || return
    rm -f rest-is-done
    nice -n 19 timeout 900 python3 bench/images.py --program "$N" --device cuda --only "${ONLY:-distill,unet16}" --modes "${MODES:-compile,graph}" \
        --rounds "${ROUNDS:-2}" --seconds 1 --ready "${READY:-300}" --after rest-is-done --json >"$OUT/speed.json" &
    speed=$!
}
wanted teacher || peers
[ -n "$unpacking" ] && wait $unpacking # alone: a bare wait waits for the log as well

# What runs beside what follows; finish waits for all of it.
LATER=()
finish() { [ ${#LATER[@]} -gt 0 ] && wait "${LATER[@]}"; LATER=(); }

# compared MADE: distances of made pictures from those learnt from, by each feature network that is there.
compared() {
    local features
    for features in "$FEATURES" $OTHER_FEATURES; do
        [ -f "$features" ] || continue
        section "$1, $(basename "$features")" 100 bash -c "$N compare train.npy $1 --features $features $ON --json | tee -a $OUT/distances.jsonl"
    done
}

# judged NAME MODEL OPTIONS...: samples, their distances, and a sheet of the first.
judged() {
    local name=$1 model=$2
    shift 2
    section "$name, samples" 90 "$N" sample "$model" -n "$SAMPLES" -o "$name.npy" --force --seed 7 "$@" "${WITH[@]}"
    compared "$name.npy" & LATER+=($!)
    section "$name, a sheet" 40 "$N" sample "$model" -n 100 -o "$OUT/$name.png" --force --seed 7 "$@" "${WITH[@]}" & LATER+=($!)
}

# guidance SECOND:GUIDANCE: its option, unless it is 1.
guidance() { [ "${1#*:}" != 1 ] && echo "--guidance ${1#*:}"; }

# tried MODEL SECOND:GUIDANCE: the distance of few samples, with a seed that nothing else has, from as many pictures.
tried() {
    local with=(--second "${2%:*}" $(guidance "$2")) distance=
    timeout 60 "$N" sample "$1" -n "$TRIED" -o "tried-$2.npy" --force --seed 8 "${with[@]}" "${WITH[@]}" --quiet >/dev/null &&
        distance=$(timeout 60 "$N" compare few.npy "tried-$2.npy" --features "$FEATURES" $ON --quiet | head -n 1)
    [ -n "$distance" ] && echo "$distance ${with[*]}"
}

# nearest MODEL: those values of SECOND:GUIDANCE by which such samples are nearest.
nearest() {
    local pair
    for pair in $TRY; do tried "$1" "$pair"; done |
        sort -g | tee "$OUT/tried" | head -n 1 | cut -d ' ' -f 2-
}

# fitting SECONDS WORK: pictures that a training sees in that time, by the speed of its step, a tenth less for what else it does.
fitting() {
    "$N" bench "$2" --size 16 --width "$WIDTH" --batch 512 --seconds 1 "${WITH[@]}" --json |
        python3 -c 'import json, sys; print(round(0.9 * float(sys.argv[1]) * json.load(sys.stdin)["images_per_s"]))' "$1"
}

if wanted smoke; then
    section 'smoke: teacher' 40 "$N" train --model diffusion train.npy -o smoke.teacher --force --seen 3e5 --looks 2 "${WATCHED[@]}" "${TRAIN[@]}"
    [ -f smoke.teacher ] || { summary; exit 1; }
    for method in sid sida dxmi; do
        section "smoke: $method" 40 "$N" distill smoke.teacher train.npy --method $method -o smoke.$method --force --seen 2e4 --looks 2 "${WATCHED[@]}" "${TRAIN[@]}"
    done
fi

if wanted teacher; then
    SEEN=${SEEN:-$(fitting $((LIMIT - 25)) unet)}
    SEEN=${SEEN:-1e7}
    echo "the teacher sees $SEEN pictures, from $((SECONDS - START)) s on"
    peers # not beside that measurement
    section teacher $((LIMIT + 30)) bash -c "$N train --model diffusion ${LEARNT[*]} $TEACH -o $TEACHER --force --seen $SEEN --time-limit $LIMIT \
        --looks ${LOOKS:-8} ${WATCHED[*]} ${TRAIN[*]} --json >$OUT/teacher.json"
fi

samplers() {
    local pair how
    LATER=()
    for pair in ${JUDGED:-1:1}; do judged "heun-${pair/:/-}" "$TEACHER" --second "${pair%:*}" $(guidance "$pair"); done
    if [ -n "$TRY" ]; then
        python3 -c 'import sys; sys.path.insert(0, "bench"); import pack_pictures as p
p.write("few.npy", open("train.npy", "rb").read()[128:][:int(sys.argv[1]) * p.SIZE])' "$TRIED"
        how=$(nearest "$TEACHER")
        cat "$OUT/tried"
        echo "nearest by $how, after $((SECONDS - START)) s"
        judged nearest "$TEACHER" $how
    fi
    [ -s test.bin ] && compared test.npy
    finish
}
if wanted student; then # alone: its time is what is asked for
    STUDENT_SEEN=${STUDENT_SEEN:-$(fitting $((STUDENT_LIMIT - 20)) distill)}
    STUDENT_SEEN=${STUDENT_SEEN:-2e6}
    echo "the student sees $STUDENT_SEEN pictures, from $((SECONDS - START)) s on"
    section student $((STUDENT_LIMIT + 30)) bash -c "$N distill $TEACHER ${LEARNT[*]} -o student.model --force $STUDENT --seen $STUDENT_SEEN \
        --time-limit $STUDENT_LIMIT --looks 10 ${WATCHED[*]} ${TRAIN[*]} --json >$OUT/student.json"
fi
if wanted samplers; then # what follows is beside their judging
    samplers & LATER+=($!)
fi
wanted student && judged student student.model

# arms NAME STUDENTS EFFORT: a study of these, beside another one: each leaves gaps on the GPU that the other fills.
arms() {
    local reuse= beside=
    [ -n "$2" ] || return
    [ -f "${KEPT:-carry}/$1/distill-study.json" ] && reuse="--reuse ${KEPT:-carry}/$1/distill-study.json"
    [ -s test.bin ] && beside="--test test.bin" # without: halves
    section "study $1" "$((STUDY_LIMIT + 60))" "$N" study distill --images train.bin $beside --halve 1 --teacher "$TEACHER" \
        --students "$2" --seeds "${SEEDS:-2}" --effort "$3" --number "${STUDY_SAMPLES:-$SAMPLES}" \
        --features "$WATCHED_BY" --watched "${STUDY_WATCH:-5000}" --looks "${STUDY_LOOKS:-8}" \
        --time-limit "$STUDY_LIMIT" $RATES $reuse "${TRAIN[@]}" --report "$OUT/$1" --force &
    LATER+=($!)
}
if wanted study; then
    [ -n "${END:-}" ] && STUDY_LIMIT=$((END - SECONDS + START))
    STUDY_LIMIT=${STUDY_LIMIT:-480}
    arms sida "${ONE_STEP-teacher,sida-m1,sida-control,sida-m50,sida,sid,sida-m10,sida-m100}" "${EFFORT:-1}"
    arms dxmi "${TEN_STEPS-start,dxmi,dxmi-m1,dxmi-control,dxmi-m100}" "${DXMI_EFFORT:-${EFFORT:-1}}"
fi

finish
if [ -n "$speed" ]; then
    touch rest-is-done
    section 'beside PyTorch' 90 tail --pid=$speed -f /dev/null
    cat "$OUT/speed.json"
fi
summary
exit 0
