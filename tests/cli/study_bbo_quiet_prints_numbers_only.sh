# --quiet prints the largest value of every run that was asked for, one a line.
n2ce study bbo --beside random,top-offline --methods random --seeds 3 --quiet >numbers
grep -c '^-[0-9.]*$' numbers
wc -l <numbers | tr -d ' '
