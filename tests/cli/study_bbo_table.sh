# A table a task: methods, the paper's numbers, what chance achieves; then how to read it.
n2ce study bbo --beside random,top-offline --tasks branin,branin-50 --methods random,top-offline --seeds 2
