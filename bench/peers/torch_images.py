"""PyTorch peer of `n2ce bench unet|distill|lebm|ld`: networks of pictures.

    build-bench/bin/python bench/peers/torch_images.py lebm [--mode eager|compile] [--batch 128]
    ... unet [--size 32] [--forward], distill [--size 16], ld [--ngf 128] [--steps 30]
    ... --device cuda [--mode eager|compile|graph|compiled-graph] [--precision tf32|float32|bf16|half]

Prints one JSON object. With --serve it makes itself ready, says so by a line, then measures and
prints an object for every line it reads. Several that get ready at once tune themselves one after
another if they are given one --turn FILE. Threads: OMP_NUM_THREADS, 2 unless set.
"""
import argparse
import contextlib
import fcntl
import json
import math
import os
import resource
import statistics
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")

import torch
import torch.nn.functional as F
from torch import nn

# ---- U-Net S: the network of EDM for CIFAR-10, smaller -------------------------------------------


def groups(channels):
    return nn.GroupNorm(min(32, channels // 4), channels, eps=1e-6)


class Attention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = groups(channels)
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(n, 3, c, h * w).transpose(2, 3).unbind(1)
        y = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        return self.proj(y.transpose(1, 2).reshape(n, c, h, w))


class Block(nn.Module):
    """Two convolutions with the embedding between them, up or down by 2 before the first."""

    def __init__(self, inside, outside, embedding, attention=False, resample="none"):
        super().__init__()
        self.norm0, self.norm1 = groups(inside), groups(outside)
        self.conv0 = nn.Conv2d(inside, outside, 3, padding=1)
        self.conv1 = nn.Conv2d(outside, outside, 3, padding=1)
        self.affine = nn.Linear(embedding, outside)
        changes = inside != outside or resample != "none"
        self.skip = nn.Conv2d(inside, outside, 1) if changes else nn.Identity()
        self.attention = Attention(outside) if attention else None
        self.how = resample

    def resample(self, x):
        if self.how == "down":
            return F.avg_pool2d(x, 2)
        return F.interpolate(x, scale_factor=2) if self.how == "up" else x

    def forward(self, x, e):
        h = self.conv0(self.resample(F.silu(self.norm0(x)))) + self.affine(e)[:, :, None, None]
        h = self.conv1(F.silu(self.norm1(h)))
        x = (h + self.skip(self.resample(x))) * math.sqrt(0.5)
        return x if self.attention is None else (x + self.attention(x)) * math.sqrt(0.5)


class UNet(nn.Module):
    BASE, MULTIPLES, BLOCKS = 64, (1, 2, 2), 2

    def __init__(self):
        super().__init__()
        base, wide = self.BASE, 4 * self.BASE
        self.augment = nn.Linear(9, base, bias=False)
        self.map0, self.map1 = nn.Linear(base, wide), nn.Linear(wide, wide)
        self.first = nn.Conv2d(3, base, 3, padding=1)
        kept, c = [base], base
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for level, multiple in enumerate(self.MULTIPLES):
            if level:
                self.down.append(Block(c, c, wide, resample="down"))
                kept.append(c)
            for _ in range(self.BLOCKS):
                self.down.append(Block(c, base * multiple, wide, attention=level == 1))
                c = base * multiple
                kept.append(c)
        self.bottom = nn.ModuleList([Block(c, c, wide, attention=True), Block(c, c, wide)])
        self.joins = []
        for level, multiple in reversed(list(enumerate(self.MULTIPLES))):
            if level + 1 < len(self.MULTIPLES):
                self.up.append(Block(c, c, wide, resample="up"))
                self.joins.append(False)
            for k in range(self.BLOCKS + 1):
                last = k == self.BLOCKS
                self.up.append(Block(c + kept.pop(), base * multiple, wide, level == 1 and last))
                c = base * multiple
                self.joins.append(True)
        self.norm, self.last = groups(c), nn.Conv2d(c, 3, 3, padding=1)

    def embed(self, noise, augment):
        half = self.BASE // 2
        rate = torch.exp(torch.arange(half, device=noise.device) * (-math.log(1e4) / (half - 1)))
        angle = noise[:, None] * rate
        e = torch.cat([angle.sin(), angle.cos()], dim=1) + self.augment(augment)
        return F.silu(self.map1(F.silu(self.map0(e))))

    def encode(self, x, noise, augment):
        """What the way down keeps, the end of it last, and the embedding."""
        e = self.embed(noise, augment)
        kept = [self.first(x)]
        for block in self.down:
            kept.append(block(kept[-1], e))
        return kept, e

    def decode(self, kept, e):
        x, kept = kept[-1], list(kept)
        for block in self.bottom:
            x = block(x, e)
        for block, joins in zip(self.up, self.joins):
            x = block(torch.cat([x, kept.pop()], dim=1) if joins else x, e)
        return self.last(F.silu(self.norm(x)))

    def forward(self, x, noise, augment):
        return self.decode(*self.encode(x, noise, augment))


def edm_loss(net, y, augment):
    """With sd = 0.5 of the data: the loss of D(y + sigma n), weighted as EDM does."""
    sigma = torch.exp(torch.randn(len(y), 1, 1, 1, device=y.device) * 1.2 - 1.2)
    x = y + sigma * torch.randn_like(y)
    spread = (sigma**2 + 0.25).sqrt()
    f = net(x / spread, sigma.flatten().log() / 4, augment).float()
    d = 0.25 / spread**2 * x + 0.5 * sigma / spread * f
    return ((spread / (0.5 * sigma)) ** 2 * (d - y) ** 2).sum(dim=(1, 2, 3)).mean()


@torch.no_grad()  # else it would keep the graphs of all steps, which then cannot be captured
def average_in(average, parameters, share):
    torch._foreach_lerp_(average, parameters, share)


def unet(args):
    net = UNet().to(args.device).to(memory_format=torch.channels_last)
    parameters = list(net.parameters())
    average = [p.detach().clone() for p in parameters]
    cuda = args.device == "cuda"
    adam = torch.optim.Adam(parameters, 1e-3, fused=True, capturable=cuda)
    y = torch.rand(args.batch, 3, args.size, args.size, device=args.device) * 2 - 1
    y = y.to(memory_format=torch.channels_last)
    augment = torch.zeros(args.batch, 9, device=args.device)
    device, dtype, enabled = narrow(args)

    def plain_loss():
        with torch.autocast(device, dtype, enabled=enabled):
            return edm_loss(net, y, augment)

    loss_of = compiled(args, plain_loss)

    def forward():
        with torch.no_grad():
            return loss_of()

    def train():
        adam.zero_grad(set_to_none="graph" not in args.mode)
        loss = loss_of()
        loss.backward()
        adam.step()
        average_in(average, parameters, 1e-4)
        return loss.detach()

    return (forward if args.forward else train), parameters


# ---- an iteration of SiDA with N2CE ----------------------------------------------------------------

SIGMA_INIT, ALPHA, M, LAMBDA = 2.5, 1.2, 50.0, 0.5


def denoise(net, x, sigma, augment):
    """D(x; sigma), and the mean over channels of what the way down ends with."""
    spread = (sigma**2 + 0.25).sqrt()
    kept, e = net.encode(x / spread, sigma.flatten().log() / 4, augment)
    f = net.decode(kept, e).float()
    return 0.25 / spread**2 * x + 0.5 * sigma / spread * f, kept[-1].float().mean(1)


def logits(net, x, sigma, augment):
    spread = (sigma**2 + 0.25).sqrt()
    kept, _ = net.encode(x / spread, sigma.flatten().log() / 4, augment)
    return kept[-1].float().mean(1)


def generate(net, z, augment):
    sigma = torch.full((len(z), 1, 1, 1), SIGMA_INIT, device=z.device)
    return denoise(net, SIGMA_INIT * z, sigma, augment)[0]


def fake_loss(generator, fake, real, augment):
    with torch.no_grad():
        y = generate(generator, torch.randn_like(real), augment)
    sigma = torch.exp(torch.randn(len(y), 1, 1, 1, device=y.device) * 1.2 - 1.2)
    noise = torch.randn_like(y)
    weight = (sigma**2 + 0.25) / (0.5 * sigma) ** 2
    d, of_made = denoise(fake, y + sigma * noise, sigma, augment)
    of_real = logits(fake, real + sigma * noise, sigma, augment)
    log_m = math.log(M)
    ratio = (F.softplus(log_m - of_real).mean() + M * F.softplus(of_made - log_m).mean()
             + LAMBDA * ((of_real**2).mean() + (of_made**2).mean()))
    return (weight * (d - y) ** 2).sum(dim=(1, 2, 3)).mean() + weight.mean() * ratio


def generator_loss(teacher, generator, fake, like, augment):
    y = generate(generator, torch.randn_like(like), augment)
    u = 0.8 * torch.rand(len(y), 1, 1, 1, device=y.device)
    low, high = 0.002 ** (1 / 7), 80 ** (1 / 7)
    sigma = (low + u * (high - low)) ** 7
    x = y + sigma * torch.randn_like(y)
    a, b = denoise(teacher, x, sigma, augment)[0], denoise(fake, x, sigma, augment)
    with torch.no_grad():
        scale = 1 / (y - a).abs().mean(dim=(1, 2, 3)).clamp_min(1e-5)
    d = a - b[0]
    sid = (scale * (d * ((a - y) - ALPHA * d)).sum(dim=(1, 2, 3))).mean()
    adversarial = F.softplus(-b[1].clamp(-10, 10)).mean() * scale.mean() * 0.01 * y[0].numel()
    return 0.5 * 100 * sid + 0.5 * adversarial


def distill(args):
    teacher, fake, generator = (
        UNet().to(args.device).to(memory_format=torch.channels_last) for _ in range(3))
    teacher.requires_grad_(False)
    of_fake, of_generator = list(fake.parameters()), list(generator.parameters())
    average = [p.detach().clone() for p in of_generator]
    how = {"betas": (0.0, 0.999), "fused": True, "capturable": args.device == "cuda"}
    fake_adam = torch.optim.Adam(of_fake, 1e-4, **how)
    generator_adam = torch.optim.Adam(of_generator, 1e-4, **how)
    real = torch.rand(args.batch, 3, args.size, args.size, device=args.device) * 2 - 1
    real = real.to(memory_format=torch.channels_last)
    augment = torch.zeros(args.batch, 9, device=args.device)
    device, dtype, enabled = narrow(args)
    of_first, of_second = compiled(args, fake_loss), compiled(args, generator_loss)

    def step():
        for adam in (fake_adam, generator_adam):
            adam.zero_grad(set_to_none="graph" not in args.mode)
        with torch.autocast(device, dtype, enabled=enabled):
            loss = of_first(generator, fake, real, augment)
        loss.backward()
        nn.utils.clip_grad_value_(of_fake, 1.0)
        fake_adam.step()
        fake.requires_grad_(False)  # spares its weights' gradients
        with torch.autocast(device, dtype, enabled=enabled):
            loss = of_second(teacher, generator, fake, real, augment)
        loss.backward()
        generator_adam.step()
        fake.requires_grad_(True)
        average_in(average, of_generator, 1e-2)
        return loss.detach()

    return step, of_fake + of_generator


# ---- latent energy-based model --------------------------------------------------------------------

NZ, STAGES, WIDTH, BLOCKS, MAGNITUDE = 100, 3, 128, 3, 100
SIGMA2 = [0.0, 0.69175489, 0.92238785, 1.0]


class Stack(nn.Module):
    """Two linear layers with LeakyReLU between them."""

    def __init__(self, inside):
        super().__init__()
        self.a, self.b = nn.Linear(inside, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.b(F.leaky_relu(self.a(x), 0.2))


class Ratio(nn.Module):
    def __init__(self):
        super().__init__()
        angle = torch.arange(STAGES)[:, None] * 1e4 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
        table = torch.stack([angle.sin(), angle.cos()], dim=2).reshape(STAGES, WIDTH)
        self.register_buffer("table", table)
        self.stage, self.input = Stack(WIDTH), Stack(NZ)
        self.join = nn.Linear(2 * WIDTH, WIDTH)
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(BLOCKS))
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, z, k):
        h = torch.cat([self.input(z), F.embedding(k, self.stage(self.table))], dim=1)
        h = self.join(F.leaky_relu(h, 0.2))
        for block in self.blocks:
            h = h + block(F.leaky_relu(h, 0.2))
        return self.out(F.leaky_relu(h, 0.2))[:, 0]


def encoder(width=64, embedding=1024):
    layers, c = [], 3
    for k, multiple in enumerate((1, 2, 4, 8)):
        window = (4, 2, 1) if k else (3, 1, 1)
        layers += [nn.Conv2d(c, multiple * width, *window),
                   nn.InstanceNorm2d(multiple * width, affine=True), nn.LeakyReLU(0.2)]
        c = multiple * width
    return nn.Sequential(*layers, nn.Conv2d(c, embedding, 4), nn.Flatten(), nn.LeakyReLU(0.01))


def decoder(nz, rows):
    """rows: channels, kernel, stride, padding."""
    layers = []
    for channels, *window in rows:
        layers += [nn.ConvTranspose2d(nz, channels, *window), nn.LeakyReLU(0.2)]
        nz = channels
    return nn.Sequential(*layers[:-1], nn.Tanh())


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = encoder()
        self.mean, self.logvar = nn.Linear(1024, NZ), nn.Linear(1024, NZ)
        self.decoder = decoder(NZ, [(512, 4, 1, 0), (256, 4, 2, 1), (128, 4, 2, 1), (3, 4, 2, 1)])

    def encode(self, x):
        h = self.encoder(x)
        mean, logvar = self.mean(h).float(), self.logvar(h).float()
        return mean, logvar, mean + torch.randn_like(mean) * (0.5 * logvar).exp()


def mixed(z, s):
    return (1 - s).sqrt() * torch.randn_like(z) + s.sqrt() * z


def critic_loss(ratio, z, sigma2):
    k = torch.randint(STAGES, (len(z),), device=z.device)
    numerator = ratio(mixed(z, sigma2[k + 1][:, None]), k)
    many = k.repeat(MAGNITUDE)
    denominator = ratio(mixed(z.repeat(MAGNITUDE, 1), sigma2[many][:, None]), many)
    log_m = math.log(MAGNITUDE)
    return (F.softplus(log_m - numerator.float()).mean()
            + MAGNITUDE * F.softplus(denominator.float() - log_m).mean())


def vae_loss(ratio, vae, x, mean, logvar, z):
    made = vae.decoder(z[:, :, None, None]).float()
    fit = 5 * ((x - made) ** 2).sum(dim=(1, 2, 3)).mean()
    kl = 0.5 * (mean**2 + logvar.exp() - 1 - logvar).sum(dim=1).mean()
    k = torch.arange(STAGES, device=z.device).repeat_interleave(len(z))
    return fit + kl - ratio(z.repeat(STAGES, 1), k).float().sum() / len(z)


def lebm(args):
    ratio, vae = Ratio().to(args.device), Vae().to(args.device)
    x = torch.rand(args.batch, 3, 32, 32, device=args.device) * 2 - 1
    sigma2 = torch.tensor(SIGMA2, device=args.device)
    device, dtype, enabled = narrow(args)
    of_ratio, of_vae = list(ratio.parameters()), list(vae.parameters())
    how = {"capturable": True} if args.device == "cuda" else {"fused": True}
    ratio_adam = torch.optim.Adam(of_ratio, 2e-4, **how)
    vae_adam = torch.optim.Adam(of_vae, 2e-4, betas=(0.5, 0.999), **how)
    encode, critic, rest = (compiled(args, f) for f in (vae.encode, critic_loss, vae_loss))

    def update(loss, adam, parameters):
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 100)
        adam.step()

    def step():
        for adam in (ratio_adam, vae_adam):
            adam.zero_grad(set_to_none="graph" not in args.mode)
        with torch.autocast(device, dtype, enabled=enabled):
            mean, logvar, z = encode(x)
            loss = critic(ratio, z.detach(), sigma2)
        update(loss, ratio_adam, of_ratio)
        ratio.requires_grad_(False)  # spares its weights' gradients
        with torch.autocast(device, dtype, enabled=enabled):
            loss = rest(ratio, vae, x, mean, logvar, z)
        update(loss, vae_adam, of_vae)
        ratio.requires_grad_(True)
        return loss.detach()

    return step, of_ratio + of_vae


