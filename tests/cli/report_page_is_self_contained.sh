# The page loads nothing: it can be mailed.
n2ce study gaussian --dim 2 --n 20 --runs 4 --steps 10 --quiet --report r >numbers
grep -nE 'https?://|src=|<link|@import' r/gaussian.html
grep -q '<svg' r/gaussian.html || echo "no plots"
head -n 1 r/gaussian.html
tail -n 1 r/gaussian.html
