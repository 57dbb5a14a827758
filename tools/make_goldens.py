#!/usr/bin/env python3
"""Writes tests/golden/*.safetensors: what PyTorch computes, for the engine to be held against.

Inputs and parameters are float32 numbers. Everything is computed from them in float64 and rounded
to float32 once, so a golden value is the truth to float32 rounding. Counts and indices are stored
as float32 holding integers, scalars as tensors of one element.

    build-bench/bin/python tools/make_goldens.py            writes the files
    build-bench/bin/python tools/make_goldens.py --check    compares with the files that are there
"""
import argparse
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.numpy import save
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
PRECISION = "computed in float64 from float32 inputs by PyTorch, stored as float32"
TOLERANCE = 1e-6
SLOPE = 0.2


def draw(*shape, scale=1.0):
    """Normal numbers that float32 holds exactly."""
    return (scale * torch.randn(*shape, dtype=torch.float32)).double()


def linear_stack(*sizes):
    """Linear layers with LeakyReLU between them; the layers are numbered 0, 2, 4, ..."""
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.LeakyReLU(SLOPE), nn.Linear(inputs, outputs)]
    return nn.Sequential(*layers[1:])


def gradients(loss, tensors):
    return [g.clone() for g in torch.autograd.grad(loss, tensors)]


def train(module, loss_of, betas, steps=10, rate=1e-3, clip=1.0):
    """Adam with a clip of the global gradient norm: losses and norms before each step."""
    optimiser = torch.optim.Adam(module.parameters(), rate, betas=betas, eps=1e-8)
    losses, norms = [], []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = loss_of()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(module.parameters(), clip).detach())
        losses.append(loss.detach())
        optimiser.step()
    return torch.stack(losses), torch.stack(norms)


def training_tensors(module, loss_of, betas):
    """param.*, loss, grad.*, after.*, losses, grad_norms. Trains the module."""
    names, parameters = zip(*module.named_parameters())
    loss = loss_of()
    tensors = {"loss": loss}
    tensors |= {f"param.{n}": p.detach().clone() for n, p in zip(names, parameters)}
    tensors |= {f"grad.{n}": g for n, g in zip(names, gradients(loss, parameters))}
    tensors["losses"], tensors["grad_norms"] = train(module, loss_of, betas)
    tensors |= {f"after.{n}": p.detach().clone() for n, p in zip(names, parameters)}
    return tensors


# ---- the ratio network --------------------------------------------------------------------------


