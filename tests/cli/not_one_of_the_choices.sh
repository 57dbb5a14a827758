# A word that is not in the list of choices.
n2ce study gaussian --families n2ce,mle
