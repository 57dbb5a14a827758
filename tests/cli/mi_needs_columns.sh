# mi without columns of x and y.
n2ce mi rows.csv --x 0
