# M = 0.
n2ce study gaussian --magnitudes 1,0
