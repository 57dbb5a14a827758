# Products of every shape that is small enough are timed, and right to float32's precision.
n2ce bench matmul --largest 256 --seconds 0.001 --json >said || exit 1
for key in m n k ms tflops error; do
    grep -q "\"$key\": [0-9.e+-]" said || echo "$key is missing: $(cat said)"
done
grep -oE '"error": [^}]*' said | awk '!($2 < 1e-5) {print "an error of " $2}'
n2ce bench matmul --largest 256 --seconds 0.001 | sed -n 2p | grep -c ours
