# A file of another shape is bad data.
mkdir -p data/superconductor
printf '1,2\n3,4\n' >data/superconductor/x.npy
n2ce study bbo --tasks superconductor --data data
