n2ce detect --normal good.csv
