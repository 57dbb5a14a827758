# The folder is a file.
: >file
n2ce study gaussian --runs 1e9 --report file
