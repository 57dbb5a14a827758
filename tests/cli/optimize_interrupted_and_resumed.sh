# Ctrl-C keeps the state of training; going on gives what an uninterrupted run gives.
awk -v n=120 -f "${0%/*}/designs.awk" >designs.csv
run() { n2ce optimize designs.csv --maximize yield --categorical colour --count 8 --rounds 2 --effort 0.15 "$@"; }
run -o whole.csv >/dev/null
run -o out.csv --report page >/dev/null 2>&1 &
sleep 1
kill -INT $! 2>/dev/null
wait $!
code=$?
[ $code -eq 130 ] && [ -e out.csv.checkpoint ] && [ ! -e out.csv ] && [ ! -e page ] || [ $code -eq 0 ] || echo "exit $code"
[ -e out.csv ] || run -o out.csv --report page --resume >/dev/null
cmp whole.csv out.csv && ls
