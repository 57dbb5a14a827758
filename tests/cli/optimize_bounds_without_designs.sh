# Bounds that exclude everything, a column that is not there, and the wrong way round.
awk -v n=30 -f "${0%/*}/designs.awk" >designs.csv
run() { n2ce optimize designs.csv --maximize yield --categorical colour --bounds box.csv --effort 0.01; }
printf 'column,low,high\ntemp,200,300\n' >box.csv
run; echo $?
printf 'column,low,high\npressure,200,300\n' >box.csv
run; echo $?
printf 'column,low,high\ntemp,80,20\n' >box.csv
run; echo $?
