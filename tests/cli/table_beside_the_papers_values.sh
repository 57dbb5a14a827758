# In the paper's setting its values stand beside ours.
n2ce study gaussian --dim 5 --n 2 --runs 2 --families n2ce,nwj --magnitudes 1,1.5,7
