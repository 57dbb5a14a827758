# divergence names its files by options only.
n2ce divergence a.csv b.csv
