# Ctrl-C ends the study early: table and report of the finished runs, exit 130.
n2ce study gaussian --runs 1e9 --dim 5 --n 50 --report r &
sleep 2
kill -INT $!
kill -INT $! # as timeout(1) does: to the process and to its group
wait $!
code=$?
ls -A r
tail -n 1 r/gaussian.html
tail -n 1 r/gaussian.json
grep -o '"interrupted": [a-z]*' r/gaussian.json
exit "$code"
