# A second report into the same folder is refused without --force.
study() { n2ce study gaussian --dim 3 --n 20 --runs 4 --steps 10 --report r "$@" | tail -n 1; }
study
ls -A r
cp r/gaussian.json first.json
n2ce study gaussian --report r --quiet
echo "exit $?"
cmp r/gaussian.json first.json && echo "the first is still there"
study --seed 1 --force
cmp -s r/gaussian.json first.json || echo "the second is there"
ls -A r
