# A table a group: truth, the guess 0, methods, what was published; then how to read it.
n2ce study ratio --tasks shifted-2d,correlated-normal-2 --methods ulsif,kliep --n 200 --seeds 2
