# There is no page for a divergence yet.
n2ce divergence --num a.csv --den b.csv --report r
