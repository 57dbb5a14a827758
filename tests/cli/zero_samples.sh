# n = 0.
n2ce study gaussian --n 0
