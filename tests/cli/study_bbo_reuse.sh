# Runs of an earlier answer are taken over, seconds and all; the others are made. A run of another
# size is made again.
n2ce study bbo --beside random,top-offline --methods random --seeds 2 --report r >first
sed -i.old 's/"seconds": [0-9.]*/"seconds": 777/' r/bbo.json
n2ce study bbo --beside random,top-offline --methods random,cube-0.1 --seeds 3 --reuse r --report r --force >second
grep -o '"method": "[a-z0-9.-]*", "seed": [0-9], .*"seconds": 777' r/bbo.json | sed 's/, "max.*//'
n2ce study bbo --beside random,top-offline --methods random,cube-0.1 --seeds 3 --json | sed 's/"seconds": [0-9.]*//;/"options"/d' >fresh
sed 's/"seconds": [0-9.]*//;/"options"/d' r/bbo.json | cmp - fresh
n2ce study bbo --beside random,top-offline --tasks branin-50 --methods cma-es --scale 64 --seeds 1 --json | sed 's/"seconds": [0-9.]*/"seconds": 777/' >small.json
n2ce study bbo --beside random,top-offline --tasks branin-50 --methods cma-es --scale 32 --seeds 1 --reuse small.json --json | grep -c '"cma-es".*"seconds": 777' || true
