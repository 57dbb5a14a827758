# A method that does not exist: the nearest one, and all of them.
n2ce study bbo --methods random,dddom
