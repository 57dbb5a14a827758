# A misspelt verb.
n2ce stdy gaussian
