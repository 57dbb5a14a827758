# A step on one and on two ranks: what is sent, and a projection that says it is one.
n2ce bench scale --M 2 --seconds 0.05 --ranks 2 --threads 1 --most 4 --json >answer.json
grep -o '"ranks": [0-9]*' answer.json | tr '\n' ' '
grep -q '"ranks": 2, "ms": [0-9.e+]*, "model_ms": [0-9.e+]*, "bytes": [1-9]' answer.json || echo "nothing was sent"
n2ce bench scale --M 2 --seconds 0.05 --threads 1 --step 0.25 --bandwidth 400 --latency 5 --most 1 | tail -3
