# A place that cannot be written is refused before the work, and nothing is read.
n2ce fit --num a.csv --den b.csv -o nowhere/model
