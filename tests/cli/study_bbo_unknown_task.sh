# A task that does not exist: the nearest one, and all of them.
n2ce study bbo --tasks brannin
