#!/bin/bash
# Diffusion models on a GPU: a teacher of CIFAR-10 at 16 x 16, its students, and speed beside PyTorch. Never stops
# at a failure; every section ends with its status, and a table of all of them comes last.
#
#   bash bench/device_diffusion.sh [PART...]     from the repository's root; without parts, teacher, samplers, student and speed
#
#   warm      PyTorch's compiler at work beside the other parts; what it makes is kept for a later `speed`
#   smoke     every training for a few seconds: what fails, fails at once            1 minute
#   teacher   the teacher, and 50,000 samples by Heun's 18 steps beside the pictures LIMIT + 60 seconds
#   samplers  the same by those values of SECOND and GUIDANCE that suit it best      2 minutes
#   student   SiDA with N2CE from it, and 50,000 samples                             STUDENT_LIMIT + 30 seconds
#   speed     an iteration of SiDA and a step of the teacher beside PyTorch, last    150 seconds
#   trial     SiDA with N2CE and DxMI, a minute each, at the rates of RATES          3 minutes
#   study     study distill: arms of STUDENTS with SEEDS seeds, for LIMIT seconds; goes on from $OUT's answer
#
# PICTURES is what bench/pack_pictures.py packed; FEATURES a feature network, OTHER_FEATURES a second one to judge by; TEACHER the
# teacher's file, which `teacher` writes and the others read; TEACH its options, SEEN the pictures it learns from in all: the rate falls
# towards the end of these, so they must fit into LIMIT. STUDENT and STUDENT_SEEN likewise. N2CE, if set, is a program that is built
# already. Results: $OUT/*.json, distances in $OUT/distances.jsonl, samples as $OUT/*.npy, the page in $OUT/study.
cd "$(dirname "$0")/.." || exit 1
. bench/device_sections.sh
N=${N2CE:-$BUILD/n2ce}
PARTS=${*:-teacher samplers student speed}
PICTURES=${PICTURES:-carry/c16.bin}
FEATURES=${FEATURES:-carry/cifar10_resnet20.f32}
OTHER_FEATURES=${OTHER_FEATURES:-carry/cifar10_resnet56.f32}
TEACHER=${TEACHER:-carry/c16.teacher}
TEACH=${TEACH:---labels --width 128}
STUDENT=${STUDENT:---method sida -M 50 --lambda 0.5 --decay 0.5}
STUDENTS=${STUDENTS:-teacher,start,sida,sida-m1,sida-control,sida-m50,dxmi,dxmi-m1,dxmi-control,dxmi-m100,sid,sida-m10,sida-m100}
WITH=(--device cuda --precision bf16)
WATCHED=(--watched 5000 --features "$FEATURES")
LEARNT=(train.bin --halve 1) # with classes; train.npy has the same pictures
wanted() { [[ " $PARTS " == *" $1 "* ]]; }

if wanted warm; then
    for work in 'distill --batch 512' 'unet --batch 1024'; do
        nice timeout 170 python3 bench/peers/torch_images.py $work --size 16 --mode compile --device cuda --precision bf16 --seconds 0.1
    done >warming 2>&1 &
fi

unpacking=
if [ ! -f train.bin ]; then
    section unpack 120 python3 bench/pack_pictures.py unpack "$PICTURES" train.npy test.npy train.bin test.bin &
    unpacking=$!
fi
if [ -z "${N2CE:-}" ]; then
    section configure 60 cmake -G Ninja -S . -B "$BUILD" -DN2CE_CUDA=on -DN2CE_TESTS=OFF -DN2CE_CUDA_ARCHS=90a -DN2CE_WERROR=OFF
    section build 200 bash -c "quiet ninja -C $BUILD n2ce"
fi
[ -n "$unpacking" ] && wait $unpacking # alone: a bare wait waits for the log as well

# compared MADE: distances of made pictures from those learnt from, by each feature network that is there.
compared() {
    local features
    for features in "$FEATURES" "$OTHER_FEATURES"; do
        [ -f "$features" ] || continue
        section "$1, $(basename "$features")" 60 bash -c "$N compare train.npy $1 --features $features --device cuda --json | tee -a $OUT/distances.jsonl"
    done
}

# judged NAME MODEL OPTIONS...: 50,000 samples and their distances.
judged() {
    local name=$1 model=$2
    shift 2
    section "$name, samples" 90 "$N" sample "$model" -n 50000 -o "$name.npy" --force --seed 7 "$@" "${WITH[@]}"
    compared "$name.npy"
}

