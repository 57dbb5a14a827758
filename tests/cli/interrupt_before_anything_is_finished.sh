# Ctrl-C within the first run: nothing to print, nothing in the folder.
n2ce study gaussian --runs 1 --n 1e9 --dim 1000 --report r &
sleep 2
kill -INT $!
wait $!
code=$?
if [ -d r ]; then ls -A r; fi
exit "$code"
