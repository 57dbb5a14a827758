# A preset is a set of options; those that are given besides count more. --json says what was run.
n2ce study bbo --beside random,top-offline --preset queries --tasks branin-50 --methods random --seeds 1 --json >answer.json
grep -o '"preset": "[a-z]*", "tasks": "[a-z0-9-]*", "methods": "[a-z]*"' answer.json
grep -o '"queries": "[0-9,]*"' answer.json
sed -n '/"rows"/,/^  ],/p' answer.json | grep -o '"queries": .*}'
n2ce study bbo --beside random,top-offline --preset branin --methods random,cube-0.05 --queries 4 --seeds 1 --quiet | wc -l | tr -d ' '
n2ce study bbo --beside random,top-offline --preset branin --methods random --queries 4 --seeds 1 | sed -n 's/^\(branin[a-z0-9-]*\):.*;\(.*; Q = .*\)/\1\2/p'
