# A misspelt option: one letter left out.
n2ce study gaussian --magnitude=1
