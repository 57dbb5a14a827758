# pandas' index is a column without a name: it says nothing of rows, and all verbs take it for data.
awk 'BEGIN { print ",x"; for (i = 0; i < 40; i++) print i "," i * 37 % 41 / 8 }' >num.csv
awk 'BEGIN { print ",x"; for (i = 39; i >= 0; i--) print i "," i * 23 % 47 / 8 }' >den.csv
awk 'BEGIN { print ",x"; for (i = 0; i < 40; i++) print i % 20 "," i * 23 % 47 / 8 }' >other.csv
n2ce divergence -n num.csv -d den.csv --critic quadratic --steps 10 >/dev/null
n2ce detect --normal num.csv den.csv --parts near --worst 0 >/dev/null
n2ce divergence -n num.csv -d den.csv --columns x --critic quadratic --steps 10 >/dev/null
n2ce detect --normal other.csv num.csv --parts near --worst 0 >/dev/null
