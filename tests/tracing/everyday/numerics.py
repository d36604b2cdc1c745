"""Roots, integrals, interpolation, differential equations, matrices."""

import numpy as np
from tracing.everyday.case import recipe


def matrix(r, n):
    return (r.normal(size=(n, n)) + n * np.eye(n),)


def system(r, n):
    return r.normal(size=(n, n)) + n * np.eye(n), r.normal(size=n)


def symmetric(r, n):
    a = r.normal(size=(n, n))
    return (a + a.T,)


def samples(r, n):
    return np.sort(r.random(n)), r.normal(size=n)


@recipe(lambda r, n: (r.uniform(1, 100, n),), large=200_000)
def newton_square_root(a):
    x = a
    for _ in range(12):
        x = 0.5 * (x + a / x)
    return x


@recipe(lambda r, n: (2.0,), control_flow=True)
def newton_until_it_stays(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


@recipe(lambda r, n: (0.0, 2.0), control_flow=True)
def bisection(low, high):
    for _ in range(50):
        middle = 0.5 * (low + high)
        if np.cos(middle) - middle > 0:
            low = middle
        else:
            high = middle
    return low


@recipe(lambda r, n: (0.0, 1.0))
def secant(x, y):
    for _ in range(7):
        fx, fy = np.cos(x) - x, np.cos(y) - y
        x, y = y, y - fy * (y - x) / np.where(fy == fx, 1, fy - fx)
    return y


@recipe(lambda r, n: (np.array([1.0, 0.5]),))
def newton_for_systems(x):
    for _ in range(10):
        value = np.array([x[0] ** 2 + x[1] ** 2 - 4, np.exp(x[0]) + x[1] - 1])
        slope = np.array([[2 * x[0], 2 * x[1]], [np.exp(x[0]), 1.0]])
        x = x - np.linalg.solve(slope, value)
    return x


@recipe(lambda r, n: (0.5,), control_flow=True)
def fixed_point(x):
    steps = 0
    while abs(np.cos(x) - x) > 1e-10:
        x = np.cos(x)
        steps += 1
    return x, steps


@recipe(samples, large=1_000_000)
def trapezoid_rule(x, y):
    return np.sum((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2)


@recipe(lambda r, n: (0.0, 2.0))
def simpson_rule(a, b):
    x = np.linspace(a, b, 101)
    y = np.exp(-(x**2))
    return (b - a) / 300 * (y[0] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum() + y[-1])


@recipe(lambda r, n: (0.0, 3.0))
def gauss_quadrature(a, b):
    x, w = np.polynomial.legendre.leggauss(8)
    t = 0.5 * (b - a) * x + 0.5 * (a + b)
    return 0.5 * (b - a) * np.sum(w * np.sin(t))


@recipe(lambda r, n: (0.0, 1.0))
def romberg(a, b):
    rows = np.zeros((5, 5))
    for i in range(5):
        x = np.linspace(a, b, 2**i + 1)
        rows[i, 0] = np.trapezoid(1 / (1 + x), x)
        for j in range(1, i + 1):
            rows[i, j] = (4**j * rows[i, j - 1] - rows[i - 1, j - 1]) / (4**j - 1)
    return rows[-1, -1]


@recipe(lambda r, n: (r.random(2 * n), r.random(2 * n)), large=500_000)
def pi_by_monte_carlo(x, y):
    return 4 * np.mean(x * x + y * y <= 1)


@recipe(samples)
def central_differences(x, y):
    return np.gradient(y, x)


@recipe(lambda r, n: (*samples(r, n), r.random(3 * n)), large=100_000)
def linear_interpolation(x, y, at):
    return np.interp(at, x, y)


@recipe(lambda r, n: (np.linspace(0, 1, 6), r.normal(size=6), r.random(n)))
def lagrange_interpolation(x, y, at):
    total = np.zeros_like(at)
    for i in range(len(x)):
        term = y[i] * np.ones_like(at)
        for j in range(len(x)):
            if i != j:
                term *= (at - x[j]) / (x[i] - x[j])
        total += term
    return total


@recipe(lambda r, n: (np.linspace(0, 1, 6), r.normal(size=6), r.random(n)))
def divided_differences(x, y, at):
    c = y.copy()
    for j in range(1, len(x)):
        c[j:] = (c[j:] - c[j - 1 : -1]) / (x[j:] - x[:-j])
    p = c[-1]
    for k in range(len(x) - 2, -1, -1):
        p = p * (at - x[k]) + c[k]
    return p


@recipe(lambda r, n: (np.arange(8.0), r.normal(size=8), 7 * r.random(n)))
def cubic_spline(x, y, at):
    h = np.diff(x)
    a = np.eye(len(x))
    right = np.zeros(len(x))
    for i in range(1, len(x) - 1):
        a[i, i - 1], a[i, i], a[i, i + 1] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        right[i] = 3 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    c = np.linalg.solve(a, right)
    b = np.diff(y) / h - h * (2 * c[:-1] + c[1:]) / 3
    d = np.diff(c) / (3 * h)
    i = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
    t = at - x[i]
    return y[i] + t * (b[i] + t * (c[i] + t * d[i]))


@recipe(samples)
def polynomial_fit(x, y):
    return np.polyval(np.polyfit(x, y, 3), x)


@recipe(lambda r, n: (r.normal(size=n),))
def chebyshev_series(x):
    t = [np.ones_like(x), x]
    for _ in range(4):
        t.append(2 * x * t[-1] - t[-2])
    return np.stack(t).T @ np.arange(6.0)


@recipe(lambda r, n: (r.normal(size=6), r.random(n)), large=500_000)
def horner(coefficients, x):
    y = np.zeros_like(x)
    for i in range(6):
        y = y * x + coefficients[i]
    return y


@recipe(lambda r, n: (1.0, 0.0))
def runge_kutta(x, v):
    def slope(state):
        return np.array([state[1], -state[0]])

    state, h = np.array([x, v]), 0.1
    for _ in range(20):
        k1 = slope(state)
        k2 = slope(state + h / 2 * k1)
        k3 = slope(state + h / 2 * k2)
        k4 = slope(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


@recipe(lambda r, n: (1.0, 50), control_flow=True)
def explicit_euler(y, steps):
    for i in range(steps):
        y = y + 0.01 * (-2 * y + np.sin(i * 0.01))
    return y


@recipe(lambda r, n: (1.0,), control_flow=True)
def adaptive_step(y):
    t, h = 0.0, 0.1
    while t < 1:
        if t + h > 1:
            h = 1 - t
        once = y * np.exp(-h)
        rough = y * (1 - h + h * h / 2)
        if abs(once - rough) < 1e-4:
            t += h
            y = once
            h = h * 1.5
        else:
            h = h / 2
    return y


@recipe(lambda r, n: (r.random(n),), size=32, large=100_000)
def heat_equation(u):
    for _ in range(20):
        u[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


@recipe(system, size=12)
def thomas_algorithm(a, d):
    n = len(d)
    low, middle, high = np.diag(a, -1), np.diag(a), np.diag(a, 1)
    c, e = np.zeros(n), np.zeros(n)
    c[0], e[0] = high[0] / middle[0], d[0] / middle[0]
    for i in range(1, n):
        under = middle[i] - low[i - 1] * c[i - 1]
        c[i] = (high[i] if i < n - 1 else 0) / under
        e[i] = (d[i] - low[i - 1] * e[i - 1]) / under
    for i in range(n - 2, -1, -1):
        e[i] -= c[i] * e[i + 1]
    return e


@recipe(system, size=8)
def gaussian_elimination(a, b):
    n = len(b)
    for i in range(n):
        p = i + np.argmax(np.abs(a[i:, i]))
        a[[i, p]] = a[[p, i]]
        b[[i, p]] = b[[p, i]]
        for j in range(i + 1, n):
            factor = a[j, i] / a[i, i]
            a[j] -= factor * a[i]
            b[j] -= factor * b[i]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


@recipe(matrix, size=6)
def lu_decomposition(a):
    n = len(a)
    lower, upper = np.eye(n), a.copy()
    for i in range(n - 1):
        lower[i + 1 :, i] = upper[i + 1 :, i] / upper[i, i]
        upper[i + 1 :] -= np.outer(lower[i + 1 :, i], upper[i])
    return lower, upper


@recipe(matrix, size=6)
def gram_schmidt(a):
    q = np.zeros_like(a)
    for j in range(a.shape[1]):
        v = a[:, j] - q[:, :j] @ (q[:, :j].T @ a[:, j])
        q[:, j] = v / np.linalg.norm(v)
    return q


@recipe(system, size=12, large=200)
def jacobi_iteration(a, b):
    diagonal = np.diag(a)
    rest = a - np.diagflat(diagonal)
    x = np.zeros_like(b)
    for _ in range(25):
        x = (b - rest @ x) / diagonal
    return x


@recipe(system, size=12, large=300)
def conjugate_gradient(a, b):
    a = a @ a.T
    x = np.zeros_like(b)
    r = b - a @ x
    p, old = r, r @ r
    for _ in range(len(b) if len(b) < 20 else 20):
        q = a @ p
        alpha = old / (p @ q)
        x = x + alpha * p
        r = r - alpha * q
        new = r @ r
        p, old = r + new / old * p, new
    return x


@recipe(symmetric, size=8, large=300)
def power_iteration(a):
    v = np.ones(len(a))
    for _ in range(60):
        v = a @ (a @ v)
        v /= np.linalg.norm(v)
    return v @ a @ a @ v


@recipe(symmetric, size=6, tolerance=1e-6)
def unshifted_qr(a):
    for _ in range(30):
        q, r = np.linalg.qr(a)
        a = r @ q
    return np.sort(np.abs(np.diag(a)))


@recipe(matrix, size=8, large=200)
def inverse_and_determinant(a):
    return np.linalg.inv(a), np.linalg.slogdet(a)[1]


@recipe(lambda r, n: (0.1 * r.normal(size=(n, n)),), size=6)
def matrix_exponential(a):
    total, term = np.eye(len(a)), np.eye(len(a))
    for k in range(1, 15):
        term = term @ a / k
        total = total + term
    return total


@recipe(lambda r, n: (r.normal(size=(n, 4)), r.normal(size=(4, n))), size=8)
def low_rank(u, v):
    s = np.linalg.svd(u @ v, compute_uv=False)
    return s[:4], np.linalg.matrix_rank(u @ v), np.linalg.norm(u @ v, "nuc")


@recipe(lambda r, n: (np.array([1.0, -3.0, 2.0]),), refusal="leading zeros decide about the degree")
def roots_of_a_polynomial(p):
    return np.roots(p)


@recipe(lambda r, n: (np.array([-1.0, 1.0]),))
def gradient_descent(x):
    for _ in range(30):
        a, b = x[0], x[1]
        slope = np.array([-400 * a * (b - a**2) - 2 * (1 - a), 200 * (b - a**2)])
        x = x - 0.001 * slope
    return x


@recipe(lambda r, n: (0.0, 3.0), control_flow=True)
def golden_section(a, b):
    share = (np.sqrt(5) - 1) / 2
    while b - a > 1e-6:
        c, d = b - share * (b - a), a + share * (b - a)
        if (c - 1) ** 2 < (d - 1) ** 2:
            b = d
        else:
            a = c
    return (a + b) / 2


@recipe(lambda r, n: (n,), size=200, control_flow=True)
def series_of_pi(n):
    total = 0.0
    for k in range(n):
        total += (-1.0) ** k / (2 * k + 1)
    return 4 * total
