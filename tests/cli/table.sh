# The table for a terminal.
n2ce study gaussian --dim 3 --n 20 --runs 4 --steps 10
