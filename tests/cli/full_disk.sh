# A full disk behind stdout is an error, with its reason.
[ -c /dev/full ] || exit 0
n2ce study gaussian --dim 3 --n 20 --runs 4 --steps 10 >/dev/full 2>said
code=$?
[ "$code" -eq 1 ] || echo "exit is $code, not 1"
[ "$(cat said)" = "n2ce: the output could not be written: No space left on device." ] || cat said
