# What --json prints is what the report folder gets.
n2ce study gaussian --dim 3 --n 20 --runs 4 --steps 10 --json --report r >printed
cmp printed r/gaussian.json