class RatioNet(nn.Module):
    """f(z, k), the shared log-ratio network of all stages."""

    def __init__(self, nz, width, blocks, stages):
        super().__init__()
        self.register_buffer("table", stage_table(stages, width))
        self.stage = linear_stack(width, width, width)
        self.input = linear_stack(nz, width, width)
        self.join = nn.Linear(2 * width, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.out = nn.Linear(width, 1)

    def forward(self, z, k):
        h = torch.cat([self.input(z), self.stage(self.table)[k]], dim=1)
        h = self.join(F.leaky_relu(h, SLOPE))
        for block in self.blocks:
            h = h + block(F.leaky_relu(h, SLOPE))
        return self.out(F.leaky_relu(h, SLOPE))[:, 0]


def stage_table(stages, width):
    """Sinusoids of the integer positions: sin in the even columns, cos in the odd ones."""
    pair = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.arange(stages, dtype=torch.float64)[:, None] * 10000.0 ** (-pair / width)
    return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(stages, width)


def softplus(x):
    """Without F.softplus's switch to the identity above 20."""
    return torch.logaddexp(x, torch.zeros_like(x))


def n2ce_loss(f_num, f_den, magnitude):
    log_m = math.log(magnitude)
    return softplus(log_m - f_num).mean() + magnitude * softplus(f_den - log_m).mean()


def ratio_net():
    nz, width, blocks, stages, magnitude = 8, 32, 3, 3, 100.0
    net = RatioNet(nz, width, blocks, stages).double()  # of float32 numbers
    z_num, z_den = 0.6 * draw(24, nz) + 0.7, draw(40, nz)
    z_num = z_num.float().double().requires_grad_()
    z_den.requires_grad_()
    k_num, k_den = torch.randint(stages, (24,)), torch.randint(stages, (40,))

    def loss_of():
        return n2ce_loss(net(z_num, k_num), net(z_den, k_den), magnitude)

    every_stage = sum(net(z_num, torch.full_like(k_num, k)).sum() for k in range(stages))
    tensors = {"z_num": z_num, "k_num": k_num, "z_den": z_den, "k_den": k_den,
               "stage_table": net.table, "f_num": net(z_num, k_num), "f_den": net(z_den, k_den),
               "grad_sum_f_z": gradients(every_stage, [z_num])[0]}
    tensors["grad.z_num"], tensors["grad.z_den"] = gradients(loss_of(), [z_num, z_den])
    tensors |= training_tensors(net, loss_of, (0.9, 0.999))
    return tensors, ("loss = mean softplus(ln M - f_num) + M mean softplus(f_den - ln M), M = 100; "
                     "after: 10 steps of Adam, rate 1e-3, betas 0.9 0.999, eps 1e-8, gradients "
                     "scaled by min(1, 1 / (global norm + 1e-6)); losses and grad_norms are from "
                     "before each step; grad_sum_f_z: of sum_k f(z, k), k = 0 1 2, at z_num; "
                     "LeakyReLU slope 0.2; a weight is outputs x inputs")


# ---- the variational auto-encoder ---------------------------------------------------------------


class Vae(nn.Module):
    def __init__(self, features, nz):
        super().__init__()
        self.enc = linear_stack(features, 32, 32).append(nn.LeakyReLU(SLOPE))
        self.mean = nn.Linear(32, nz)
        self.logvar = nn.Linear(32, nz)
        self.dec = linear_stack(nz, 32, 16, 8, 8, features)

    def forward(self, x, eps):
        h = self.enc(x)
        mean, logvar = self.mean(h), self.logvar(h)
        z = mean + eps * (0.5 * logvar).exp()
        return {"mean": mean, "logvar": logvar, "z": z, "recon": self.dec(z)}


def vae():
    d, nz, n = 6, 4, 16
    net = Vae(d + 1, nz).double()  # of float32 numbers
    x, eps = torch.rand(n, d + 1, dtype=torch.float32).double(), draw(n, nz)

    def loss_of():
        y = net(x, eps)
        kl = -0.5 * (1 + y["logvar"] - y["mean"] ** 2 - y["logvar"].exp()).sum(dim=1).mean()
        return 50 * ((y["recon"] - x) ** 2).sum() / n + 0.75 * kl

    tensors = {"x": x, "eps": eps} | {k: v.detach() for k, v in net(x, eps).items()}
    tensors |= training_tensors(net, loss_of, (0.5, 0.999))
    return tensors, ("z = mean + eps exp(logvar / 2); loss = 50 sum (recon - x)^2 / n + 0.75 KL, "
                     "KL = -0.5 mean_n sum (1 + logvar - mean^2 - exp(logvar)); after: 10 steps "
                     "of Adam, rate 1e-3, betas 0.5 0.999, eps 1e-8, gradients scaled by "
                     "min(1, 1 / (global norm + 1e-6)); losses and grad_norms are from before "
                     "each step; LeakyReLU slope 0.2; a weight is outputs x inputs")


# ---- optimisers ---------------------------------------------------------------------------------


def optimise(kind, start, grads, clip=None, **options):
    """Values after each step, the moments at the end, and the norms if the gradient is clipped."""
    p = start.clone().requires_grad_()
    optimiser = kind([p], lr=1e-2, betas=(0.9, 0.999), eps=1e-8, **options)
    values, norms = [], []
    for g in grads:
        p.grad = g.clone()
        if clip:
            norms.append(nn.utils.clip_grad_norm_([p], clip))
        optimiser.step()
        values.append(p.detach().clone())
    state = optimiser.state[p]
    result = {"p": torch.stack(values), "m": state["exp_avg"], "v": state["exp_avg_sq"]}
    return result | ({"norms": torch.stack(norms)} if clip else {})


def adam():
    start, grads = draw(33), draw(5, 33)
    grads[:, 0] = 0       # nothing moves
    grads[:, 1] = 1e-8    # as large as eps: half a step
    grads[3] *= 0.01      # a norm below the clip
    grads = grads.float().double()
    tensors = {"p0": start, "grads": grads}
    for name, kind, options in (("adam", torch.optim.Adam, {}),
                                ("adamw", torch.optim.AdamW, {"weight_decay": 0.01}),
                                ("clipped", torch.optim.Adam, {"clip": 0.5})):
        result = optimise(kind, start, grads, **options)
        tensors |= {f"{name}.{key}": value for key, value in result.items()}
    average, averages = start, []
    for p in tensors["adam.p"]:
        average = 0.9 * average + 0.1 * p
        averages.append(average)
    tensors["ema"] = torch.stack(averages)
    return tensors, ("5 steps, rate 1e-2, betas 0.9 0.999, eps 1e-8 added to the root of the "
                     "corrected second moment; p has a row for the values after each step, m and v "
                     "are the moments at the end; adamw: weight decay 0.01; clipped: Adam on "
                     "gradients scaled by min(1, 0.5 / (norm + 1e-6)); ema: of adam.p, decay 0.9, "
                     "from p0")


# ---- operators ----------------------------------------------------------------------------------


def operator_case(name, function, **inputs):
    """NAME.INPUT, NAME.y, NAME.w, and NAME.grad.INPUT of sum(w y) unless INPUT is an index."""
    given = {k: v.requires_grad_() if v.is_floating_point() else v for k, v in inputs.items()}
    y = function(*given.values())
    w = draw(*y.shape)
    smooth = [k for k, v in given.items() if v.is_floating_point()]
    grads = gradients((w * y).sum(), [given[k] for k in smooth])
    tensors = {f"{name}.{k}": v for k, v in given.items()} | {f"{name}.y": y, f"{name}.w": w}
    return tensors | {f"{name}.grad.{k}": g for k, g in zip(smooth, grads)}


def axis_cases():
    tensors = {}
    for axis in range(3):
        for name, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax),
                               ("logsumexp", torch.logsumexp)):
            tensors |= operator_case(f"{name}_axis{axis}", lambda x: function(x, dim=axis),
                                     x=draw(3, 4, 5, scale=3))
    return tensors | operator_case(
        "cross_entropy", lambda x, k: F.cross_entropy(x, k, reduction="none"),
        x=draw(6, 5, scale=3), k=torch.randint(5, (6,)))


