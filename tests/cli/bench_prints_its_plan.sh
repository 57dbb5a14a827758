# "n2ce bench --plan" shows steps, row programs, bytes, work and time.
n2ce bench --plan --M 2 --seconds 0.01 >said
for word in 'plan for cpu' steps Mflop MiB 'row program' 'GFLOP/s' 'tiles of'; do
    grep -q "$word" said || echo "no \"$word\" in the plan"
done
