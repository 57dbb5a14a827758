# The bar of the help text does not separate words.
n2ce study gaussian --families 'n2ce|nwj' --dim 1 --n 2 --runs 1 --steps 1
