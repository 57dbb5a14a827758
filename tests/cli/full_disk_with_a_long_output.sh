# The reason is that of the failed write, whatever happened in between.
[ -c /dev/full ] || exit 0
mkdir r
n2ce study gaussian --dim 9 --n 20 --runs 4 --steps 10 --json --report r >/dev/full 2>said
code=$?
[ "$code" -eq 1 ] || echo "exit is $code, not 1"
[ "$(cat said)" = "n2ce: the output could not be written: No space left on device." ] || cat said
