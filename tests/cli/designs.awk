# Designs with their values as CSV, the same on every machine: awk -v n=200 -f designs.awk
# Columns: temp (number), count (whole), colour (category), yield (the value).
function uniform() {
    state = state * 16807 % 2147483647
    return (state - 0.5) / 2147483647
}
BEGIN {
    state = 4711
    split("red green blue", colours, " ")
    print "temp,count,colour,yield"
    for (i = 0; i < n; i++) {
        t = 20 + 60 * uniform()
        c = 1 + int(8 * uniform())
        k = 1 + int(3 * uniform())
        printf "%.2f,%d,%s,%.4f\n", t, c, colours[k], -((t - 50) / 20) ^ 2 - (c - 4) ^ 2 / 9 + (k == 1)
    }
}
