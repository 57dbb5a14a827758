# Three numbers for two dimensions.
n2ce study gaussian --dim 2 --target 1,2,3
