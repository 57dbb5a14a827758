# The best fifth hidden: proposals should lie nearest to hidden designs more often than chance.
awk -v n=300 -f "${0%/*}/designs.awk" >designs.csv
n2ce optimize designs.csv --maximize yield --categorical colour --count 20 --effort 0.1 --rounds 6 --backtest 20 --json 2>/dev/null >out.json
sed 's/.*"hidden_share": \([0-9.]*\).*/\1/' out.json | awk '{ print ($1 > 0.4 ? "found" : "missed: " $1) }'
