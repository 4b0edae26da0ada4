"""Weighted minimax polynomials with rounded coefficients (Remez exchange on a Chebyshev grid, in mpmath).

fit() minimises max |w(x) (p(x) - f(x))| over [a, b] with p = sum c_k x^(e_k); the sign of w does not matter. Coefficients
are rounded to the target format one by one, lowest exponent first, and the rest is fitted again, so that later ones absorb
the rounding of earlier ones.
"""
import struct

import mpmath as mp

mp.mp.prec = 240


def f32(v):
    return mp.mpf(struct.unpack("f", struct.pack("f", float(v)))[0])


def f64(v):
    return mp.mpf(float(v))


def lawson(powers, f, w, rounds=8):
    """Near-minimax by least squares, reweighted by the errors it leaves."""
    n, best = len(powers[0]), None
    weights = [u * u for u in w]
    for _ in range(rounds):
        scaled = [[p * u for p in row] for row, u in zip(powers, weights)]
        m = mp.matrix(n, n)
        rhs = mp.matrix(n, 1)
        columns = list(zip(*powers))
        for r, left in enumerate(zip(*scaled)):
            rhs[r] = mp.fdot(left, f)
            for c in range(r, n):
                m[r, c] = m[c, r] = mp.fdot(left, columns[c])
        c = mp.lu_solve(m, rhs)
        c = [c[k] for k in range(n)]
        errors = [u * abs(v - mp.fdot(row, c)) for u, v, row in zip(w, f, powers)]
        worst = max(errors)
        if best is None or worst < best[1]:
            best = (c, worst)
        weights = [u * e / worst for u, e in zip(weights, errors)]
    return best


def remez(points, f, w, exponents):
    """Best coefficients on the grid, and the largest weighted error."""
    n = len(exponents)
    powers = [[x ** e for e in exponents] for x in points]
    picks = [round(i * (len(points) - 1) / n) for i in range(n + 1)]
    best = None
    for _ in range(40):
        m = mp.matrix(n + 1, n + 1)
        rhs = mp.matrix(n + 1, 1)
        for row, i in enumerate(picks):
            for col in range(n):
                m[row, col] = powers[i][col] * w[i]
            m[row, n] = (-1) ** row
            rhs[row] = f[i] * w[i]
        c = mp.lu_solve(m, rhs)
        errors = [w[i] * (f[i] - mp.fdot(powers[i], c[:n])) for i in range(len(points))]
        worst = max(abs(e) for e in errors)
        if best is None or worst < best[1]:
            best = ([c[k] for k in range(n)], worst)
        # one extremum for each run of equal sign, then drop the smaller end until n + 1 are left
        peaks = []
        for i, e in enumerate(errors):
            if peaks and (errors[peaks[-1]] >= 0) == (e >= 0):
                if abs(e) > abs(errors[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        if len(peaks) < n + 1:  # the basis need not be a Haar system when 0 is inside: no alternation to exchange
            other = lawson(powers, f, w)
            return min(best, other, key=lambda t: t[1])
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        if worst - abs(c[n]) < worst * mp.mpf("1e-3"):
            break
        picks = peaks
    return best


def fit(f, w, exponents, a, b, rounding, grid=None):
    """Rounded coefficients, the weighted error that they leave, and the error before rounding. f may be undefined at 0: no
    point of the grid is exactly there."""
    count = grid or max(200, 24 * len(exponents))
    a, b = mp.mpf(a), mp.mpf(b)
    points = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    values, weights = [f(x) for x in points], [abs(w(x)) for x in points]
    out, rest = [], list(exponents)
    c, ideal = remez(points, values, weights, rest)
    while rest:
        # Of the two neighbours in the format, the one that the remaining coefficients make good better.
        e, rest = rest[0], rest[1:]
        near = rounding(c[0])
        far = rounding(near + (1 if c[0] > near else -1) * abs(near) * mp.mpf(2) ** -(23 if rounding is f32 else 52))
        trials = []
        for r in (near, far):
            left = [v - r * x ** e for v, x in zip(values, points)]
            # A new fit of the rest, or the coefficients as they are where a fit does no better.
            kept = max(abs(u * (v - sum(k * x ** g for k, g in zip(c[1:], rest))))
                       for v, u, x in zip(left, weights, points))
            options = [(c[1:], kept)] + ([remez(points, left, weights, rest)] if rest else [])
            c2, worst = min(options, key=lambda t: t[1])
            trials.append((worst, len(trials), r, left, c2))
        worst, _, r, values, c = min(trials, key=lambda t: t[:2])
        out.append(r)
    return out, worst, ideal
