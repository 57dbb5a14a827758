"""Formulas in the unit cube, larger is better: the last ones, written before the predictions that they judge were made.

    LAST[name]    function of rows in the unit cube; columns beyond those of a formula do nothing
"""
import math

import numpy as np
from formulas import ranges


def park(u):
    a, b, c, d = u[:, :4].T
    a = a + 1e-3
    return a / 2 * (np.sqrt(1 + (b + c ** 2) * d / a ** 2) - 1) + (a + 3 * d) * np.exp(1 + np.sin(c))


def franke(u):
    """Two hills, a smaller one, and a hole."""
    a, b = 9 * u[:, 0], 9 * u[:, 1]
    return (.75 * np.exp(-(a - 2) ** 2 / 4 - (b - 2) ** 2 / 4) + .75 * np.exp(-(a + 1) ** 2 / 49 - (b + 1) / 10) +
            .5 * np.exp(-(a - 7) ** 2 / 4 - (b - 3) ** 2 / 4) - .2 * np.exp(-(a - 4) ** 2 - (b - 7) ** 2))


def langermann(u):
    """Rings of waves around five places, in the first three columns."""
    at = np.array([[3, 5, 2], [5, 2, 6], [2, 1, 4], [1, 4, 8], [7, 9, 3]])
    away = ((10 * u[:, None, :3] - at) ** 2).sum(2)
    return (np.exp(-away / (4 * math.pi)) * np.cos(.6 * math.pi * np.sqrt(away))) @ np.array([1, 2, 5, 2, 3])


def alpine(u):
    v = 9 * u + .5
    return np.prod(np.sqrt(v[:, :4]) * np.sin(v[:, :4]), 1)


def qing(u):
    v, i = 6 * u - 3, np.arange(1, u.shape[1] + 1)
    return -np.log1p(((v ** 2 - i) ** 2).sum(1))


def bratley(u):
    """Products that end after one, two, ... columns, with turning signs."""
    n = u.shape[1]
    return -sum((-1) ** k * np.prod(.4 + u[:, :k], 1) for k in range(1, n + 1))


def tilted(u):
    """A long bowl whose axes are none of the columns'."""
    n = u.shape[1]
    turn, _ = np.linalg.qr(np.cos(np.arange(n * n, dtype=float).reshape(n, n) ** 1.3))
    return -((u - .5 - .2 * np.sin(np.arange(n))) @ turn) ** 2 @ (10.0 ** np.linspace(0, 2, n))


def fermenter(u):
    """What comes out of a vessel with cells that are fed, warmed and poisoned by what they make."""
    feed, flow, heat, acid, air, poison = ranges((2, 40), (.02, .5), (288, 318), (4, 8), (.1, 3), (20, 90))(u)
    top = .6 * np.exp(-((heat - 306) / 7) ** 2 - ((acid - 6) / 1.1) ** 2) * air / (.4 + air)
    left = np.where(top > flow, 1.2 * flow / np.maximum(top - flow, 1e-6), feed)
    cells = .5 * np.maximum(feed - left, 0)
    return flow * cells / (1 + cells / poison)


def catalyst(u):
    """Two gases that compete for the same places; and the product decays at heat."""
    one, two, heat, time_, load = ranges((.1, 10), (.1, 10), (400, 700), (.1, 10), (.1, 5))(u)
    places = (1 + .8 * one * np.exp(900 / heat - 2) + 1.2 * two) ** 2
    rate, decay = load * np.exp(8 - 4500 / heat), np.exp(14 - 9500 / heat)
    made = 1 - np.exp(-rate * one * two / places * time_)
    return 100 * made * np.exp(-decay * time_) - 2 * load


def turbine(u):
    """Power of a wheel in the wind, and what it costs."""
    wind, wide, turn, pitch, tall = ranges((4, 16), (10, 60), (.5, 4), (-2, 20), (20, 120))(u)
    here = wind * (tall / 50) ** .14
    speed = turn * wide / here
    inner = 1 / np.maximum(1 / (speed + .08 * pitch) - .035 / (pitch ** 3 + 10), 1e-3)
    part = np.clip(.5176 * (116 / inner - .4 * pitch - 5) * np.exp(-21 / inner) + .0068 * speed, 0, .5)
    return np.log1p(.6e-3 * math.pi * wide ** 2 * here ** 3 * part) - .004 * tall - .01 * wide


def spring(u):
    """A light coil that does not break."""
    wire, coil, turns, load = ranges((.05, .3), (.3, 1.5), (2, 15), (50, 200))(u)
    index = coil / wire
    stress = 8 * load * coil / (math.pi * wire ** 3) * ((4 * index - 1) / np.maximum(4 * index - 4, .1) + .615 / index) / 1e5
    return -np.log((turns + 2) * coil * wire ** 2 * 100 + 20 * np.maximum(stress - 1.9, 0))


def welded(u):
    """Price of a welded beam, and of its bending and buckling."""
    weld, length, tall, thick = ranges((.125, 2), (.5, 8), (1, 10), (.125, 2))(u)
    price = 1.10471 * weld ** 2 * length + .04811 * tall * thick * (14 + length)
    bend, sag = 504 / (tall ** 2 * thick), 2.1952 / (tall ** 3 * thick)
    return -price - 4 * np.maximum(bend / 30 - 1, 0) ** .5 - 6 * np.maximum(sag / .25 - 1, 0) ** .5