# ---- Langevin dynamics through a decoder ------------------------------------------------------------


def ld(args):
    w, nz = args.ngf, 8
    net = decoder(nz, [(8 * w, 7, 1, 0), (4 * w, 4, 2, 1), (2 * w, 4, 2, 1), (1, 3, 1, 1)])
    net = net.to(args.device).requires_grad_(False)
    x = torch.rand(args.batch, 1, 28, 28, device=args.device) * 2 - 1
    device, dtype, enabled = narrow(args)
    # compiled is what can be: a gradient inside a compiled function breaks it into pieces
    made_of = compiled(args, net)

    def move(z):
        z = z.detach().requires_grad_()
        with torch.autocast(device, dtype, enabled=enabled):
            made = made_of(z[:, :, None, None]).float()
        energy = ((x - made) ** 2).sum() / (2 * 0.3**2) + (z**2).sum() / 2
        slope, = torch.autograd.grad(energy, z)
        return z.detach() - 0.005 * slope + 0.1 * torch.randn_like(z)

    def step():
        z = torch.randn(args.batch, nz, device=args.device)
        for _ in range(args.steps):
            z = move(z)
        return (z**2).mean()

    return step, list(net.parameters())


# ---- running ------------------------------------------------------------------------------------------


def narrow(args):
    """For autocast: device, type, and whether 16 bits are asked for."""
    types = {"bf16": torch.bfloat16, "half": torch.float16}
    return args.device, types.get(args.precision, torch.bfloat16), args.precision in types


