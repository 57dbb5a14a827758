"""Published formulas in the unit cube, larger is better: tables that no setting of the program was chosen on.

    FORMULAS[name]    (number of columns, function of rows in the unit cube)

Columns beyond those of a formula do nothing; formulas for any number of columns say None.
"""
import math

import numpy as np


def ranges(*pairs):
    low, high = np.array(pairs, float).T
    return lambda u: (low + u[:, :len(low)] * (high - low)).T


def borehole(u):
    rw, r, tu, hu, tl, hl, length, kw = ranges((.05, .15), (100, 50000), (63070, 115600), (990, 1110), (63.1, 116),
                                               (700, 820), (1120, 1680), (9855, 12045))(u)
    wide = np.log(r / rw)
    return 2 * math.pi * tu * (hu - hl) / (wide * (1 + 2 * length * tu / (wide * rw ** 2 * kw) + tu / tl))


def circuit(u):
    rb1, rb2, rf, rc1, rc2, beta = ranges((50, 150), (25, 70), (.5, 3), (1.2, 2.5), (.25, 1.2), (50, 300))(u)
    b, load = 12 * rb2 / (rb1 + rb2), beta * (rc2 + 9)
    return (b + .74) * load / (load + rf) + 11.35 * rf / (load + rf) + .74 * rf * load / ((load + rf) * rc1)


def piston(u):
    mass, area, volume, spring, pressure, air, gas = ranges((30, 60), (.005, .02), (.002, .01), (1000, 5000),
                                                            (90000, 110000), (290, 296), (340, 360))(u)
    a = pressure * area + 19.62 * mass - spring * volume / area
    v = area / (2 * spring) * (np.sqrt(a ** 2 + 4 * spring * pressure * volume / gas * air) - a)
    return 2 * math.pi * np.sqrt(mass / (spring + area ** 2 * pressure * volume / gas * air / v ** 2))


def wing(u):
    """Lighter is better."""
    sw, fuel, aspect, sweep, q, taper, thick, load, weight, paint = ranges(
        (150, 200), (220, 300), (6, 10), (-10, 10), (16, 45), (.5, 1), (.08, .18), (2.5, 6), (1700, 2500), (.025, .08))(u)
    turn = np.cos(np.radians(sweep))
    return -(.036 * sw ** .758 * fuel ** .0035 * (aspect / turn ** 2) ** .6 * q ** .006 * taper ** .04 *
             (100 * thick / turn) ** -.3 * (load * weight) ** .49 + sw * paint)


def arm(u):
    """How far the hand of four joints is."""
    angle, length = 2 * math.pi * np.cumsum(u[:, :4], 1), u[:, 4:8]
    return np.hypot((length * np.cos(angle)).sum(1), (length * np.sin(angle)).sum(1))


def hartmann(u):
    a = np.array([[10, 3, 17, 3.5, 1.7, 8], [.05, 10, 17, .1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, .05, 10, .1, 14]])
    p = np.array([[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
                  [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]) / 1e4
    away = ((u[:, None, :6] - p) ** 2 * a).sum(2)
    return np.exp(-away) @ np.array([1, 1.2, 3, 3.2])


def shifted(u, wide):
    """Not in the middle, where nobody would have to look."""
    n = u.shape[1]
    return (u - .5 - .2 * np.sin(np.arange(1, n + 1))) * wide


def ackley(u):
    v = shifted(u, 8)
    return 20 * np.exp(-.2 * np.sqrt((v ** 2).mean(1))) + np.exp(np.cos(2 * math.pi * v).mean(1))


def rastrigin(u):
    v = shifted(u, 5)
    return -(v ** 2 - 10 * np.cos(2 * math.pi * v)).sum(1)


def rosenbrock(u):
    v = 4 * u - 2
    return -(100 * (v[:, 1:] - v[:, :-1] ** 2) ** 2 + (1 - v[:, :-1]) ** 2).sum(1)


def friedman(u):
    return 10 * np.sin(math.pi * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - .5) ** 2 + 10 * u[:, 3] + 5 * u[:, 4]


def levy(u):
    w = 1 + shifted(u, 16) / 4
    return -(np.sin(math.pi * w[:, 0]) ** 2 + ((w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:, :-1] + 1) ** 2)).sum(1) +
             (w[:, -1] - 1) ** 2)


FORMULAS = {"borehole": borehole, "circuit": circuit, "piston": piston, "wing": wing, "arm": arm, "hartmann": hartmann,
            "ackley": ackley, "rastrigin": rastrigin, "rosenbrock": rosenbrock, "friedman": friedman, "levy": levy}
