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


# ---- for judging only: written when the rules stood --------------------------------------------------------


def spill(u):
    """How much of two spills of a pollutant is at a place and a time later."""
    mass, spread, place, later = ranges((7, 13), (.02, .12), (.01, 3), (30.01, 30.295))(u)

    def one(x, t):
        return mass / np.sqrt(4 * math.pi * spread * t) * np.exp(-x ** 2 / (4 * spread * t))

    return np.sqrt(4 * math.pi) * (one(1.5, 40) + one(1.5 - place, 40 + 30 - later))


def sulfur(u):
    """Radiative forcing of sulfate aerosols: a product of nine."""
    q, y, lag, t, a, rs, beta, psi, f = ranges((60, 85), (.4, .6), (3, 6), (.6, .85), (.25, .5), (.8, .9), (.2, .4), (3, 8),
                                               (1.4, 2.2))(u)
    return t ** 2 * (1 - a) * rs ** 2 * beta * psi * f * q * y * lag


def column(u):
    """What a short steel column bears before it buckles, in parts of its load."""
    b, d, h, e, load, bend, strength = ranges((200, 400), (10, 30), (100, 500), (1.9e5, 2.3e5), (2e5, 8e5), (5, 40),
                                              (330, 470))(u)
    area, module, inertia = 2 * b * d, b * d * h, b * d * h ** 2 / 2
    euler = math.pi ** 2 * e * inertia / 7500 ** 2
    return strength - load * (1 / area + bend / module * euler / np.maximum(euler - load, .05 * euler))


def beam(u):
    """A cantilever: stiff and light."""
    wide, thick, young, side, down = ranges((1, 4), (1, 4), (2.4e7, 3.4e7), (300, 700), (800, 1200))(u)
    bend = 4 * 100 ** 3 / (young * wide * thick) * np.hypot(down / thick ** 2, side / wide ** 2)
    return -(wide * thick + 3 * np.log(bend))


def reducer(u):
    """The weight of a gear box, less is better."""
    face, module, teeth, l1, l2, d1, d2 = ranges((2.6, 3.6), (.7, .8), (17, 28), (7.3, 8.3), (7.3, 8.3), (2.9, 3.9),
                                                 (5, 5.5))(u)
    return -(.7854 * face * module ** 2 * (3.3333 * teeth ** 2 + 14.9334 * teeth - 43.0934) -
             1.508 * face * (d1 ** 2 + d2 ** 2) + 7.4777 * (d1 ** 3 + d2 ** 3) + .7854 * (l1 * d1 ** 2 + l2 * d2 ** 2))


def reactor(u):
    """Yield of the middle one of two reactions in turn, by time, heat, catalyst and two purities."""
    time_, heat, catalyst, p, q = ranges((1, 20), (330, 390), (.2, 2), (.5, 1), (.6, 1))(u)
    first = catalyst * p * np.exp(21 - 8000 / heat)
    second = .6 * catalyst ** .5 * np.exp(24.5 - 9500 / heat)
    gap = np.where(np.abs(second - first) < 1e-6, 1e-6, second - first)
    return q * first / gap * (np.exp(-first * time_) - np.exp(-second * time_)) - .02 * catalyst


def currin(u):
    a, b, c, d = (u[:, :4] * .98 + .02).T
    top = (1 - np.exp(-1 / (2 * b))) * (2300 * a ** 3 + 1900 * a ** 2 + 2092 * a + 60) / (100 * a ** 3 + 500 * a ** 2 + 4 * a + 20)
    return top + 2 * np.sin(3 * c + 2 * d) - 3 * (d - .3) ** 2


def welch(u):
    v = u[:, :20] - .5
    return (5 * v[:, 11] / (1 + v[:, 0] + .5) + 5 * (v[:, 3] - v[:, 19]) ** 2 + v[:, 4] + 40 * v[:, 18] ** 3 - 5 * v[:, 18] +
            .05 * v[:, 1] + .08 * v[:, 2] - .03 * v[:, 5] + .03 * v[:, 6] - .09 * v[:, 8] - .01 * v[:, 9] - .07 * v[:, 10] +
            .25 * v[:, 12] ** 2 - .04 * v[:, 13] + .06 * v[:, 14] - .01 * v[:, 16] - .03 * v[:, 17])


def styblinski(u):
    v = 10 * u - 5
    return -(v ** 4 - 16 * v ** 2 + 5 * v).sum(1) / 2


def griewank(u):
    v = shifted(u, 20)
    return -(v ** 2).sum(1) / 40 + np.prod(np.cos(v / np.sqrt(np.arange(1, u.shape[1] + 1))), 1)


def michalewicz(u):
    v = math.pi * u
    return (np.sin(v) * np.sin(np.arange(1, u.shape[1] + 1) * v ** 2 / math.pi) ** 4).sum(1)


def zakharov(u):
    v = shifted(u, 6)
    line = (v * np.arange(1, u.shape[1] + 1)).sum(1) / 2
    return -np.log1p((v ** 2).sum(1) + line ** 2 + line ** 4)


def sobol(u):
    return np.prod([(np.abs(4 * u[:, j] - 2) + a) / (1 + a) for j, a in enumerate((0, .5, 3, 9, 9, 99, 99, 99))], 0)


def ishigami(u):
    v = math.pi * (2 * u[:, :3] - 1)
    return np.sin(v[:, 0]) + 5 * np.sin(v[:, 1]) ** 2 + .1 * v[:, 2] ** 4 * np.sin(v[:, 0])


FORMULAS = {"borehole": borehole, "circuit": circuit, "piston": piston, "wing": wing, "arm": arm, "hartmann": hartmann,
            "ackley": ackley, "rastrigin": rastrigin, "rosenbrock": rosenbrock, "friedman": friedman, "levy": levy,
            "spill": spill, "sulfur": sulfur, "column": column, "beam": beam, "reducer": reducer, "reactor": reactor,
            "currin": currin, "welch": welch, "styblinski": styblinski, "griewank": griewank, "michalewicz": michalewicz,
            "zakharov": zakharov, "sobol": sobol, "ishigami": ishigami}
