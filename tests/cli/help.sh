# "n2ce help" lists the verbs, the common options and the exit codes.
n2ce help
