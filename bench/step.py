#!/usr/bin/env python3
"""The training step of the paper's offline optimisation: n2ce against PyTorch and JAX.

A step updates the ratio network (128 samples of the numerator, M x 128 of the denominator) and the
variational auto-encoder (128 samples, all 7 stages). bench/peers/ has the same work in PyTorch and
JAX. Every program runs alone, on the same 2 cores or on the same GPU; times are the least of the
rounds.

    ./run bench step [--json] [--all] [--write-docs]
    ./run bench step --device cuda [--precision tf32|float32] [--json] [--write-docs]
    ./run bench step --busy 1 --isa avx2       beside a process that never sleeps; AVX2 for n2ce and JAX
    ./run bench step --before OTHER_BUILD/n2ce  and another version of n2ce in the same run

The peers need: build-bench/bin/pip install torch "jax[cpu]"
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "benchmarks.md"
THREADS = 2
PEERS = {"torch_eager": ["torch_step.py", "--mode", "eager"],
         "torch_compile": ["torch_step.py", "--mode", "compile"],
         "jax": ["jax_step.py"]}
ON_GPU = {"torch_eager": ["torch_step.py", "--mode", "eager"],
          "torch_compile": ["torch_step.py", "--mode", "compile"],
          "torch_graph": ["torch_step.py", "--mode", "graph"],
          "torch_compiled_graph": ["torch_step.py", "--mode", "compiled-graph"],
          "jax": ["jax_step.py"]}
NAMES = {"torch_eager": "PyTorch", "torch_compile": "PyTorch, compiled",
         "torch_graph": "PyTorch, captured", "torch_compiled_graph": "PyTorch, compiled and captured",
         "jax": "JAX"}
SGEMM = """
import json, time
import numpy as np
n = 2048
a, b = np.random.default_rng(0).standard_normal((2, n, n), dtype=np.float32)
times = []
for _ in range(6):
    start = time.perf_counter()
    a @ b
    times.append(time.perf_counter() - start)
blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
name = blas["name"] + " " + blas["version"]
print(json.dumps({"gflops": 2e-9 * n**3 / min(times), "blas": name}))
"""


# ---- running programs: used by bench/svgd.py too -------------------------------------------------


on_gpu = False  # set by main
isa = None  # "avx2": programs use no newer instructions

XLA_ISA = {"avx2": "AVX2", "avx512": "AVX512"}
TORCH_ISA = {"avx2": "avx2", "avx512": "avx512"}


def limited_to(which):
    """Variables that keep n2ce, XLA, and PyTorch with its libraries to an instruction set."""
    if not which:
        return {}
    return {"N2CE_ISA": which, "XLA_FLAGS": f"--xla_cpu_max_isa={XLA_ISA[which]}",
            "ATEN_CPU_CAPABILITY": TORCH_ISA[which], "ONEDNN_MAX_CPU_ISA": which.upper(),
            "MKL_ENABLE_INSTRUCTIONS": which.upper()}


@contextlib.contextmanager
def busy_processes(number):
    """So many that never sleep, on the same cores."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def environment():
    if on_gpu:
        return os.environ | {"JAX_PLATFORMS": "cuda"}
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return os.environ | dict.fromkeys(names, str(THREADS)) | {"JAX_PLATFORMS": "cpu"} | limited_to(isa)


def run(command):
    """The last line of the program's output as JSON, or None with the reason on stderr."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment())
    except OSError as error:
        print(f"no result from {command[0]}: {error.strerror}", file=sys.stderr)
        return None
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    lines = done.stderr.strip().splitlines() or ["it says nothing"]
    reason = next((line for line in reversed(lines) if "Error: " in line), lines[-1])
    print(f"no result from {' '.join(command)[:200]}: {reason}", file=sys.stderr)
    return None


def run_peer(peer, *options):
    return run([sys.executable, HERE / "peers" / peer[0], *peer[1:], *options])


def keep_to_cores():
    """This process and its children."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])


def best_of(runs, key):
    """The run with the least value, None if there is none."""
    return min((r for r in runs if r), key=lambda r: r[key], default=None)


def rounds(programs, number, key):
    """The best run of each program. A round runs each once, so that all see the same weather."""
    runs = {name: [] for name in programs}
    for _ in range(number):
        for name, program in programs.items():
            if runs[name][-1:] != [None]:  # what failed once is left alone
                runs[name].append(program())
    return {name: best_of(results, key) for name, results in runs.items()}