def compiled(args, function):
    return torch.compile(function) if args.mode.startswith("compile") else function


@contextlib.contextmanager
def alone(path):
    """While no other peer that has the same file is inside."""
    if not path:
        yield
        return
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def tuned(args, step):
    """The step, compiled already, with the fastest of cuDNN's algorithms, captured if it is to be."""
    torch.backends.cudnn.benchmark = True
    if "graph" in args.mode:
        step()
        step = captured(step)
    for _ in range(3 if args.device == "cuda" else 1):
        step()
    return step


def captured(step):
    """The step as a CUDA graph that is replayed."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


def measure(step, seconds, cuda):
    """Milliseconds of single steps, or of a few together on a GPU."""
    wait = torch.cuda.synchronize if cuda else lambda: None
    at_once, times = 1, []
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or len(times) < 2:
        start = time.perf_counter()
        for _ in range(at_once):
            step()
        wait()
        spent = time.perf_counter() - start
        times.append(1e3 * spent / at_once)
        if cuda and spent < 0.05:
            at_once *= 2
            if len(times) == 1 or spent < 0.01:
                times.clear()
    times.sort()
    return {"median_ms": statistics.median(times), "low_ms": times[int(0.1 * len(times))],
            "high_ms": times[int(0.9 * (len(times) - 1) + 0.5)]}


def peak_mb(cuda):
    if cuda:
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", choices=["unet", "distill", "lebm", "ld"])
    parser.add_argument("--size", type=int, choices=[16, 32], default=32)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--ngf", type=int, default=128)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--forward", action="store_true")
    parser.add_argument("--mode", choices=["eager", "compile", "graph", "compiled-graph"],
                        default="eager")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["tf32", "float32", "bf16", "half"], default="tf32")
    parser.add_argument("--seconds", type=float, default=3.0, help="of timing, at least")
    parser.add_argument("--serve", action="store_true", help="measure once for every line read")
    parser.add_argument("--turn", help="a file that is locked while it tunes itself")
    args = parser.parse_args()
    cuda = args.device == "cuda"
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.backends.cuda.matmul.allow_tf32 = args.precision != "float32"
    torch.backends.cudnn.allow_tf32 = args.precision != "float32"
    torch.manual_seed(0)
    step, parameters = {"unet": unet, "distill": distill, "lebm": lebm, "ld": ld}[args.work](args)
    first = float(step())
    with alone(args.turn):
        step = tuned(args, step)
    about = {"peer": f"torch_{args.mode}", "precision": args.precision, "batch": args.batch,
             "version": torch.__version__, "parameters": sum(p.numel() for p in parameters),
             "first_value": first}

    def once():
        result = measure(step, args.seconds, cuda)
        result["images_per_s"] = 1e3 * args.batch / result["median_ms"]
        print(json.dumps(about | result | {"peak_mb": peak_mb(cuda)}), flush=True)

    if not args.serve:
        return once()
    print("ready", flush=True)
    for _ in sys.stdin:
        once()


if __name__ == "__main__":
    main()
