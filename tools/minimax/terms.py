#!/usr/bin/env python3
"""Writes lib/ir/formula_terms.h: every polynomial that the formulas use, for f32 and f64.

    pip install mpmath gmpy2 && tools/minimax/terms.py > lib/ir/formula_terms.h      (minutes)
    tools/minimax/terms.py f32 exp log                                               (some of them, to look at)

Each row: name, what p is for, how many terms, the interval, the function that p approximates, and the weight that turns p's
error into a relative error of the result. The output states the error left after rounding the coefficients.
"""
import sys

from minimax import f32, f64, fit, mp

ln2 = mp.log(2)
root = mp.sqrt


def mills(a):
    """Φ(-a) e^(a²/2)"""
    return mp.erfc(a / root(2)) / 2 * mp.exp(a * a / 2)


def scaled_erfc(a):
    return mp.erfc(a) * mp.exp(a * a)


def tail_row(name, what, f, top, k, terms, centred):
    """f(a) (a + k) as a polynomial of v = a / (a + k), or of 2 v - 1"""
    top, k = mp.mpf(top), mp.mpf(k)
    a = (lambda t: k * (1 + t) / (1 - t)) if centred else (lambda v: k * v / (1 - v))
    variable = "2 v - 1" if centred else "v"
    meaning = f"{what} (a + k) = p({variable}), v = a / (a + k), 0 ≤ a ≤ {mp.nstr(top, 4)}, k = {mp.nstr(k, 3)}"
    interval = (-1, (top - k) / (top + k)) if centred else (0, top / (top + k))
    return name, meaning, terms, interval, lambda v: f(a(v)) * (a(v) + k), lambda v: 1 / f(a(v)) / (a(v) + k)


def short_mills():
    """For gelu of f32. Of 280 pairs of slope and center drawn with center / slope from 2.5 to 2.66, where ten terms leave little, this one, fitted
    on 90 points, makes the least largest error of gelu over all operands, roundings included (others: up to 4.1 ulp; nine terms: from 3.9 on). What
    log2 e / 2 has lost in f32 is in here; beyond 12.95 gelu is denormal."""
    slope, center, top = f32("0.4665"), f32("1.2159"), mp.mpf("12.95")
    c = f32(mp.log(mp.e, 2)) / 2

    def f(q):
        a = center * q / (1 - slope * q)
        return -mp.erfc(a / root(2)) / 2 * 2**(c * a * a) * (slope * a + center) / 2**26

    return ("mills", f"-2^-26 Φ(-a) 2^(c a²) (k a + l) = p(q), q = a / (k a + l), 0 ≤ a ≤ 12.95, k = {mp.nstr(slope, 4)}, l = {mp.nstr(center, 5)}, c = log2 e / 2 in f32",
            10, (0, top / (slope * top + center)), f, lambda q: 1 / f(q), 90)


