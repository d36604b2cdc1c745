"""Particles, populations, graphs, dynamic programming, counting."""

import numpy as np
from tracing.everyday.case import recipe


def graph(r, n):
    return (np.where(r.random((n, n)) < 0.4, r.integers(1, 9, (n, n)).astype(float), np.inf),)


def bodies(r, n):
    return r.normal(size=(n, 3)), r.normal(size=(n, 3)), r.random(n)


@recipe(bodies, size=8, large=400)
def n_body_forces(x, v, mass):
    d = x[None, :, :] - x[:, None, :]
    distance = np.sqrt((d**2).sum(-1) + 0.01)
    return (d * (mass[None, :] / distance**3)[:, :, None]).sum(1)


@recipe(bodies, size=6)
def leapfrog(x, v, mass):
    for _ in range(5):
        d = x[None] - x[:, None]
        a = (d * (mass / ((d**2).sum(-1) + 0.01) ** 1.5)[..., None]).sum(1)
        v = v + 0.01 * a
        x = x + 0.01 * v
    return x, v


@recipe(bodies, size=8, large=400)
def lennard_jones(x, v, mass):
    d = x[:, None] - x[None]
    squares = (d**2).sum(-1) + np.eye(len(x))
    inverse = 1 / squares**3
    return 2 * np.sum((inverse**2 - inverse) * (1 - np.eye(len(x))))


@recipe(lambda r, n: (r.normal(size=n), 0.0), size=40, large=100_000)
def random_walk(steps, start):
    path = start + np.cumsum(steps)
    return path, path.max(), np.abs(path).argmax()


@recipe(lambda r, n: (r.normal(size=(n, 2)), np.eye(4)), size=20)
def kalman_filter(measured, covariance):
    step = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    look = np.array([[1, 0, 0, 0], [0, 1, 0, 0.0]])
    state = np.zeros(4)
    path = np.zeros((len(measured), 4))
    for t in range(len(measured)):
        state = step @ state
        covariance = step @ covariance @ step.T + 0.01 * np.eye(4)
        gain = covariance @ look.T @ np.linalg.inv(look @ covariance @ look.T + 0.1 * np.eye(2))
        state = state + gain @ (measured[t] - look @ state)
        covariance = (np.eye(4) - gain @ look) @ covariance
        path[t] = state
    return path


@recipe(lambda r, n: (0.3, 0.1))
def epidemic(infection, recovery):
    s, i, rest = 0.99, 0.01, 0.0
    history = []
    for _ in range(15):
        new, well = infection * s * i, recovery * i
        s, i, rest = s - new, i + new - well, rest + well
        history.append(np.array([s, i, rest]))
    return np.array(history)


@recipe(lambda r, n: (1.0, 0.5))
def predators_and_prey(prey, predators):
    path = np.zeros((20, 2))
    for t in range(20):
        path[t] = prey, predators
        prey, predators = (
            prey + 0.05 * prey * (1 - predators),
            predators + 0.05 * predators * (prey - 1),
        )
    return path


@recipe(lambda r, n: (np.array([1.0, 1.0, 1.0]),))
def lorenz(x):
    path = [x]
    for _ in range(30):
        x = x + 0.01 * np.array([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]])
        path.append(x)
    return np.stack(path)


@recipe(lambda r, n: (r.random(n),), large=200_000)
def logistic_map(x):
    for _ in range(40):
        x = 3.7 * x * (1 - x)
    return x


@recipe(lambda r, n: (r.integers(0, 2, (n, n)) * 2 - 1, r.random((n, n))), size=10, large=512)
def ising_sweep(spins, chance):
    black = np.indices(spins.shape).sum(0) % 2 == 0
    around = sum(np.roll(spins, s, a) for s in (-1, 1) for a in (0, 1))
    flip = black & (chance < np.exp(-0.8 * spins * around))
    return np.where(flip, -spins, spins)


@recipe(lambda r, n: (r.random(n),), size=41)
def wave_equation(u):
    old = u.copy()
    for _ in range(10):
        new = np.zeros_like(u)
        new[1:-1] = 2 * u[1:-1] - old[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
        old, u = u, new
    return u


@recipe(lambda r, n: (r.random((n, n)), r.random((n, n))), size=12, large=256)
def reaction_diffusion(u, v):
    def laplacian(x):
        return np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1) - 4 * x

    for _ in range(4):
        uvv = u * v * v
        u += 0.16 * laplacian(u) - uvv + 0.06 * (1 - u)
        v += 0.08 * laplacian(v) + uvv - 0.122 * v
    return u, v


@recipe(lambda r, n: (np.array([[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0, 0.3, 0.7]]),))
def markov_chain(p):
    return np.linalg.matrix_power(p, 50)[0]


@recipe(lambda r, n: (r.random((n, n)),), size=12, large=500)
def page_rank(links):
    shares = links / links.sum(0)
    rank = np.ones(len(links)) / len(links)
    for _ in range(30):
        rank = 0.15 / len(links) + 0.85 * shares @ rank
    return rank


@recipe(graph, size=10, large=128)
def floyd_warshall(d):
    d = np.where(np.eye(len(d), dtype=bool), 0.0, d)
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d


@recipe(graph, size=10)
def bellman_ford(d):
    distance = np.full(len(d), np.inf)
    distance[0] = 0
    for _ in range(len(d) - 1):
        distance = np.minimum(distance, (distance[:, None] + d).min(0))
    return distance


