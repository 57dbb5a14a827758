# The manual pages have the usual sections, and man has nothing to complain about.
n2ce man >n2ce.1
n2ce man study gaussian >study.1
grep -hE '^\.(TH|SH)' n2ce.1 study.1
man --version 2>&1 | grep -q '^man [0-9]' || exit 0 # not man-db
for page in n2ce.1 study.1; do
    man --warnings -l "./$page" >shown || exit 1
    grep -q SYNOPSIS shown || echo "man shows no SYNOPSIS of $page"
done
