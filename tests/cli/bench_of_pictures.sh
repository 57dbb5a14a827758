# The workloads of pictures print what ./run bench images reads, of any size.
for work in 'unet --size 16 --batch 1' 'unet --size 16 --batch 1 --forward' 'lebm --size 28 --batch 2 --M 2' 'ld --batch 2 --ngf 2 --steps 3' 'damc --loop draw --batch 2 --width 4' 'damc --loop step --batch 2 --width 4'; do
    # shellcheck disable=SC2086
    n2ce bench $work --device cpu --seconds 0.01 --json >said || exit 1
    for key in ms median_ms low_ms high_ms gflops plan_mb peak_mb value parameters batch images_per_s; do
        grep -q "\"$key\": [0-9.e+-]" said || echo "$key is missing: $(cat said)"
    done
done
n2ce bench ld --batch 3 --ngf 2 --steps 2 --device cpu --seconds 0.01 --plan >said
for word in parameters images/s 'median' 'plan for cpu' conv2d_input 'threads were at work for'; do
    grep -q "$word" said || echo "no \"$word\" in the plan"
done
n2ce help bench ld | sed -n '/^Example/,/^$/p'
