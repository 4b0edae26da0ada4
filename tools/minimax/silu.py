#!/usr/bin/env python3
"""Draws the terms of bf16's silu (SiluTerms in lib/ir/formula_narrow.h): polynomials about the minimax ones with which the exact steps have the
bits of the form that CUDA takes, ex2.approx and rcp.approx, on every operand.

    pip install numpy && tools/minimax/silu.py          (a minute)
"""
import numpy as np

f32, exact = np.float32, np.longdouble  # 64 bits: the product of two f32 fits
LOG2E, BIAS = f32(1.4426950408889634), f32(2.0**-16) * f32(1 + 17 * 2.0**-23)
np.seterr(all="ignore")


def fma(a, b, c):
    return (np.asarray(a, exact) * np.asarray(b, exact) + np.asarray(c, exact)).astype(f32)


def horner(x, terms):
    out = np.full_like(x, terms[-1])
    for c in terms[-2::-1]:
        out = fma(out, x, c)
    return out


def bf16(y):
    b = y.view(np.uint32).astype(np.uint64)
    return (b + 0x7FFF + (b >> 16 & 1) >> 16).astype(np.uint32)


def guess(d):
    return (np.uint32(0x7EB504F3) - d.view(np.uint32)).view(f32)


def hardware(x, ex2_error, rcp_error):
    """silu_of_bf16 (codegen/cuda/cells.cuh) with approximations that are off by so much, but exact on integers and powers of two."""
    x = np.maximum(x, f32(-98))
    u = fma(x, -LOG2E, f32(-16))
    power = np.exp2(u.astype(exact))
    power = np.where(u == np.rint(u), power, power * (1 + ex2_error))
    d = (np.where(power < 2.0**-126, 0, power) + exact(2.0**-16)).astype(f32)
    r = 1 / d.astype(exact)
    r = np.where(np.frexp(d)[0] == 0.5, r, r * (1 + rcp_error))
    return ((x * BIAS).astype(exact) * r).astype(f32)


def steps(x, exp2, inverse):
    x = np.maximum(x, f32(-98))
    low, offset = np.minimum(x, f32(30)), f32(1.5 * 2**23 + 127 - 32)
    s = fma(low, -LOG2E, offset)
    r = fma(low, -LOG2E, -(s - offset))
    d = fma(horner(r, [f32(c * 2.0**16) for c in exp2]), (s.view(np.uint32) << 23).view(f32), f32(2.0**-16))
    g = guess(d)
    return (x * BIAS) * (g * horner(d * g, inverse))


def fit(basis, target):
    """Least squares, reweighted by the errors it leaves."""
    w = np.ones(len(target))
    for _ in range(60):
        c = np.linalg.lstsq(basis * np.sqrt(w)[:, None], target * np.sqrt(w), rcond=None)[0]
        e = np.abs(basis @ c - target)
        w = w * (e / e.max() + 1e-3)
        w /= w.sum()
    return c


def main():
    x = (np.arange(65536, dtype=np.uint32) << 16).view(f32)
    x = x[np.isfinite(x)]
    want = bf16(hardware(x, 2.0**-21, -(2.0**-22)))
    assert (want == bf16(hardware(x, -(2.0**-21), 2.0**-22))).all()
    nodes = (np.cos(np.pi * (np.arange(4001) + 0.5) / 4001) + 1) / 2
    r = nodes - 0.5  # 2^r = 1 + r q(r), exact at 0
    q = fit(np.stack([r ** (k + 1) / 2**r for k in range(4)], 1), 1 - 1 / 2**r)
    # Exact at 0, too: 1/2 of a denormal operand is halfway between two results.
    one = f32(2.0**-15)
    start = float(guess(one) * one)
    low, high = np.sqrt(0.5), (1 + np.sqrt(2)) ** 2 / 8
    z = low + (high - low) * nodes
    a = fit(np.stack([(z - start) * z ** (k + 1) for k in range(2)], 1), 1 - z / start)
    minimax = [1 / start - a[0] * start, a[0] - a[1] * start, a[1]]
    hard = (np.abs(x) > 2.0**-10) & (np.abs(x) < 100)
    rng = np.random.default_rng(1)
    while True:
        exp2 = [f32(1)] + [f32(c * (1 + rng.normal() * 2.0 ** -(20 - 3 * k))) for k, c in enumerate(q)]
        inverse = [f32(c * (1 + rng.normal() * 2.0**-21)) for c in minimax]
        for _ in range(3):
            half = guess(one) * horner(np.array([start], f32), inverse)[0]
            inverse[0] = f32(inverse[0] - (float(half) - 2.0**15) / float(guess(one)))
        if (bf16(steps(x[hard], exp2, inverse)) == want[hard]).all() and (bf16(steps(x, exp2, inverse)) == want).all():
            break
    for name, terms in (("exp2", exp2), ("inverse", inverse)):
        print(name, ", ".join(float(c).hex() for c in terms))


if __name__ == "__main__":
    main()
