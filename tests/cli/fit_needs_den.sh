# fit with one file names the other.
n2ce fit --num a.csv -o model