def replace_between(path, name, text):
    """Puts text between the comments NAME:begin and NAME:end, at the end of the file if missing."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = path.read_text()
    if begin not in page or end not in page:
        page = f"{page.rstrip()}\n\n{begin}\n{end}\n"
    head, rest = page.split(begin, 1)
    path.write_text(f"{head}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}")


# ---- this benchmark -----------------------------------------------------------------------------


def measure(magnitude, args, sgemm):
    options = ["--M", magnitude]
    if on_gpu:
        options += ["--device", "cuda", "--precision", args.precision]
    programs = {name: lambda peer=peer: run_peer(peer, *options)
                for name, peer in (ON_GPU if on_gpu else PEERS).items()
                if not args.peers or name in args.peers.split(",")}
    where = [] if on_gpu else ["--device", "cpu"]
    versions = {"before": args.before, "n2ce": None if args.peers_only else args.program}
    for name, program in versions.items():
        if program:
            command = [program, "bench", "step", *options, *where, "--json"]
            programs[name] = lambda command=command: run(command)
    best = rounds(programs, args.rounds, "ms")
    ours, before, peers = best.pop("n2ce", None), best.pop("before", None), best
    fastest = best_of(peers.values(), "ms")
    return {"M": magnitude, "n2ce_ms": ours and ours["ms"], "before_ms": before and before["ms"],
            "peers": {name: peer and peer["ms"] for name, peer in peers.items()},
            "ratio": fastest["ms"] / ours["ms"] if ours and fastest else None,
            "gflops": ours and ours["gflops"], "sgemm_gflops": sgemm and sgemm["gflops"],
            "peak_mb": ours and ours["gpu_mb" if on_gpu else "peak_mb"],
            "peers_peak_mb": {name: peer and peer["peak_mb"] for name, peer in peers.items()},
            "versions": {name: peer and peer["version"] for name, peer in peers.items()}}


def cell(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


def table(rows, sgemm):
    """As Markdown."""
    peers = list(rows[0]["peers"])
    digits = 2 if on_gpu else 1
    earlier = ["before, ms"] if any(row["before_ms"] for row in rows) else []
    heads = ["M", "n2ce, ms", *earlier, *(f"{NAMES[name]}, ms" for name in peers), "best peer / n2ce",
             "n2ce, GFLOP/s", "n2ce, peak MB", "least peer, peak MB"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        peaks = [mb for mb in row["peers_peak_mb"].values() if mb]
        cells = [str(row["M"]), cell(row["n2ce_ms"], digits),
                 *(cell(row["before_ms"], digits) for _ in earlier),
                 *(cell(row["peers"][name], digits) for name in peers), cell(row["ratio"], 2),
                 cell(row["gflops"]), cell(row["peak_mb"], 0), cell(min(peaks, default=None), 0)]
        lines.append("| " + " | ".join(cells) + " |")
    versions = ", ".join(f"{NAMES[name]} {version}" for name, version in rows[0]["versions"].items()
                         if version)
    lines += ["", f"{'One GPU' if on_gpu else f'{THREADS} cores'}. {versions}."]
    if sgemm:
        lines += [f"sgemm of 2048 x 2048 matrices in NumPy ({sgemm['blas']}) in the same run: "
                  f"{sgemm['gflops']:.0f} GFLOP/s."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/n2ce")
    parser.add_argument("--all", action="store_true", help="M = 1000 too")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program")
    parser.add_argument("--peers-only", action="store_true", help="leave n2ce out")
    parser.add_argument("--peers", help="only these, separated by commas: " + ", ".join(PEERS))
    parser.add_argument("--before", help="another n2ce to run beside it")
    parser.add_argument("--busy", type=int, default=0, help="processes that never sleep beside it")
    parser.add_argument("--isa", choices=list(XLA_ISA), help="no newer instructions than these")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["tf32", "float32"], default="tf32",
                        help="of products on a GPU")
    args = parser.parse_args()
    global on_gpu, isa
    on_gpu, isa = args.device == "cuda", args.isa
    if not on_gpu:
        keep_to_cores()
    sgemm = None if on_gpu else run([sys.executable, "-c", SGEMM])
    magnitudes = [1, 100, 1000] if args.all or on_gpu else [1, 100]
    with busy_processes(args.busy):
        rows = [measure(m, args, sgemm) for m in magnitudes]
    print(json.dumps(rows) if args.json else table(rows, sgemm))
    failed = not args.peers_only and any(row["n2ce_ms"] is None for row in rows)
    if args.write_docs and not failed:
        name = f"step-{args.precision}" if on_gpu else "step"
        replace_between(DOCS, name, table(rows, sgemm))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
