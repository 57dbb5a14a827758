# fit without a place for the model.
n2ce fit --num a.csv --den b.csv
