# There are two completion scripts.
n2ce completion fish