@recipe(lambda r, n: (r.integers(0, 4, n), r.integers(0, 4, n)), size=9)
def edit_distance(a, b):
    rows = np.zeros((len(a) + 1, len(b) + 1), int)
    rows[0] = np.arange(len(b) + 1)
    rows[:, 0] = np.arange(len(a) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            swapped = rows[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            rows[i, j] = np.minimum(swapped, np.minimum(rows[i - 1, j], rows[i, j - 1]) + 1)
    return rows[-1, -1]


@recipe(lambda r, n: (r.integers(0, 4, n), r.integers(0, 4, n)), size=9, control_flow=True)
def longest_common_subsequence(a, b):
    rows = np.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                rows[i, j] = rows[i - 1, j - 1] + 1
            else:
                rows[i, j] = max(rows[i - 1, j], rows[i, j - 1])
    return rows[-1, -1]


@recipe(lambda r, n: (r.integers(1, 9, 6), r.integers(1, 20, 6)))
def knapsack(weights, values):
    best = np.zeros(31, int)
    capacity = np.arange(31)
    for i in range(6):
        rest = capacity - weights[i]
        best = np.where(rest >= 0, np.maximum(best, best[np.maximum(rest, 0)] + values[i]), best)
    return best


@recipe(lambda r, n: (r.random((n, 3)), r.random((3, 3)), r.random(3)), size=12)
def viterbi(emission, transition, start):
    score = np.log(start) + np.log(emission[0])
    back = []
    for t in range(1, len(emission)):
        options = score[:, None] + np.log(transition)
        back.append(options.argmax(0))
        score = options.max(0) + np.log(emission[t])
    path = [score.argmax()]
    for choice in back[::-1]:
        path.append(choice[path[-1]])
    return np.array(path[::-1])


@recipe(lambda r, n: (r.random((n, 3)), r.random((3, 3))), size=12)
def forward_algorithm(emission, transition):
    alpha = emission[0] / 3
    for t in range(1, len(emission)):
        alpha = (alpha @ transition) * emission[t]
    return alpha.sum()


@recipe(lambda r, n: (r.integers(-9, 9, n),), size=30, control_flow=True)
def largest_sum_of_neighbours(x):
    best = current = x[0]
    for i in range(1, len(x)):
        current = max(x[i], current + x[i])
        if current > best:
            best = current
    return best


@recipe(lambda r, n: (n,), size=100, static_argnames="n")
def sieve(n):
    is_prime = np.ones(n, bool)
    is_prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        is_prime[2 * i :: i] = False
    return is_prime


@recipe(lambda r, n: (27,), control_flow=True)
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@recipe(lambda r, n: (1071, 462), control_flow=True)
def greatest_common_divisor(a, b):
    while b:
        a, b = b, a % b
    return a


@recipe(lambda r, n: (20,), control_flow=True)
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@recipe(lambda r, n: (r.integers(0, 50, n),), refusal="how many different elements there are is not known")
def distinct(x):
    return np.unique(x)


@recipe(lambda r, n: (r.integers(0, 50, n),))
def distinct_count(x):
    ordered = np.sort(x)
    return 1 + np.count_nonzero(np.diff(ordered))


@recipe(lambda r, n: (r.normal(size=n),), size=40, large=300_000)
def sort(x):
    return np.sort(x)


@recipe(lambda r, n: (r.normal(size=n),), size=40, large=100_000)
def arg_sort(x):
    return np.argsort(x, kind="stable")


@recipe(lambda r, n: (r.normal(size=n),), size=40, large=1_000_000)
def cumulative_sums(x):
    return np.cumsum(x)


@recipe(lambda r, n: (r.normal(size=n), r.integers(0, n, n)), size=40, large=500_000)
def gather(x, i):
    return x[i] * 2


@recipe(lambda r, n: (np.zeros(n), r.integers(0, n, n), r.normal(size=n)), size=40, large=500_000)
def scatter_add(x, i, values):
    np.add.at(x, i, values)
    return x


@recipe(lambda r, n: (np.sort(r.normal(size=n)), r.normal(size=n)), size=40, large=100_000)
def binary_search(x, wanted):
    return np.searchsorted(x, wanted)


@recipe(lambda r, n: (r.integers(0, 9, (n, n)).astype(np.int64),), size=5)
def diagonals_and_triangles(a):
    return np.trace(a), np.triu(a).sum(), np.diag(a)[::-1], np.tril(a, -1)


@recipe(lambda r, n: (r.normal(size=(n, 3)), r.normal(size=3)), size=10, large=100_000)
def rotate_points(x, axis):
    k = axis / np.linalg.norm(axis)
    c, s = np.cos(0.3), np.sin(0.3)
    return x * c + np.cross(k, x) * s + np.outer(x @ k, k) * (1 - c)


@recipe(lambda r, n: (r.uniform(-90, 90, n), r.uniform(-180, 180, n)), size=10, large=300_000)
def great_circle_distance(latitude, longitude):
    a, b = np.radians(latitude), np.radians(longitude)
    h = np.sin((a - 0.9) / 2) ** 2 + np.cos(a) * np.cos(0.9) * np.sin((b - 0.2) / 2) ** 2
    return 2 * 6371 * np.arcsin(np.sqrt(h))


@recipe(lambda r, n: (r.normal(size=(n, 2)),), size=10)
def area_of_a_polygon(p):
    x, y = p[:, 0], p[:, 1]
    return 0.5 * np.abs(x @ np.roll(y, -1) - y @ np.roll(x, -1))


@recipe(lambda r, n: (r.normal(size=n), r.normal(size=n)), size=10, large=300_000)
def polar_coordinates(x, y):
    return np.hypot(x, y), np.degrees(np.arctan2(y, x)) % 360


@recipe(lambda r, n: (r.integers(0, 2**32, n).astype(np.uint64),), size=10)
def xorshift(x):
    for _ in range(3):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
    return x
