#!/usr/bin/env python3
"""Writes tests/golden/*.safetensors of networks of pictures: what PyTorch computes.

Inputs and parameters are not stored: both sides make them from a formula, `numbers`, that only needs
names and sizes. Of every parameter's gradient, and of every parameter after three steps of Adam, a
row of 16 numbers is stored (`row`). Everything is computed in float64 and rounded to float32 once.
tests/unit/test_golden_pictures.c does the same with the engine.

    build-bench/bin/python tools/make_picture_goldens.py            writes the files
    build-bench/bin/python tools/make_picture_goldens.py --check    compares with those there
"""
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import make_goldens

SAMPLES = 14
STEPS, RATE, EPS = 3, 1e-3, 1e-2


# ---- numbers by a formula ------------------------------------------------------------------------


def numbers(name, count):
    """Numbers in [-1, 1), each a function of the name and its place."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 & 0xFFFFFFFF
    with np.errstate(over="ignore"):
        x = np.uint32(seed) + np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        x = x ^ (x >> np.uint32(16))
    return (x >> np.uint32(8)).astype(np.float64) * 2.0**-23 - 1


def rounded(values, *shape):
    return torch.from_numpy(values.astype(np.float32).astype(np.float64).reshape(shape))


def pictures(name, n, size, channels):
    """[n, c, h, w]; the numbers count along [n, h, w, c]."""
    return rounded(numbers(name, n * size * size * channels), n, size, size, channels).permute(0, 3, 1, 2)


def set_parameters(module):
    for name, p in module.named_parameters():
        u = numbers(name, p.numel())
        if p.dim() > 1:
            values = math.sqrt(3 * p.shape[0] / p.numel()) * u
        elif name.endswith("weight"):
            values = 1 + 0.1 * u
        else:
            values = 0.1 * u
        p.data = rounded(values, *p.shape)


def row(name, tensor):
    """The largest number, the product with numbers of the formula, and 14 elements."""
    x = tensor.detach().numpy().reshape(-1)
    places = ((numbers(name + "@", SAMPLES) + 1) / 2 * x.size).astype(np.int64)
    product = (x * numbers(name + "*", x.size)).sum() / math.sqrt(x.size)
    return np.concatenate([[np.abs(x).max(), product], x[places]])


def rows(module, tensors):
    return torch.from_numpy(np.stack([row(n, t) for (n, _), t in zip(module.named_parameters(), tensors)]))


def last(x):
    """Pictures as the engine has them, [n, h, w, c]."""
    return x.permute(0, 2, 3, 1)


def learn(module, loss_of):
    """Loss, gradients, losses of three steps of Adam, parameters after them."""
    loss = loss_of()
    parameters = list(module.parameters())
    tensors = {"grad": rows(module, torch.autograd.grad(loss, parameters))}
    tensors["sizes"] = torch.tensor([float(p.numel()) for p in parameters])
    optimiser = torch.optim.Adam(parameters, RATE, eps=EPS)
    losses = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = loss_of()
        loss.backward()
        losses.append(loss.detach())
        optimiser.step()
    tensors["losses"] = torch.stack(losses)
    tensors["after"] = rows(module, parameters)
    return tensors


# ---- U-Nets --------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, i, o, embedding, kind, heads=0, resampling=None):
        super().__init__()
        self.adaptive, self.heads, self.resampling = kind == "adm", heads, resampling
        self.scale = math.sqrt(0.5) if kind == "ddpmpp" else 1
        norm = lambda c: nn.GroupNorm(min(32, c // 4), c, eps=1e-5 if kind == "adm" else 1e-6)
        self.norm0, self.conv0 = norm(i), nn.Conv2d(i, o, 3, padding=1)
        self.affine = nn.Linear(embedding, 2 * o if self.adaptive else o)
        self.norm1, self.conv1 = norm(o), nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1) if i != o or (resampling and kind == "ddpmpp") else None
        if heads:
            self.norm2, self.qkv, self.proj = norm(o), nn.Conv2d(o, 3 * o, 1), nn.Conv2d(o, o, 1)

    def resample(self, x):
        if self.resampling == "half":
            return F.avg_pool2d(x, 2)
        return F.interpolate(x, scale_factor=2) if self.resampling == "double" else x

    def attend(self, x):
        b, c, h, w = x.shape
        qkv = self.qkv(self.norm2(x)).reshape(b, 3, self.heads, c // self.heads, h * w)
        q, k, v = qkv.transpose(3, 4).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(b, c, h, w)
        return (x + self.proj(y)) * self.scale

    def forward(self, x, e):
        h = self.conv0(self.resample(F.silu(self.norm0(x))))
        e = self.affine(e)[:, :, None, None]
        if self.adaptive:
            s, t = e.chunk(2, 1)
            h = F.silu(self.norm1(h) * (1 + s) + t)
        else:
            h = F.silu(self.norm1(h + e))
        h, x = self.conv1(h), self.resample(x)
        x = (h + (self.skip(x) if self.skip is not None else x)) * self.scale
        return self.attend(x) if self.heads else x


class Half(nn.Conv2d):
    """DDPM's: zeros on the right and below alone."""

    def __init__(self, c):
        super().__init__(c, c, 3, stride=2)

    def forward(self, x, e):
        return super().forward(F.pad(x, (0, 1, 0, 1)))


