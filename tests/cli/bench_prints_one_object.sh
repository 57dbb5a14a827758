# The benchmark's JSON holds what ./run bench step reads, and any magnitude runs.
for m in 1 3; do
    n2ce bench step --M $m --seconds 0.01 --json >said || exit 1
    for key in ms gflops peak_mb steps seconds compile_ms first_ms value; do
        grep -q "\"$key\": [0-9.e+-]" said || echo "$key is missing: $(cat said)"
    done
done
n2ce bench svgd --particles 20 --iterations 2 --json | grep -c '"seconds"'
