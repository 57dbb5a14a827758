# Where nothing varies there is nothing to compare.
yes 3,4 | head -n 50 >same.csv
n2ce divergence --num same.csv --den same.csv
