# A misspelt column, and the one that was meant.
printf 'temperature,pressure\n1,2\n' >a.csv
n2ce divergence --num a.csv --den a.csv --columns temprature
