# The value is missing at the end of the line.
n2ce study gaussian --runs
