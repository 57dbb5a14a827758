# Convolutions of a network's shapes are timed, forward and by both operands.
n2ce bench conv --network ld --pictures 1 --seconds 0.001 --json >said || exit 1
for key in pictures side in out kernel stride us tflops; do
    grep -q "\"$key\": [0-9.e+-]" said || echo "$key is missing: $(cat said)"
done
grep -oE '"(forward|input|weight)"' said | sort | uniq -c | tr -s ' '
