# Rows of normal numbers as CSV, the same on every machine:
#
#   awk -v n=100 -v d=2 -v seed=1 [-v mean=0] [-v sd=1] [-v rho=0] [-v header=1] -f normals.awk
#
# rho: correlation of columns 0 and 1, of 2 and 3, ... header: names x0, x1, ...
function uniform() {
    state = state * 16807 % 2147483647
    return (state - 0.5) / 2147483647
}
function normal() {
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform())
}
BEGIN {
    state = 12345 + 1009 * seed
    if (!sd) sd = 1
    for (i = 0; i < 20; i++) uniform()
    for (j = 0; header && j < d; j++) printf "x%d%s", j, j + 1 < d ? "," : "\n"
    for (i = 0; i < n; i++)
        for (j = 0; j < d; j++) {
            z = normal()
            if (j % 2) z = rho * last + sqrt(1 - rho * rho) * z
            last = z
            printf "%.6f%s", mean + sd * z, j + 1 < d ? "," : "\n"
        }
}
