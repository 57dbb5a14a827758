# A column of numbers with decimal commas is not taken for a category by any verb, unless it is said to be one.
awk -v n=60 -f "${0%/*}/designs.awk" | sed 's/,/;/g;s/\./,/g' >de.csv
n2ce optimize de.csv -m count -c temp,colour
echo $?
n2ce detect de.csv -c temp,count
echo $?
n2ce mi de.csv --x temp --y count
echo $?
sed 's/;/","/g;s/^/"/;s/$/"/' de.csv >quoted.csv
n2ce optimize quoted.csv -m count
echo $?
# Where the first text is none of them, and where a text beyond the first row is.
{ printf 'a;y\nunknown;1\n'; awk 'BEGIN { for (i = 0; i < 20; i++) print i ",5;" i }'; } >late.csv
n2ce optimize late.csv -m y
echo $?
printf 'a;y\n1;1\n2,5;2\n' | n2ce optimize - -m y
echo $?
n2ce optimize de.csv -m count -c temp,colour --categorical temp -Q 2 --effort 0.02 --rounds 2 --quiet -o names.csv >numbers
echo $?