def rows(T):
    single = T == f32

    def pick(a, b):
        return a if single else b

    half = ln2 / 2 * mp.mpf("1.0002")
    third = (-mp.mpf(1) / 3, mp.mpf(1) / 3)
    angle = pick(mp.mpf(1), mp.pi / 4 * mp.mpf("1.001")) ** 2
    end = pick(3.95, 5.95)

    yield ("exp", "e^r = 1 + r + r² p(r), |r| ≤ ln 2", pick(7, 12), (-2 * half, 2 * half),
           lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r))
    yield ("expm1", "e^r = 1 + r + r² p(r), |r| ≤ ln 2 / 2, relative to e^r - 1", pick(5, 10), (-half, half),
           lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.expm1(r))
    yield ("exp2", "2^r = 1 + r p(r), |r| ≤ 1", pick(7, 14), (-1, 1),
           lambda r: mp.expm1(r * ln2) / r, lambda r: r / 2**r)
    if single:
        yield ("exp2_half", "2^r = 1 + r p(r), |r| ≤ 1/2", 6, (-mp.mpf("0.5001"), mp.mpf("0.5001")),
               lambda r: mp.expm1(r * ln2) / r, lambda r: r / 2**r)
    yield ("log", "log(1 + f) = f + f² p(f), |f| ≤ 1/3", pick(9, 20), third,
           lambda f: (mp.log1p(f) - f) / f**2, lambda f: f**2 / mp.log1p(f))
    for base in (2, 10):
        yield (f"log{base}", f"log{base}(1 + f) = f / ln {base} + f² p(f), |f| ≤ 1/3", pick(9, 20), third,
               lambda f, L=1 / mp.log(base): (mp.log1p(f) - f) / f**2 * L,
               lambda f, L=1 / mp.log(base): f**2 / mp.log1p(f) / L)
    yield ("erf", f"log(erfc -b) = b + b p(b), -{end} ≤ b ≤ 0", pick(9, 24), (-end, 0),
           lambda b: mp.log(mp.erfc(-b)) / b - 1, lambda b: b * mp.erfc(-b) / mp.erf(-b))
    yield short_mills() if single else tail_row("mills", "Φ(-a) e^(a²/2)", mills, 39, 4, 23, True)
    yield tail_row("erfc", "erfc(a) e^(a²)", scaled_erfc, pick(10.25, 27.5), pick(1.5, 3.078125), pick(11, 23), True)
    yield ("sin", f"sin r = r + r z p(z), z = r² ≤ {mp.nstr(angle, 3)}", pick(4, 6), (0, angle),
           lambda z: (mp.sin(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.sin(root(z)))
    yield ("cos", f"cos r = 1 - z / 2 + z² p(z), z = r² ≤ {mp.nstr(angle, 3)}", pick(4, 6), (0, angle),
           lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(root(z)))
    yield ("asin", "asin s = s + s z p(z), z = s² ≤ 1/4", pick(5, 13), (0, mp.mpf(1) / 4),
           lambda z: (mp.asin(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.asin(root(z)))
    yield ("atan", "atan s = s + s z p(z), z = s² ≤ 1", pick(9, 20), (0, 1),
           lambda z: (mp.atan(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.atan(root(z)))
    yield ("rcbrt", "(1 + f)^(-1/3), |f| ≤ 1/3, a first guess", pick(3, 6), third,
           lambda f: 1 / mp.cbrt(1 + f), lambda f: mp.cbrt(1 + f))
    if single:
        return
    yield ("short_log2", "log2(1 + f) = f p(f), |f| ≤ 1/3, for pow of f32", 14, third,
           lambda f: mp.log1p(f) / f / ln2, lambda f: f / mp.log1p(f) * ln2)
    yield ("short_exp2", "2^r, |r| ≤ 1/2, for pow of f32", 8, (-mp.mpf(1) / 2, mp.mpf(1) / 2),
           lambda r: mp.mpf(2)**r, lambda r: mp.mpf(2)**-r)
    yield ("atanh", "atanh s = s (1 + z / 3 + z² p(z)), z = s² ≤ 1/25", 8, (0, mp.mpf(1) / 24.9),
           lambda z: (mp.atanh(root(z)) / root(z) - 1 - z / 3) / z**2, lambda z: z**2)


def table(T, ctype, bits, suffix, only):
    print("template <>\nstruct Terms<%s> {" % ctype)
    for name, meaning, terms, (low, high), f, w, *grid in rows(T):
        if only and name not in only:
            continue
        c, left, ideal = fit(f, w, range(terms), low, high, T, *grid)
        left, ideal = (mp.nstr(e * 2**bits, 3) for e in (left, ideal))
        print(f"  /// {meaning}; error {left}, unrounded {ideal} (2^-{bits})")
        print("  static constexpr %s %s[] = {%s};" % (ctype, name, ", ".join(float(v).hex() + suffix for v in c)))
        sys.stdout.flush()
    print("};\n")


if __name__ == "__main__":
    which, only = (sys.argv[1:2] or ["all"])[0], sys.argv[2:]
    print("#pragma once\n// Generated by tools/minimax/terms.py; do not edit.\n// clang-format off\n")
    print("namespace fusec::formulas {\n\ntemplate <class T>\nstruct Terms;\n")
    if which in ("f32", "all"):
        table(f32, "float", 24, "f", only)
    if which in ("f64", "all"):
        table(f64, "double", 53, "", only)
    print("}  // namespace fusec::formulas")
