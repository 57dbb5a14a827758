# Ctrl-C ends the study early: tables, JSON and page of the finished fits, exit 130.
. "${0%/*}/interrupted.subr"
interrupted n2ce study ratio --tasks bmi --methods ulsif --n 500 --seeds 10000 --report r >text
ls -A r
grep -o '"interrupted": [a-z]*' r/ratio.json
[ "$(grep -c '"task".*"truth"' r/ratio.json)" -gt 0 ] || echo "no rows"
grep -q 'The study was interrupted' r/ratio.html || echo "the page does not say so"
head -n 1 text
exit "$code"
