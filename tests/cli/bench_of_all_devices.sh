# "--device all" has both devices and says which one auto would take; a GPU that is not there has
# its reason.
export CUDA_VISIBLE_DEVICES=
n2ce bench step --device all --M 1 --seconds 0.01 >said
sed -n 's/^cpu: [0-9]* threads$/cpu/p; s/^cuda: .*--device cpu.*/no GPU/p; s/^auto takes/&/p' said
n2ce bench step --device all --M 1 --seconds 0.01 --json | grep -o '"cuda": .*'