class Double(nn.Conv2d):
    def __init__(self, c):
        super().__init__(c, c, 3, padding=1)

    def forward(self, x, e):
        return super().forward(F.interpolate(x, scale_factor=2))


class UNet(nn.Module):
    def __init__(self, kind, base, multiples, blocks, attention, labels=0, augment=0):
        super().__init__()
        self.kind, self.base, self.labels = kind, base, labels
        E = 4 * base
        block = lambda i, o, **more: Block(i, o, E, kind, **more)
        heads = lambda c, wanted: (c // 64 if kind == "adm" else 1) if wanted else 0
        half = lambda c: Half(c) if kind == "ddpm" else block(c, c, resampling="half")
        double = lambda c: Double(c) if kind == "ddpm" else block(c, c, resampling="double")
        if labels:
            self.map_label = nn.Linear(labels, E if kind == "adm" else base, bias=kind != "adm")
        if augment:
            self.map_augment = nn.Linear(augment, base, bias=False)
        self.map_layer0, self.map_layer1 = nn.Linear(base, E), nn.Linear(E, E)
        self.conv_in = nn.Conv2d(3, base, 3, padding=1)
        self.enc, self.mid, self.dec = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        c, kept, self.joins = base, [base], []
        for l, m in enumerate(multiples):
            if l:
                self.enc.append(half(c))
                kept.append(c)
            for _ in range(blocks):
                self.enc.append(block(c, base * m, heads=heads(base * m, l in attention)))
                c = base * m
                kept.append(c)
        self.mid.append(block(c, c, heads=heads(c, True)))
        self.mid.append(block(c, c))
        for l, m in reversed(list(enumerate(multiples))):
            if l < len(multiples) - 1:
                self.dec.append(double(c))
                self.joins.append(False)
            for j in range(blocks + 1):
                wanted = l in attention and (kind != "ddpmpp" or j == blocks)
                self.dec.append(block(c + kept.pop(), base * m, heads=heads(base * m, wanted)))
                self.joins.append(True)
                c = base * m
        self.norm_out = nn.GroupNorm(min(32, c // 4), c, eps=1e-5 if kind == "adm" else 1e-6)
        self.conv_out = nn.Conv2d(c, 3, 3, padding=1)

    def embed(self, level, labels, augment):
        half = self.base // 2
        i = torch.arange(half, dtype=torch.float64)
        angle = level[:, None] * 10000 ** (-i / (half if self.kind == "adm" else half - 1))
        waves = [angle.cos(), angle.sin()]
        e = torch.cat(waves if self.kind == "adm" else waves[::-1], 1)
        if augment is not None:
            e = e + self.map_augment(augment)
        if labels is not None and self.kind != "adm":
            e = e + self.map_label(labels * math.sqrt(self.labels))
        e = self.map_layer1(F.silu(self.map_layer0(e)))
        if labels is not None and self.kind == "adm":
            e = e + self.map_label(labels)
        return F.silu(e)

    def forward(self, x, level, labels=None, augment=None):
        e = self.embed(level, labels, augment)
        h = self.conv_in(x)
        kept = [h]
        for part in self.enc:
            h = part(h, e)
            kept.append(h)
        for part in self.mid:
            h = part(h, e)
        for part, joins in zip(self.dec, self.joins):
            h = part(torch.cat([h, kept.pop()], 1) if joins else h, e)
        return self.conv_out(F.silu(self.norm_out(h)))


def denoise(net, x, sigma, **told):
    """EDM's preconditioning, for data of standard deviation 1/2."""
    s = sigma[:, None, None, None]
    spread = (s**2 + 0.25).sqrt()
    f = net(x / spread, sigma.log() / 4, **told)
    return 0.25 / spread**2 * x + s * 0.5 / spread * f


def unet(n, size, labels=0, augment=0, **spec):
    net = UNet(labels=labels, augment=augment, **spec).double()
    set_parameters(net)
    y, noise, weight = (pictures(name, n, size, 3) for name in ("y", "noise", "weight"))
    sigma = rounded(0.8 + 0.75 * numbers("sigma", n), n)
    told = {}
    if labels:
        told["labels"] = F.one_hot(torch.arange(n) % labels, labels).double()
    if augment:
        told["augment"] = rounded(numbers("augment", n * augment), n, augment)
    s = sigma[:, None, None, None]
    x = (y + s * noise).requires_grad_()
    denoised = denoise(net, x, sigma, **told)
    gradient, = torch.autograd.grad((weight * denoised).sum(), x)

    def loss_of():
        error = denoise(net, y + s * noise, sigma, **told) - y
        return ((s**2 + 0.25) / (s * 0.5) ** 2 * error**2).sum((1, 2, 3)).mean()

    tensors = {"denoised": last(denoised), "grad.x": last(gradient)} | learn(net, loss_of)
    return tensors, (f"U-Net {spec}, {n} pictures of {size} x {size}: D(x; sigma) of EDM, the gradient of "
                     f"sum(weight D) by x, EDM's loss and three steps of Adam, rate {RATE:g}, eps {EPS:g}")


def unet_s():
    return unet(2, 8, kind="ddpmpp", base=64, multiples=(1, 2, 2), blocks=2, attention={1}, augment=9)


def unet_ddpmpp():
    return unet(3, 8, kind="ddpmpp", base=16, multiples=(1, 2), blocks=2, attention={1}, labels=4, augment=9)


def unet_ddpm():
    return unet(3, 8, kind="ddpm", base=16, multiples=(1, 2), blocks=1, attention={1})


def unet_adm():
    return unet(2, 4, kind="adm", base=64, multiples=(1, 2), blocks=1, attention={1}, labels=5)


# ---- the energy network --------------------------------------------------------------------------


class EnergyBlock(nn.Module):
    def __init__(self, i, o, halves):
        super().__init__()
        self.halves = halves
        self.conv0, self.conv1 = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1, bias=False) if i != o or halves else None

    def forward(self, x):
        h = self.conv1(F.leaky_relu(self.conv0(x), 0.2)) + (self.skip(x) if self.skip is not None else x)
        return F.leaky_relu(F.avg_pool2d(h, 2) if self.halves else h, 0.2)


class EnergyNet(nn.Module):
    def __init__(self, nh):
        super().__init__()
        widths = [nh, nh, nh] + 4 * [2 * nh]
        self.conv_in = nn.Conv2d(3, nh, 3, padding=1)
        self.blocks = nn.ModuleList(EnergyBlock(i, o, k % 2 == 0)
                                    for k, (i, o) in enumerate(zip(widths, widths[1:])))
        self.out, self.scale = nn.Linear(2 * nh, 1), nn.Linear(1, 1)

    def forward(self, x):
        h = F.leaky_relu(self.conv_in(x), 0.2)
        for block in self.blocks:
            h = block(h)
        return self.scale(self.out(F.relu(h).sum((2, 3))))


def energy_net():
    net = EnergyNet(8).double()
    set_parameters(net)
    x = pictures("y", 3, 16, 3).requires_grad_()
    energy = net(x)
    gradient, = torch.autograd.grad(energy.sum(), x)
    tensors = {"energy": energy, "grad.x": last(gradient)} | learn(net, lambda: (net(x.detach()) ** 2).mean())
    return tensors, "energy network of width 8, 3 pictures of 16 x 16; the loss is the mean of squares"


# ---- encoder and decoder of a latent energy-based model -------------------------------------------


class Coder(nn.Module):
    """Encoder with instance norms and two heads, decoder; windows are (kernel, stride, padding), widths."""

    def __init__(self, channels, down, up, embedding, nz):
        super().__init__()
        enc, dec, c = [], [], channels
        for window, width in down:
            enc += [nn.Conv2d(c, width, *window), nn.InstanceNorm2d(width, affine=True), nn.LeakyReLU(0.2)]
            c = width
        self.enc = nn.Sequential(*enc, nn.Conv2d(c, embedding, 3 if channels == 1 else 4), nn.Flatten(),
                                 nn.LeakyReLU(0.01))
        self.mean, self.logvar = nn.Linear(embedding, nz), nn.Linear(embedding, nz)
        c = nz
        for window, width in up:
            dec += [nn.ConvTranspose2d(c, width, *window), nn.LeakyReLU(0.2)]
            c = width
        self.dec = nn.Sequential(*dec[:-1], nn.Tanh())

    def forward(self, x, eps):
        h = self.enc(x)
        mean, logvar = self.mean(h), self.logvar(h)
        return mean, logvar, self.dec((mean + (logvar / 2).exp() * eps)[:, :, None, None])


def coder(size, channels, up):
    nz, n, half = 5, 3, (4, 2, 1)
    net = Coder(channels, [((3, 1, 1), 4), (half, 8), (half, 16), (half, 32)], up, 16, nz)
    net = net.double()
    set_parameters(net)
    x = pictures("y", n, size, channels).requires_grad_()
    eps = rounded(numbers("noise", n * nz), n, nz)

    def loss_of(of=x.detach()):
        mean, logvar, picture = net(of, eps)
        rest = (mean**2 + logvar.exp() - 1 - logvar).sum(1).mean() / 2
        return 5 * ((of - picture) ** 2).sum((1, 2, 3)).mean() + rest

    mean, logvar, picture = net(x, eps)
    gradient, = torch.autograd.grad(loss_of(x), x)
    tensors = {"mean": mean, "logvar": logvar, "picture": last(picture), "grad.x": last(gradient)}
    return tensors | learn(net, loss_of), (f"encoder and decoder of width 4, {n} pictures of {size} x {size}; the loss is 5 "
                                           "times the squared error and the divergence of the codes from normal ones")


def coder_svhn():
    double = (4, 2, 1)
    return coder(32, 3, [((4, 1, 0), 32), (double, 16), (double, 8), (double, 3)])


def coder_mnist():
    double = (4, 2, 1)
    return coder(28, 1, [((7, 1, 0), 32), (double, 16), (double, 8), ((3, 1, 1), 1)])


class Lebm(Coder):
    """With the ratio network of its codes, of three stages."""

    def __init__(self, width=16, nz=5):
        super().__init__(3, [((3, 1, 1), 4), ((4, 2, 1), 8), ((4, 2, 1), 16), ((4, 2, 1), 32)],
                         [((4, 1, 0), 32), ((4, 2, 1), 16), ((4, 2, 1), 8), ((4, 2, 1), 3)], 16, nz)
        two = lambda i: nn.Sequential(nn.Linear(i, width), nn.LeakyReLU(0.2), nn.Linear(width, width))
        self.stage, self.input, self.join = two(width), two(nz), nn.Linear(2 * width, width)
        self.blocks, self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(3)), nn.Linear(width, 1)
        angle = torch.arange(3)[:, None] * 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        self.table = torch.stack([angle.sin(), angle.cos()], 2).reshape(3, width)

    def ratio(self, z, k):
        h = torch.cat([self.input(z), self.stage(self.table)[k]], 1)
        h = self.join(F.leaky_relu(h, 0.2))
        for block in self.blocks:
            h = h + block(F.leaky_relu(h, 0.2))
        return self.out(F.leaky_relu(h, 0.2))[:, 0]


def lebm():
    n, nz, m = 3, 5, 4
    net = Lebm().double()
    set_parameters(net)
    x = pictures("y", n, 32, 3)
    eps, num, den = (rounded(numbers(name, rows * nz), rows, nz)
                     for name, rows in (("noise", n), ("num", n), ("den", n * m)))
    variance = torch.tensor([0, 0.69175489, 0.92238785, 1], dtype=torch.float64)
    k = torch.arange(n) % 3

    def mixed(z, noise, at):
        s = variance[at][:, None]
        return (1 - s).sqrt() * noise + s.sqrt() * z

    def losses():
        h = net.enc(x)
        mean, logvar = net.mean(h), net.logvar(h)
        z = mean + (logvar / 2).exp() * eps
        numerator = net.ratio(mixed(z.detach(), num, k + 1), k)
        denominator = net.ratio(mixed(z.detach().repeat(m, 1), den, k.repeat(m)), k.repeat(m))
        critic = (F.softplus(math.log(m) - numerator).mean()
                  + m * F.softplus(denominator - math.log(m)).mean())
        picture = net.dec(z[:, :, None, None])
        rest = (mean**2 + logvar.exp() - 1 - logvar).sum(1).mean() / 2
        f = sum(net.ratio(z, torch.full((n,), stage)).mean() for stage in range(3))
        return critic, 5 * ((x - picture) ** 2).sum((1, 2, 3)).mean() + rest - f

    critic, coding = losses()
    return {"critic": critic, "coding": coding} | learn(net, lambda: sum(losses())), (
        f"latent energy-based model of width 4 and its ratio network of width 16, {n} pictures of 32 x 32, M = {m}; the loss is "
        "that of the critic on detached codes and that of encoder and decoder")


# ---- layers, with their parameters as PyTorch saves them -----------------------------------------


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.GroupNorm(3, 6, eps=1e-5)
        self.deconv = nn.ConvTranspose2d(6, 4, 4, stride=2, padding=1)
        self.bare, self.linear = nn.Conv2d(4, 5, 1, bias=False), nn.Linear(5, 2)

    def forward(self, x):
        x = self.bare(self.deconv(F.leaky_relu(self.norm(self.conv(x)), 0.2)))
        return self.linear(x.sum((2, 3)))


def layers():
    net = Layers().double()
    set_parameters(net)
    y = net(pictures("y", 2, 7, 3))
    return dict(net.state_dict()) | {"y": y}, ("convolution, norm, transposed convolution, 1 x 1 convolution, sum over "
                                               "pixels, linear layer of 2 pictures of 7 x 7; parameters as PyTorch has them")


# ---- files ---------------------------------------------------------------------------------------

make_goldens.FILES = {"layers": layers, "unet_s": unet_s, "unet_ddpmpp": unet_ddpmpp, "unet_ddpm": unet_ddpm,
                      "unet_adm": unet_adm, "energy_net": energy_net, "coder_svhn": coder_svhn,
                      "coder_mnist": coder_mnist, "lebm": lebm}

if __name__ == "__main__":
    sys.exit(make_goldens.main())
