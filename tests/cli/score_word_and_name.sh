# A word that stands for an option that is given by its name, too.
n2ce score model --rows rows.csv other.csv
