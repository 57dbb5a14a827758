# A misspelt option: two letters swapped.
n2ce study gaussian --rnus 3
