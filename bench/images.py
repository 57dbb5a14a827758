#!/usr/bin/env python3
"""Networks of pictures: n2ce against PyTorch, by the workloads of `n2ce bench unet|distill|lebm|ld`.

bench/peers/torch_images.py has the same work in PyTorch, eager, compiled, and on a GPU captured
into a graph; the fastest of these is the one to beat. All peers are started first and get ready side
by side, compilers take a minute; who is not ready after --ready seconds is left out. Then all programs
measure in turn, round after round, on the same 2 cores or on the same GPU.

    ./run bench images [--json] [--write-docs]
    ./run bench images --device cuda [--only lebm,ld] [--modes eager,graph] [--rounds 2] [--json]
    ./run bench images --device cuda --precision half     n2ce in 16 bits throughout; peers as well
"""
import argparse
import json
import pathlib
import select
import statistics
import subprocess
import sys
import tempfile
import time

import step

HERE = pathlib.Path(__file__).resolve().parent

# Of each workload: its options, and the precision on a GPU.
ON_CPU = {"unet": (["unet", "--batch", "32"], None),
          "lebm": (["lebm", "--batch", "128"], None),
          "ld": (["ld", "--batch", "128", "--ngf", "32"], None)}
ON_GPU = {"unet": (["unet", "--batch", "512"], "bf16"),
          "unet16": (["unet", "--size", "16", "--batch", "1024"], "bf16"),
          "forward": (["unet", "--batch", "512", "--forward"], "bf16"),
          "distill": (["distill", "--size", "16", "--batch", "512"], "bf16"),
          "lebm": (["lebm", "--batch", "128"], "tf32"),
          "ld": (["ld", "--batch", "128", "--ngf", "128"], "tf32")}
TITLES = {"unet": "U-Net S, training", "unet16": "U-Net S, training, 16 x 16",
          "forward": "U-Net S, forward", "distill": "SiDA, an iteration, 16 x 16", "lebm": "latent EBM, joint step",
          "ld": "Langevin dynamics, 30 steps"}
# Those that were the fastest; --modes tries others.
MODES = {"unet": ["compile"], "distill": ["compile", "graph"], "unet16": ["compile", "graph"], "forward": ["compile"],
         "lebm": ["graph", "compiled-graph"], "ld": ["compile", "graph"]}
ON_CPU_MODES = ["eager", "compile"]
NAMES = {"eager": "eager", "compile": "compiled", "graph": "captured",
         "compiled-graph": "compiled and captured"}


class Peer:
    """A PyTorch program that gets ready, and measures when it is told to."""

    def __init__(self, mode, precision, options, args, turn):
        self.name = NAMES[mode] + (f", {precision}" if args.device == "cuda" else "")
        command = [sys.executable, HERE / "peers" / "torch_images.py", *options, "--mode", mode,
                   "--device", args.device, "--seconds", args.seconds, "--serve", "--turn", turn]
        command += ["--precision", precision] if args.device == "cuda" else []
        self.errors = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would fill up
        self.process = subprocess.Popen([str(part) for part in command], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, env=step.environment())
        self.alive = False

    def await_ready(self, deadline):
        if select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
            self.alive = self.read() == "ready"
            return
        print(f"PyTorch, {self.name}: not ready in time", file=sys.stderr, flush=True)
        self.process.kill()

    def read(self):
        line = self.process.stdout.readline().strip()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            lines = self.errors.read().strip().splitlines() or ["it says nothing"]
            print(f"no result from PyTorch, {self.name}: {lines[-1][:300]}", file=sys.stderr)
        return line

    def measure(self):
        if not self.alive:
            return None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        line = self.read()
        self.alive = bool(line)
        return json.loads(line) if line else None

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.errors.close()


def summary(runs):
    """Medians of the rounds; None without any."""
    runs = [run for run in runs if run]
    if not runs:
        return None
    times = [run["median_ms"] for run in runs]
    return runs[-1] | {"ms": statistics.median(times), "least_ms": min(times), "most_ms": max(times)}


def start_peers(work, options, precision, args, turn):
    """A peer may do with more bits than n2ce if that is faster for it."""
    on_gpu = args.device == "cuda"
    precisions = dict.fromkeys([args.precision or precision, precision]) if on_gpu else ["float32"]
    modes = args.modes.split(",") if args.modes else MODES[work] if on_gpu else ON_CPU_MODES
    return [Peer(mode, bits, options, args, turn) for bits in precisions for mode in modes]


