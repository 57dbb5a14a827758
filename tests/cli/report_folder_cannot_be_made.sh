# The folder is below a file: said before the work, not after it.
: >file
n2ce study gaussian --runs 1e9 --report file/folder