def elementwise_cases():
    edges = torch.tensor([-60, -25, -10, -3, -1, -0.125, 0, 0.125, 1, 3, 10, 25, 60.0])
    tensors = {}
    for name, function in (("silu", F.silu), ("tanh", torch.tanh), ("softplus", softplus),
                           ("logsigmoid", F.logsigmoid),
                           ("leaky_relu", lambda x: F.leaky_relu(x, SLOPE))):
        tensors |= operator_case(name, function, x=torch.cat([edges.double(), draw(20, scale=2)]))
    return tensors


def matmul_cases():
    tensors = {}
    for name, shape_a, shape_b, function in (
            ("matmul_nn", (7, 5), (5, 3), lambda a, b: a @ b),
            ("matmul_nt", (7, 5), (3, 5), lambda a, b: a @ b.T),
            ("matmul_tn", (5, 7), (5, 3), lambda a, b: a.T @ b),
            ("matmul_tt", (5, 7), (3, 5), lambda a, b: a.T @ b.T),
            ("matmul_batched", (4, 7, 5), (5, 3), lambda a, b: a @ b)):
        tensors |= operator_case(name, function, a=draw(*shape_a), b=draw(*shape_b))
    return tensors


def shape_cases():
    index = torch.tensor([2, 0, 5, 2, 2, 1, 0, 5, 3])
    return (operator_case("gather", lambda table, k: table[k], table=draw(6, 4), k=index)
            | operator_case("concat_axis0", lambda a, b: torch.cat([a, b], 0),
                            a=draw(2, 5), b=draw(3, 5))
            | operator_case("concat_axis1", lambda a, b: torch.cat([a, b], 1),
                            a=draw(4, 3), b=draw(4, 2))
            | operator_case("slice", lambda x: x[1:4, 2:5], x=draw(5, 6))
            | operator_case("transpose", lambda x: x.T, x=draw(4, 6))
            | operator_case("transpose_last", lambda x: x.transpose(1, 2), x=draw(3, 4, 5)))