# nearest MODEL OPTION VALUE... -- OTHERS...: that value by which 10,000 samples, with a seed that nothing else has, are
# nearest to the pictures.
nearest() {
    local model=$1 option=$2 value distance all= values=()
    shift 2
    while [ "$1" != -- ]; do values+=("$1"); shift; done
    shift
    for value in "${values[@]}"; do
        distance=
        timeout 40 "$N" sample "$model" -n 10000 -o tried.npy --force --seed 8 "$option" "$value" "$@" "${WITH[@]}" >&2 &&
            distance=$(timeout 30 "$N" compare train.npy tried.npy --features "$FEATURES" --device cuda --quiet | head -n 1)
        echo "$option $value $*: ${distance:-nothing}" >&2
        [ -n "$distance" ] && all+="$distance $value"$'\n'
    done
    value=$(printf %s "$all" | sort -g | head -n 1 | cut -d ' ' -f 2)
    echo "${value:-${values[0]}}"
}

if wanted smoke; then
    section 'smoke: teacher' 40 "$N" train --model diffusion train.npy -o smoke.teacher --force --seen 3e5 --looks 2 --watched 500 --features "$FEATURES" "${WITH[@]}"
    [ -f smoke.teacher ] || { summary; exit 1; }
    for method in sid sida dxmi; do
        section "smoke: $method" 40 "$N" distill smoke.teacher train.npy --method $method -o smoke.$method --force --seen 2e4 --looks 2 --watched 500 --features "$FEATURES" "${WITH[@]}"
    done
fi

if wanted teacher; then
    section teacher "$((${LIMIT:-400} + 60))" bash -c "$N train --model diffusion ${LEARNT[*]} $TEACH -o $TEACHER --force --seen ${SEEN:-8e6} --time-limit ${LIMIT:-400} \
        --looks 4 ${WATCHED[*]} ${WITH[*]} --json >$OUT/teacher.json"
    judged heun "$TEACHER"
    compared test.npy
    section 'a sheet' 20 "$N" sample "$TEACHER" -n 64 -o "$OUT/teacher.npy" --force --seed 7 "${WITH[@]}"
fi

if wanted samplers; then
    second=$(nearest "$TEACHER" --second ${SECOND:-1 0.8 0.6} --)
    guided=()
    [[ $TEACH == *--labels* ]] && guided=(--guidance "$(nearest "$TEACHER" --guidance ${GUIDANCE:-1 1.15 1.3} -- --second "$second")")
    judged nearest "$TEACHER" --second "$second" "${guided[@]}"
fi

if wanted student; then
    section student "$((${STUDENT_LIMIT:-240} + 60))" bash -c "$N distill $TEACHER ${LEARNT[*]} -o student.model --force $STUDENT --seen ${STUDENT_SEEN:-1.1e6} \
        --time-limit ${STUDENT_LIMIT:-240} --looks 8 ${WATCHED[*]} ${WITH[*]} --json >$OUT/student.json"
    judged one student.model
    section 'a sheet' 20 "$N" sample student.model -n 64 -o "$OUT/student.npy" --force --seed 7 "${WITH[@]}"
fi

# trial NAME OPTIONS...: a student, its curve, 64 samples.
trial() {
    local name=$1
    shift
    section "$name" 120 bash -c "$N distill $TEACHER ${LEARNT[*]} -o $name.model $* --time-limit 60 --looks 10 ${WATCHED[*]} ${WITH[*]} --json >$OUT/$name.json"
    section "$name, a sheet" 20 "$N" sample "$name.model" -n 64 -o "$OUT/$name.npy" "${WITH[@]}"
}
if wanted trial; then
    for rate in ${RATES:-1e-4 3e-4}; do trial "sida-$rate" --method sida -M 50 --lambda 0.5 --rate "$rate" --seen "${STUDENT_SEEN:-1e6}"; done
    trial dxmi --method dxmi --seen 2e5
fi

if wanted study; then
    REUSE=
    [ -f "${KEPT:-carry/distill-study.json}" ] && REUSE="--reuse ${KEPT:-carry/distill-study.json}"
    section study "$((${LIMIT:-480} + 90))" "$N" study distill --images train.bin --test test.bin --halve 1 --teacher "$TEACHER" \
        --students "$STUDENTS" --seeds "${SEEDS:-2}" --effort "${EFFORT:-1}" "${WATCHED[@]}" --looks 10 \
        --time-limit "${LIMIT:-480}" $REUSE "${WITH[@]}" --report "$OUT/study" --force
fi

if wanted speed; then
    section 'beside PyTorch' 140 bash -c "python3 bench/images.py --program $N --device cuda --only distill,unet16 --rounds 2 --seconds 1 --ready 95 --json >$OUT/speed.json
        cat $OUT/speed.json"
    section 'where the time goes' 15 bash -c "$N bench distill --batch 512 ${WITH[*]} --seconds 1 --plan >plan-distill.txt 2>&1
        grep -vE '  stage |^      [a-z]' plan-distill.txt | cut -c1-140 | head -40"
fi

summary
exit 0
