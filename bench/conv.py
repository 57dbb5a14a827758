#!/usr/bin/env python3
"""Convolutions and their gradients: n2ce against PyTorch's library (oneDNN), on two cores.

The shapes are those of `n2ce bench conv`, 32 pictures each. PyTorch is given pictures with channels
last, and channels first; the faster of the two is the one to beat.

    ./run bench conv [--network unet|lebm|ld] [--pictures 32] [--seconds 0.1] [--json] [--write-docs]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import step

DIRECTIONS = {"forward": "forward", "input": "by pictures", "weight": "by kernels"}


def ours(args):
    command = [args.program, "bench", "conv", "--network", args.network, "--pictures", args.pictures,
               "--seconds", args.seconds, "--device", "cpu", "--threads", step.THREADS, "--json"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["convolutions"]


def seconds_of(work, limit):
    """The median of runs."""
    work()
    times, end = [], time.perf_counter() + limit
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def directions(torch, s, layout):
    """What PyTorch does, by name."""
    zeros = 0 if s["kernel"] == 1 else 1
    x = torch.randn(s["pictures"], s["in"], s["side"], s["side"]).to(memory_format=layout)
    kernel = torch.randn(s["out"], s["in"], s["kernel"], s["kernel"]).to(memory_format=layout)
    window = [[s["stride"]] * 2, [zeros] * 2, [1, 1]]
    dy = torch.randn_like(torch.conv2d(x, kernel, None, *window))
    backward = torch.ops.aten.convolution_backward
    return {"forward": lambda: torch.conv2d(x, kernel, None, *window),
            "input": lambda: backward(dy, x, kernel, None, *window, False, [0, 0], 1, [True, False, False]),
            "weight": lambda: backward(dy, x, kernel, None, *window, False, [0, 0], 1, [False, True, False])}


def theirs(torch, s, limit):
    layouts = [directions(torch, s, layout) for layout in (torch.channels_last, torch.contiguous_format)]
    return {name: 1e6 * min(seconds_of(layout[name], limit) for layout in layouts) for name in DIRECTIONS}


def table(rows):
    """GFLOP/s as the direct sum counts, as Markdown."""
    heads = ["", *(f"{title}: n2ce, PyTorch" for title in DIRECTIONS.values())]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for s in rows:
        cells = [f"{s['network']}: {s['in']} -> {s['out']}, {s['kernel']} x {s['kernel']}"
                 f"{' / 2' if s['stride'] == 2 else ''}, {s['side']} x {s['side']}"]
        for name in DIRECTIONS:
            gflops = 1e3 * s[name]["tflops"]
            cells.append(f"{gflops:.0f}, {gflops * s[name]['us'] / s['torch_us'][name]:.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/n2ce")
    parser.add_argument("--network", default="all", choices=["all", "unet", "lebm", "ld"])
    parser.add_argument("--pictures", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/")
    args = parser.parse_args()
    step.keep_to_cores()
    os.environ.update(step.environment())
    import torch  # after the environment is set
    rows = [s | {"torch_us": theirs(torch, s, args.seconds)} for s in ours(args)]
    print(json.dumps(rows) if args.json else table(rows))
    if args.write_docs:
        note = (f"\n\n{step.THREADS} cores, float32, {args.pictures} pictures, GFLOP/s as the direct sum counts. "
                f"PyTorch {torch.__version__}.")
        step.replace_between(step.DOCS, "conv", table(rows) + note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
