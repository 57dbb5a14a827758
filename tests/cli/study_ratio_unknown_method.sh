# A method that does not exist: the list of those that do.
n2ce study ratio --methods n2ce,mine
