#!/bin/bash
# Diffusion models on a GPU: a teacher of CIFAR-10 at 16 x 16, its students, and speed beside PyTorch. Never stops
# at a failure; every section ends with its status, and a table of all of them comes last.
#
#   bash bench/device_diffusion.sh [PART...]     from the repository's root; without parts, speed and teacher
#
#   smoke     every training for a few seconds: what fails, fails at once            1 minute
#   speed     an iteration of SiDA and a step of the teacher beside PyTorch          3 minutes
#   teacher   the teacher, and 50,000 samples of it beside the pictures              5 minutes
#   trial     SiDA with N2CE and DxMI, a minute each, at the rates of RATES          3 minutes
#   study     study distill: arms of STUDENTS with SEEDS seeds, for LIMIT seconds; goes on from $OUT's answer
#
# PICTURES is what bench/pack_pictures.py packed; FEATURES a feature network; TEACHER the teacher's file, which `teacher`
# writes and the others read; N2CE, if set, a program that is built already. Results: $OUT/*.json, samples as $OUT/*.npy, the page in $OUT/study.
cd "$(dirname "$0")/.." || exit 1
. bench/device_sections.sh
N=${N2CE:-$BUILD/n2ce}
PARTS=${*:-speed teacher}
PICTURES=${PICTURES:-carry/c16.bin}
FEATURES=${FEATURES:-carry/cifar10_resnet20.f32}
TEACHER=${TEACHER:-carry/c16.teacher}
STUDENTS=${STUDENTS:-teacher,start,sida,sida-m1,sida-control,sida-m50,dxmi,dxmi-m1,dxmi-control,dxmi-m100,sid,sida-m10,sida-m100}
WITH=(--device cuda --precision bf16)
wanted() { [[ " $PARTS " == *" $1 "* ]]; }

section unpack 120 python3 bench/pack_pictures.py unpack "$PICTURES" train.npy test.npy &
unpacking=$!
if [ -z "${N2CE:-}" ]; then
    section configure 60 cmake -G Ninja -S . -B "$BUILD" -DN2CE_CUDA=on -DN2CE_TESTS=OFF -DN2CE_CUDA_ARCHS=90a -DN2CE_WERROR=OFF
    section build 200 bash -c "quiet ninja -C $BUILD n2ce"
fi
wait $unpacking # alone: a bare wait waits for the log as well

if wanted smoke; then
    section 'smoke: teacher' 40 "$N" train --model diffusion train.npy -o smoke.teacher --force --seen 3e5 --looks 2 --watched 500 --features "$FEATURES" "${WITH[@]}"
    [ -f smoke.teacher ] || { summary; exit 1; }
    for method in sid sida dxmi; do
        section "smoke: $method" 40 "$N" distill smoke.teacher train.npy --method $method -o smoke.$method --force --seen 2e4 --looks 2 --watched 500 --features "$FEATURES" "${WITH[@]}"
    done
fi

if wanted speed; then
    section 'where the time goes' 60 bash -c "$N bench distill --batch 512 ${WITH[*]} --seconds 1 --plan >$OUT/plan-distill.txt 2>&1
        grep -vE '  stage |^      [a-z]' $OUT/plan-distill.txt | cut -c1-140 | head -40"
    section 'beside PyTorch' 240 bash -c "python3 bench/images.py --program $N --device cuda --only distill,unet16 --rounds 2 --seconds 1 --json >$OUT/speed.json
        cat $OUT/speed.json"
fi

if wanted teacher; then
    section teacher 480 bash -c "$N train --model diffusion train.npy -o $TEACHER --seen ${SEEN:-16e6} --time-limit ${LIMIT:-420} \
        --looks 12 --watched 5000 --features $FEATURES ${WITH[*]} --json >$OUT/teacher.json"
    section samples 90 "$N" sample "$TEACHER" -n 50000 -o samples.npy --seed 7 "${WITH[@]}"
    section distance 60 bash -c "$N compare train.npy samples.npy --features $FEATURES --device cuda --json | tee $OUT/distance.json"
    section floor 60 bash -c "$N compare train.npy test.npy --features $FEATURES --device cuda --json | tee $OUT/floor.json"
    section 'ten steps' 60 bash -c "$N sample $TEACHER -n 50000 -o ten.npy --sampler ancestral --steps 10 --seed 7 ${WITH[*]} &&
        $N compare train.npy ten.npy --features $FEATURES --device cuda --json | tee $OUT/ten.json"
    section 'a sheet' 20 "$N" sample "$TEACHER" -n 64 -o "$OUT/teacher64.npy" --seed 7 "${WITH[@]}"
    cp "$TEACHER" "$OUT/"
fi

# trial NAME OPTIONS...: a student, its curve, 64 samples.
trial() {
    local name=$1
    shift
    section "$name" 120 bash -c "$N distill $TEACHER train.npy -o $name.model $* --time-limit 60 --looks 10 --watched 5000 --features $FEATURES ${WITH[*]} --json >$OUT/$name.json"
    section "$name, a sheet" 20 "$N" sample "$name.model" -n 64 -o "$OUT/$name.npy" "${WITH[@]}"
}
if wanted trial; then
    for rate in ${RATES:-1e-4 3e-4}; do trial "sida-$rate" --method sida -M 50 --lambda 0.5 --rate "$rate" --seen "${SEEN:-1e6}"; done
    trial dxmi --method dxmi --seen 2e5
fi

if wanted study; then
    REUSE=
    [ -f "${KEPT:-carry/distill-study.json}" ] && REUSE="--reuse ${KEPT:-carry/distill-study.json}"
    section study "$((${LIMIT:-480} + 90))" "$N" study distill --images train.npy --test test.npy --halve 0 --teacher "$TEACHER" \
        --students "$STUDENTS" --seeds "${SEEDS:-2}" --effort "${EFFORT:-1}" --features "$FEATURES" --watched 5000 --looks 10 \
        --time-limit "${LIMIT:-480}" $REUSE "${WITH[@]}" --report "$OUT/study" --force
fi

summary
exit 0
