"""More formulas in the unit cube, larger is better: written after those of formulas.py, for judging only.

    LATER[name]    function of rows in the unit cube; columns beyond those of a formula do nothing
"""
import math

import numpy as np
from formulas import ranges, shifted


def schwefel(u):
    """The best is far from the second best."""
    v = 1000 * u - 500
    return (v * np.sin(np.sqrt(np.abs(v)))).sum(1)


def shekel(u):
    """Five foxholes of different depth."""
    at = np.array([[4, 4, 4, 4], [1, 1, 1, 1], [8, 8, 8, 8], [6, 6, 6, 6], [3, 7, 3, 7]]) / 10
    away = ((u[:, None, :4] - at) ** 2).sum(2) * 100
    return (1 / (away + np.array([1, 2, 2, 4, 4]))).sum(1)


def trid(u):
    n = u.shape[1]
    v = n * n * (2 * u - 1)
    return -((v - 1) ** 2).sum(1) + (v[:, 1:] * v[:, :-1]).sum(1)


def dixon(u):
    v = 20 * u - 10
    i = np.arange(2, u.shape[1] + 1)
    return -((v[:, 0] - 1) ** 2 + (i * (2 * v[:, 1:] ** 2 - v[:, :-1]) ** 2).sum(1))


def powell(u):
    v = 9 * u[:, :8].reshape(len(u), -1, 4) - 4
    a, b, c, d = v.transpose(2, 0, 1)
    return -((a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4).sum(1)


def goldstein(u):
    """The logarithm of a product of two polynomials; its valley is narrow."""
    a, b = (4 * u[:, :2] - 2).T
    one = 1 + (a + b + 1) ** 2 * (19 - 14 * a + 3 * a ** 2 - 14 * b + 6 * a * b + 3 * b ** 2)
    two = 30 + (2 * a - 3 * b) ** 2 * (18 - 32 * a + 12 * a ** 2 + 48 * b - 36 * a * b + 27 * b ** 2)
    return -np.log(one * two)


def camel(u):
    a, b = ranges((-2, 2), (-1.2, 1.2))(u)
    return -((4 - 2.1 * a ** 2 + a ** 4 / 3) * a ** 2 + a * b + (4 * b ** 2 - 4) * b ** 2)


def colville(u):
    a, b, c, d = (6 * u[:, :4] - 3).T
    return -(100 * (a ** 2 - b) ** 2 + (a - 1) ** 2 + (c - 1) ** 2 + 90 * (c ** 2 - d) ** 2 +
             10.1 * ((b - 1) ** 2 + (d - 1) ** 2) + 19.8 * (b - 1) * (d - 1))


def salomon(u):
    """Rings around a place."""
    far = np.sqrt((shifted(u, 6) ** 2).sum(1))
    return np.cos(2 * math.pi * far / 3) - .3 * far


def vessel(u):
    """What a tank holds for its price."""
    shell, head, radius, length = ranges((.5, 2), (.5, 2), (10, 60), (10, 200))(u)
    price = .6224 * shell * radius * length + 1.7781 * head * radius ** 2 + 3.1661 * shell ** 2 * length + 19.84 * shell ** 2 * radius
    return (math.pi * radius ** 2 * length + 4 / 3 * math.pi * radius ** 3) / (price + 500)


def exchanger(u):
    """Heat that passes between two streams, less the pumps."""
    area, hot, cold, gap, fouling, speed = ranges((2, 40), (.5, 4), (.5, 4), (20, 90), (1e-4, 2e-3), (.3, 3))(u)
    through = area / (1 / (900 * speed ** .8) + fouling + 1 / 1200)
    least, ratio = 4180 * np.minimum(hot, cold), np.minimum(hot, cold) / np.maximum(hot, cold)
    units = through / least
    fade = np.exp(-units * (1 - ratio))
    gain = np.where(ratio > .999, units / (1 + units), (1 - fade) / np.maximum(1 - ratio * fade, 1e-9))
    return (gain * least * gap) / 1e4 - 2 * speed ** 3 * area / 10


def enzyme(u):
    """A rate with inhibition by what is turned over, by heat and acidity."""
    food, most, half, block, heat, acid = ranges((.1, 50), (1, 8), (.5, 6), (5, 80), (285, 335), (4, 10))(u)
    warm = np.exp(-6000 * (1 / heat - 1 / 310)) / (1 + np.exp(25000 * (1 / 318 - 1 / heat)))
    return most * food / (half + food + food ** 2 / block) * warm / (1 + 10 ** (5.5 - acid) + 10 ** (acid - 8.5))


def growth(u):
    """Output of labour, land and capital with tired soil: powers, and too much of one is bad."""
    labour, land, capital, water, salt, seed, day = ranges((1, 20), (1, 30), (1, 50), (.1, 1.2), (0, 3), (.2, 2), (80, 200))(u)
    return (labour ** .4 * land ** .3 * capital ** .35 * np.exp(-((water - .8) / .35) ** 2 - .3 * salt) * seed * np.exp(-.6 * seed) *
            np.exp(-((day - 150) / 50) ** 2))


def solar(u):
    """Power of a cell at the load it is given."""
    light, heat, series, leak, load = ranges((200, 1100), (270, 350), (.005, .05), (5, 100), (.02, .5))(u)
    current, volt = 8 * light / 1000, np.full(len(u), .3)
    for _ in range(60):
        diode = 1e-8 * np.exp((heat - 300) / 12) * np.expm1(np.minimum(volt * (1 + series / load) / (8.617e-5 * heat * 1.3), 60))
        volt = np.clip(.9 * volt + .1 * load * np.maximum(current - diode - volt / leak, 0), 0, .8)
    return volt ** 2 / load


def pump(u):
    """Head of a pump where it meets the pipes, less its price."""
    turn, wide, pipe, length, rough, lift = ranges((900, 3000), (.1, .3), (.05, .2), (20, 200), (.01, .04), (1, 15))(u)
    top = (turn / 60 * math.pi * wide) ** 2 / 9.81 * .5
    loss = rough * length / pipe / (2 * 9.81) / (math.pi * pipe ** 2 / 4) ** 2
    flow = np.sqrt(np.maximum(top - lift, 0) / (loss + 2e4 * (.2 / wide) ** 4))
    return 1000 * flow - 60 * wide - 80 * pipe - 2 * (turn / 1000) ** 2


def tablet(u):
    """How much of a tablet is dissolved after a time, if it does not break."""
    force, binder, grain, speed, sugar, time_ = ranges((3, 25), (1, 10), (50, 400), (20, 100), (5, 60), (5, 60))(u)
    rate = .08 * np.exp(-.06 * force - .12 * binder) * (150 / grain) ** .7 * (1 + .02 * sugar) * (speed / 50) ** .4
    whole = 1 / (1 + np.exp(-(force * .4 + binder * .7 - 5)))
    return 100 * whole * (1 - np.exp(-rate * time_))


def alloy(u):
    """Strength of a mixture of metals, aged by heat and time."""
    cu, mg, si, zn, heat, time_, quench, roll = ranges((0, 5), (0, 3), (0, 2), (0, 7), (120, 220), (1, 30), (10, 200), (0, .6))(u)
    pairs = np.minimum(mg, 1.7 * si) * 60 + np.minimum(cu, 2 * mg) * 30 + np.minimum(zn, 3 * mg) * 25
    aged = np.log(time_) + .05 * (heat - 160)
    return 80 + pairs * np.exp(-((aged - 2.3) / .9) ** 2) * (1 - np.exp(-quench / 60)) + 120 * roll ** .6 - 18 * np.maximum(si + cu - 5, 0) ** 2


def lens(u):
    """How sharp a spot of two lenses is."""
    f1, f2, gap, tilt, stop = ranges((20, 80), (20, 80), (1, 60), (-.05, .05), (1, 12))(u)
    focus = f2 * (gap - f1) / (gap - f1 - f2 + 1e-9)
    blur = np.hypot(stop * (np.tanh((focus - 30) / 60)), 40 * tilt) + 25 / stop
    return -np.log(blur)


LATER = {f.__name__: f for f in (schwefel, shekel, trid, dixon, powell, goldstein, camel, colville, salomon, vessel, exchanger, enzyme,
                                 growth, solar, pump, tablet, alloy, lens)}