def measure(work, options, precision, args, peers):
    ours = args.precision or precision
    command = [args.program, "bench", *options, "--device", args.device, "--seconds", args.seconds,
               "--json"]
    command += ["--precision", ours] if args.device == "cuda" else ["--threads", step.THREADS]
    rounds = {None: []} | {peer: [] for peer in peers}
    for _ in range(args.rounds):
        rounds[None].append(step.run(command))
        for peer in peers:
            rounds[peer].append(peer.measure())
    for peer in peers:
        peer.close()
    n2ce = summary(rounds[None])
    theirs = {peer.name: summary(rounds[peer]) for peer in peers}
    name, best = min(((name, peer) for name, peer in theirs.items() if peer),
                     key=lambda pair: pair[1]["ms"], default=(None, None))
    ratio = best["ms"] / n2ce["ms"] if n2ce and best else None
    least = best["least_ms"] / n2ce["most_ms"] if n2ce and best else None
    return {"work": work, "options": options, "precision": ours if args.device == "cuda" else None,
            "n2ce": n2ce, "peers": theirs, "best_peer": name, "ratio": ratio, "least_ratio": least}


def cell(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


def memory_of(run, on_gpu):
    return run and (run.get("gpu_mb") if on_gpu and "gpu_mb" in run else run["peak_mb"])


def table(rows, on_gpu):
    """As Markdown."""
    heads = ["", "pictures", "n2ce, ms", "images/s", "PyTorch, ms", "which", "PyTorch / n2ce",
             "n2ce, MB", "PyTorch, MB"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        ours, best = row["n2ce"], row["peers"].get(row["best_peer"])
        title = TITLES[row["work"]] + (f", {row['precision']}" if on_gpu else "")
        cells = [title, row["options"][row["options"].index("--batch") + 1],
                 cell(ours and ours["ms"], 2), cell(ours and ours["images_per_s"], 0),
                 cell(best and best["ms"], 2), row["best_peer"] or "-", cell(row["ratio"], 2),
                 cell(memory_of(ours, on_gpu), 0), cell(memory_of(best, on_gpu), 0)]
        lines.append("| " + " | ".join(cells) + " |")
    versions = {peer["version"] for row in rows for peer in row["peers"].values() if peer}
    where = "One GPU" if on_gpu else f"{step.THREADS} cores, float32"
    return "\n".join(lines + ["", f"{where}. PyTorch {', '.join(sorted(versions)) or 'is not there'}."])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/n2ce")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["tf32", "float32", "bf16", "half"],
                        help="of n2ce on a GPU; else bf16 for U-Nets, tf32 for the others")
    parser.add_argument("--only", help="these workloads, separated by commas: " + ", ".join(ON_GPU))
    parser.add_argument("--modes", help="of PyTorch, separated by commas: " + ", ".join(NAMES))
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each program")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement, at least")
    parser.add_argument("--ready", type=float, default=600, help="seconds that peers have to get ready")
    parser.add_argument("--after", type=pathlib.Path,
                        help="measure when this file is there: peers get ready beside other work, which makes it at its end")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/")
    args = parser.parse_args()
    step.on_gpu = on_gpu = args.device == "cuda"
    if not on_gpu:
        step.keep_to_cores()
    works = {name: row for name, row in (ON_GPU if on_gpu else ON_CPU).items()
             if not args.only or name in args.only.split(",")}
    rows = []
    with tempfile.NamedTemporaryFile() as turn:
        peers = {name: start_peers(name, *row, args, turn.name) for name, row in works.items()}
        deadline = time.monotonic() + args.ready
        for peer in sum(peers.values(), []):
            peer.await_ready(deadline)
    while args.after and not args.after.exists():
        time.sleep(0.2)
    for name, (options, precision) in works.items():
        rows.append(measure(name, options, precision, args, peers[name]))
        print(f"{TITLES[name]}: {cell(rows[-1]['ratio'], 2)}", file=sys.stderr, flush=True)
        if args.json:  # as they come: who stops it keeps what there is
            print(("[" if len(rows) == 1 else ",\n") + json.dumps(rows[-1]), end="", flush=True)
    print("]" if args.json else table(rows, on_gpu))
    failed = any(row["n2ce"] is None for row in rows)
    if args.write_docs and not failed:
        step.replace_between(step.DOCS, "images-gpu" if on_gpu else "images", table(rows, on_gpu))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
