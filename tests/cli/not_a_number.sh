# Words where a number belongs.
n2ce study gaussian --n many