def svgd_case():
    x, s = draw(12, 3), draw(12, 3)
    n = len(x)
    median = float(np.median(F.pdist(x).numpy()))
    h2 = median**2 / (2 * math.log(n + 1))
    difference = x[None, :, :] - x[:, None, :]  # i, j: x_j - x_i
    kernel = torch.exp(-(difference**2).sum(dim=2) / (2 * h2))
    repulsion = -(kernel[:, :, None] * difference).sum(dim=1) / h2
    return {"svgd.x": x, "svgd.s": s, "svgd.median": torch.tensor(median, dtype=torch.float64),
            "svgd.h2": torch.tensor(h2, dtype=torch.float64), "svgd.kernel": kernel,
            "svgd.phi": (kernel @ s + repulsion) / n}


def ops():
    tensors = (axis_cases() | elementwise_cases() | matmul_cases() | shape_cases() | svgd_case())
    return tensors, ("CASE.y from CASE.INPUT, CASE.grad.INPUT of sum(w y); _nt and the like say "
                     "which factor is stored transposed; slice is x[1:4, 2:5]; leaky_relu has "
                     "slope 0.2, also at 0; cross_entropy is the loss of each row; svgd: "
                     "phi_i = mean_j [k(x_j, x_i) s_j + grad_{x_j} k(x_j, x_i)], "
                     "k = exp(-|x - y|^2 / (2 h2)), h2 = median^2 / (2 ln(n + 1)), median of the "
                     "n (n - 1) / 2 distances")


# ---- files --------------------------------------------------------------------------------------

FILES = {"ratio_net": ratio_net, "vae": vae, "adam": adam, "ops": ops}


def make(number, function):
    """The tensors of a file as float32 arrays, and what they are."""
    torch.manual_seed(number)
    tensors, about = function()
    arrays = {name: np.ascontiguousarray(np.atleast_1d(tensor.detach().numpy().astype(np.float32)))
              for name, tensor in tensors.items()}
    return arrays, {"about": f"{PRECISION}. {about}."}


def differences(path, arrays, metadata):
    """Sentences on how the file differs."""
    if not path.exists():
        return [f"{path}: is missing"]
    with safe_open(path, "numpy") as file:
        found = {name: file.get_tensor(name) for name in file.keys()}
        result = [] if file.metadata() == metadata else [f"{path}: the description differs"]
    for name in sorted(arrays.keys() | found.keys()):
        if name not in arrays or name not in found:
            where = "the file" if name in found else "this script"
            result.append(f"{path}: {name} is only in {where}")
        elif arrays[name].shape != found[name].shape or found[name].dtype != np.float32:
            result.append(f"{path}: {name} is {found[name].dtype} {found[name].shape}, "
                          f"expected float32 {arrays[name].shape}")
        else:
            error = np.abs(arrays[name] - found[name]) / np.maximum(1, np.abs(arrays[name]))
            if not error.max() <= TOLERANCE:
                result.append(f"{path}: {name} differs by {error.max():.2g}")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help=f"compare with the files that are there, to {TOLERANCE:g}")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = []
    for number, (name, function) in enumerate(FILES.items()):
        arrays, metadata = make(number, function)
        path = FOLDER / f"{name}.safetensors"
        if args.check:
            found += differences(path, arrays, metadata)
        else:
            path.write_bytes(save(arrays, metadata))
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
