# Ctrl-C ends the study early: tables, JSON and page of the finished runs, exit 130.
. "${0%/*}/interrupted.subr"
interrupted n2ce study bbo --beside random,top-offline --methods random --seeds 10000 --report r >text
ls -A r
grep -o '"interrupted": [a-z]*' r/bbo.json
[ "$(grep -c '"method": "random", "seed"' r/bbo.json)" -gt 0 ] || echo "no rows"
grep -q 'The study was interrupted' r/bbo.html || echo "the page does not say so"
head -n 1 text
exit "$code"
