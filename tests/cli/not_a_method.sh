# An unknown method lists the known ones.
n2ce fit --num a.csv --den b.csv -o model --method mine
