# Names are levels, missing values a level of their own, and what the normal rows never had is odd.
awk 'BEGIN {
    print "a,colour,b"
    for (i = 0; i < 300; i++) printf "%d,%s,%s\n", i % 4, i % 3 ? "red" : "green", i % 5 ? i % 2 : ""
}' >good.csv
printf 'a,colour,b\n3,green,1\n0,red,\n3,blue,1\n,green,1\n3,,1\n' >new.csv
n2ce detect --normal good.csv new.csv -o flagged.csv --parts near,margins -q
cut -d, -f 1-3,6 flagged.csv
n2ce detect --normal good.csv new.csv --worst 3 --parts near,margins |
    sed -n -E '/row/,$s/ {2,}[0-9.]+ +[0-9.]+ +([0-9.]+)   / ... \1 /p'
