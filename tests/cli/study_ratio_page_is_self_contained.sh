# The page loads nothing, has the plots, and says where the Gaussian part is exact by construction.
n2ce study ratio --tasks tre,sanity --methods ulsif --n 100 --seeds 2 --json --report r >answer.json
cmp answer.json r/ratio.json
grep -nE 'https?://|src=|<link|@import' r/ratio.html
grep -c '<svg' r/ratio.html
grep -o 'exact by construction' r/ratio.html
head -n 1 r/ratio.html
tail -n 1 r/ratio.html
