"""PyTorch peer of `n2ce bench step`: the training step of the paper's offline optimisation.

    build-bench/bin/python bench/peers/torch_step.py [--M 100] [--mode eager|compile]
    ... --device cuda [--mode eager|compile|graph|compiled-graph] [--precision tf32|float32]

Prints one JSON object. The number of threads is OMP_NUM_THREADS, 2 unless set.
"""
import argparse
import json
import math
import os
import resource
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")

import torch
import torch.nn.functional as F
from torch import nn

NZ, WIDTH, BLOCKS, STAGES = 20, 128, 16, 7
BATCH, FEATURES = 128, 87  # 86 of a design and its value
SLOPE, CLIP = 0.2, 100.0
SIGMA2 = [0.01, 0.3237, 0.5165, 0.6322, 0.7132, 0.7734, 0.9997, 1.0]
RATIO_OPTIMISER = {"lr": 5e-5}
VAE_OPTIMISER = {"lr": 1e-4, "betas": (0.5, 0.999)}


def leaky_relu(x):
    """Compiled by 2.15, F.leaky_relu stores a mask of bool at 20 times the time of eager."""
    if torch.compiler.is_compiling():
        return 0.5 * (1 + SLOPE) * x + 0.5 * (1 - SLOPE) * x.abs()
    return F.leaky_relu(x, SLOPE)


class Stack(nn.Module):
    """Linear layers with LeakyReLU between them."""

    def __init__(self, *sizes):
        super().__init__()
        *hidden, last = (nn.Linear(i, o) for i, o in zip(sizes, sizes[1:]))
        self.hidden, self.last = nn.ModuleList(hidden), last

    def forward(self, x):
        for layer in self.hidden:
            x = leaky_relu(layer(x))
        return self.last(x)


def stage_table():
    angle = torch.arange(STAGES)[:, None] * 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(STAGES, WIDTH)


class Ratio(nn.Module):
    """f(z, k). The stage network sees the 7 rows of its table, not a row for every sample."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", stage_table())
        self.stage = Stack(WIDTH, WIDTH, WIDTH)
        self.input = Stack(NZ, WIDTH, WIDTH)
        self.join = nn.Linear(2 * WIDTH, WIDTH)
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(BLOCKS))
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, z, k):
        h = torch.cat([self.input(z), F.embedding(k, self.stage(self.table))], dim=1)
        h = self.join(leaky_relu(h))
        for block in self.blocks:
            h = h + block(leaky_relu(h))
        return self.out(leaky_relu(h))[:, 0]

    def all_stages(self, z):
        """sum_k f(z, k)."""
        k = torch.arange(STAGES, device=z.device).repeat(len(z))
        return self(z.repeat_interleave(STAGES, 0), k).view(-1, STAGES).sum(dim=1)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = Stack(FEATURES, 128, 128)
        self.mean = nn.Linear(128, NZ)
        self.logvar = nn.Linear(128, NZ)
        self.decoder = Stack(NZ, 128, 64, 32, 32, FEATURES)

    def encode(self, x):
        h = leaky_relu(self.trunk(x))
        mean, logvar = self.mean(h), self.logvar(h)
        return mean, logvar, mean + torch.randn_like(mean) * (0.5 * logvar).exp()


def pairs(z, magnitude, sigma2):
    """Numerator and denominator samples of a random stage per datum."""
    k = torch.randint(STAGES, (len(z),), device=z.device)
    s = sigma2[k + 1][:, None]
    numerator = (1 - s).sqrt() * torch.randn_like(z) + s.sqrt() * z
    s = sigma2[k].repeat(magnitude)[:, None]
    noise = torch.randn(magnitude * len(z), NZ, device=z.device)
    denominator = (1 - s).sqrt() * noise + s.sqrt() * z.repeat(magnitude, 1)
    return torch.cat([numerator, denominator]), k.repeat(magnitude + 1)


def ratio_loss(ratio, z, magnitude, sigma2):
    points, k = pairs(z, magnitude, sigma2)
    f = ratio(points, k) - math.log(magnitude)
    n = len(z)
    return -(F.logsigmoid(f[:n]).mean() + magnitude * F.logsigmoid(-f[n:]).mean())


def vae_loss(ratio, vae, x, mean, logvar, z):
    reconstruction = ((vae.decoder(z) - x) ** 2).sum() / len(x)
    kl = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(dim=1).mean()
    return 50 * reconstruction + 0.75 * (kl - ratio.all_stages(z).mean())


def update(loss, optimiser, parameters):
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, CLIP)
    optimiser.step()


def make_step(magnitude, mode, cuda=False):
    ratio, vae, x, sigma2 = Ratio(), Vae(), torch.rand(BATCH, FEATURES), torch.tensor(SIGMA2)
    ratio_parameters, vae_parameters = list(ratio.parameters()), list(vae.parameters())
    how = {"foreach": True, "capturable": "graph" in mode} if cuda else {"fused": True}
    ratio_adam = torch.optim.Adam(ratio_parameters, **how, **RATIO_OPTIMISER)
    vae_adam = torch.optim.Adam(vae_parameters, **how, **VAE_OPTIMISER)
    compiled = torch.compile if mode.startswith("compile") else lambda function: function
    encode, of_ratio, of_vae = compiled(vae.encode), compiled(ratio_loss), compiled(vae_loss)

    def step():
        mean, logvar, z = encode(x)
        loss = of_ratio(ratio, z.detach(), magnitude, sigma2)
        update(loss, ratio_adam, ratio_parameters)
        ratio.requires_grad_(False)  # spares its weight gradients
        update(of_vae(ratio, vae, x, mean, logvar, z), vae_adam, vae_parameters)
        ratio.requires_grad_(True)
        return loss.detach()

    return captured(step) if "graph" in mode else step


def captured(step):
    """The step as a CUDA graph that is replayed."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


def timed(step, seconds, at_once, warm_up=3):
    """Mean seconds of a step, their number, and the first and last loss. A GPU is asked for several
    steps before anybody waits for it."""
    first = step().item()
    for _ in range(warm_up - 1):
        step().item()
    start, steps, spent = time.perf_counter(), 0, 0.0
    while spent < seconds or steps < 3:
        for _ in range(at_once):
            last = step()
        last = last.item()
        steps += at_once
        spent = time.perf_counter() - start
    return spent / steps, steps, first, last


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--M", type=int, default=100)
    parser.add_argument("--mode", choices=["eager", "compile", "graph", "compiled-graph"],
                        default="eager")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["tf32", "float32"], default="tf32",
                        help="of products on a GPU")
    parser.add_argument("--seconds", type=float, default=3.0, help="of timing, at least")
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.set_default_device(args.device)
    torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
    torch.manual_seed(0)
    cuda = args.device == "cuda"
    step = make_step(args.M, args.mode, cuda)
    seconds, steps, first, last = timed(step, args.seconds, 20 if cuda else 1)
    peak = torch.cuda.max_memory_allocated() / 2**20 if cuda else peak_mb()
    print(json.dumps({"peer": f"torch_{args.mode}", "version": torch.__version__, "M": args.M,
                      "ms": 1e3 * seconds, "steps": steps, "peak_mb": peak,
                      "first_loss": first, "last_loss": last}))


if __name__ == "__main__":
    main()
