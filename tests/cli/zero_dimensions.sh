# dim = 0.
n2ce study gaussian --dim 0