def crop(u):
    """What is least decides; too much of salts does harm."""
    n, p, k, water, sun, salt, plants = ranges((0, 250), (0, 100), (0, 150), (100, 900), (5, 25), (0, 12), (2, 14))(u)
    least = np.minimum.reduce([1 - np.exp(-.015 * n), 1 - np.exp(-.05 * p), 1 - np.exp(-.03 * k), water / (150 + water) * 1.2])
    return 12 * least * (sun / 20) ** .5 * np.clip(1 - .07 * (salt - 3), 0, 1) * plants / 8 * np.exp(1 - plants / 8) - .004 * n


def synergy(u):
    """Three drugs that help one another, and harm."""
    a, b, c = np.maximum(ranges((0, 10), (0, 10), (0, 10))(u), 0)  # a bound that was rounded may be below
    dose = a / 3 + b / 4 + c / 2.5 + .8 * np.sqrt(a * b / 12) + .5 * np.sqrt(b * c / 10) - .4 * np.sqrt(a * c / 7.5)
    harm = .02 * a ** 2 + .015 * b ** 2 + .03 * c ** 2 + .01 * a * c
    return np.maximum(dose, 0) ** 2.5 / (1 + np.maximum(dose, 0) ** 2.5) - .25 * harm


def queue(u):
    """Gain of a counter: customers served less those who wait and those who serve."""
    come, serve, hands, room, price = ranges((2, 30), (1, 8), (1, 8), (1, 20), (1, 10))(u)
    asked = come * np.exp(-.12 * price)
    use = asked / (serve * hands)
    full = np.where(np.abs(use - 1) < 1e-6, 1 / (room + 1), (1 - use) * use ** room / (1 - use ** (room + 1) + 1e-12))
    return price * asked * (1 - np.clip(full, 0, 1)) - 3 * hands - .8 * serve ** 1.2 - .5 * room


def filter(u):
    """Gain of a resonant circuit at a frequency, in decibels."""
    r, coil, store, load, tone = ranges((1, 50), (-5, -2), (-8, -5), (10, 1000), (2, 5))(u)
    w, coil, store = 2 * math.pi * 10 ** tone, 10 ** coil, 10 ** store
    branch = 1 / (1 / load + 1j * w * store)
    return 20 * np.log10(np.abs(branch / (branch + r + 1j * w * coil)) + 1e-3)


def fin(u):
    """Heat that a row of fins gives off for its weight and wind."""
    long_, thick, gap, wind, metal, heat = ranges((5, 80), (.3, 5), (.5, 10), (.5, 10), (20, 400), (10, 80))(u)
    loss = 8 + 6 * wind ** .7 * gap / (gap + 2)
    m = np.sqrt(2 * loss / (metal * thick / 1000)) * long_ / 1000
    share = np.tanh(m) / m
    n = 100 / (thick + gap)
    return np.log(n * loss * 2 * long_ * share * heat / 1e4 + 1) - .002 * n * thick * long_ / 10 - .01 * wind ** 2


def polymer(u):
    """Length of chains: monomer over the root of the starter, ended by heat and by a stopper."""
    monomer, starter, stopper, heat, time_, solvent = ranges((.5, 8), (.001, .1), (0, .02), (320, 380), (.2, 12), (0, .8))(u)
    grow, start = np.exp(12 - 3200 / heat), np.exp(30 - 13000 / heat)
    left = starter * np.exp(-start * time_ * 30)
    chain = grow * monomer * (1 - solvent) / (np.sqrt(starter * start + 1e-9) * 40 + 900 * stopper)
    return chain * (1 - np.exp(-time_ / 3)) * np.sqrt(left / starter)


def sharpe(u):
    """Return over risk of shares in six papers."""
    n = min(u.shape[1], 6)
    part = (u[:, :n] + .02) / (u[:, :n] + .02).sum(1, keepdims=True)
    gain = np.array([.03, .05, .08, .06, .1, .04])[:n]
    side = np.array([[1, .2, .6, .1, -.3, .4], [.3, 1, -.2, .5, .4, -.1]])[:, :n] * np.array([.1, .15, .3, .2, .4, .12])[:n]
    return (part @ gain) / np.sqrt(((part @ side.T) ** 2).sum(1) + (part ** 2) @ (.01 + gain ** 2))


def switches(u):
    """Half of the columns decide which of the others count."""
    h = u.shape[1] // 2
    on = 1 / (1 + np.exp(-12 * (u[:, :h] - .55)))
    return (on * np.sin(2.5 * u[:, h:2 * h] + np.arange(h)) * (1 + np.arange(h) % 3)).sum(1) - .4 * on.sum(1) ** 1.5 / math.sqrt(h)


LAST = {f.__name__: f for f in (park, franke, langermann, alpine, qing, bratley, tilted, fermenter, catalyst, turbine, spring, welded,
                                crop, synergy, queue, filter, fin, polymer, sharpe, switches)}
