#!/usr/bin/env python3
"""SVGD on the ratio network: n2ce against PyTorch and JAX, on 2 cores.

256 particles in 20 dimensions, 500 iterations of Adam with step 0.3; the density is the sum of the
7 stages' log-ratios, the Gaussian prior and -20 (1 - y)^2 through the decoder; the kernel width is
the median heuristic of every iteration. Times are the least of the rounds.

    ./run bench svgd [--json]

The peers need: build-bench/bin/pip install torch "jax[cpu]"
"""
import argparse
import json
import sys

from step import NAMES, best_of, keep_to_cores, rounds, run, run_peer

PEERS = {"torch_eager": ["torch_svgd.py"], "jax": ["jax_svgd.py"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/n2ce")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program")
    parser.add_argument("--peers-only", action="store_true", help="leave n2ce out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    keep_to_cores()
    programs = {name: lambda peer=peer: run_peer(peer) for name, peer in PEERS.items()}
    if not args.peers_only:
        programs["n2ce"] = lambda: run([args.program, "bench", "svgd", "--device", "cpu", "--json"])
    best = rounds(programs, args.rounds, "seconds")
    ours, fastest = best.pop("n2ce", None), best_of(best.values(), "seconds")
    result = {"bench": "svgd", "n2ce_s": ours and ours["seconds"],
              "peers": {name: peer and peer["seconds"] for name, peer in best.items()},
              "ratio": fastest["seconds"] / ours["seconds"] if ours and fastest else None}
    if args.json:
        print(json.dumps(result))
    else:
        for name, seconds in {"n2ce": result["n2ce_s"], **result["peers"]}.items():
            print(f"{NAMES.get(name, name):10}", "-" if seconds is None else f"{seconds:7.2f} s")
        if result["ratio"]:
            print(f"best peer / n2ce: {result['ratio']:.2f}")
    return 0 if ours or args.peers_only else 1


if __name__ == "__main__":
    sys.exit(main())
