"""Models that are fitted, and their parts."""

import numpy as np
from tracing.everyday.case import recipe


def design(r, n):
    x = r.normal(size=(n, 6))
    return x, x @ np.arange(6.0) + 0.1 * r.normal(size=n)


def labelled(r, n):
    x = r.normal(size=(n, 6))
    return x, (x[:, 0] + x[:, 1] > 0).astype(float)


def points(r, n):
    return (r.normal(size=(n, 3)),)


def batch(r, n):
    return (r.normal(size=(n, 64)),)


def images(r, n):
    return r.normal(size=(2, n, n)), r.normal(size=(3, 3))


@recipe(design, size=30, large=100_000)
def linear_regression(x, y):
    a = np.column_stack([np.ones(len(x)), x])
    return np.linalg.solve(a.T @ a, a.T @ y)


@recipe(design, size=30)
def least_squares(x, y):
    return np.linalg.lstsq(x, y, rcond=None)[0]


@recipe(design, size=30)
def ridge_regression(x, y, strength=0.5):
    return np.linalg.solve(x.T @ x + strength * np.eye(x.shape[1]), x.T @ y)


@recipe(design, size=30)
def lasso_by_soft_thresholds(x, y):
    w = np.zeros(x.shape[1])
    step = 1 / np.linalg.norm(x, 2) ** 2
    for _ in range(50):
        w = w - step * x.T @ (x @ w - y)
        w = np.sign(w) * np.maximum(np.abs(w) - 0.1 * step, 0)
    return w


@recipe(labelled, size=30, large=10_000)
def logistic_regression(x, y):
    w = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ w))
        w -= 0.5 * x.T @ (p - y) / len(y)
    return w


@recipe(labelled, size=30)
def perceptron(x, y):
    w = np.zeros(x.shape[1])
    for i in range(len(y)):
        guess = np.where(x[i] @ w > 0, 1.0, 0.0)
        w += (y[i] - guess) * x[i]
    return w


@recipe(lambda r, n: (r.normal(size=(n, 4)), r.normal(size=(5, 4))), size=40, large=20_000)
def k_means(x, centers):
    for _ in range(5):
        distance = ((x[:, None, :] - centers[None, :, :]) ** 2).sum(-1)
        nearest = distance.argmin(axis=1)
        for k in range(5):
            mine = nearest == k
            centers[k] = np.where(mine[:, None], x, 0).sum(0) / np.maximum(mine.sum(), 1)
    return centers, nearest


@recipe(lambda r, n: (r.normal(size=(n, 4)), r.normal(size=(9, 4)), r.integers(0, 3, n)), size=40)
def nearest_neighbours(x, queries, labels):
    distance = np.sqrt(((queries[:, None] - x) ** 2).sum(-1))
    near = np.argsort(distance, axis=1)[:, :5]
    votes = (labels[near][:, :, None] == np.arange(3)).sum(1)
    return votes.argmax(1)


@recipe(points, size=30, large=100_000)
def principal_components(x):
    centered = x - x.mean(0)
    values, vectors = np.linalg.eigh(centered.T @ centered / (len(x) - 1))
    return values[::-1], np.abs(vectors[:, ::-1])


@recipe(points, size=30)
def whitening(x):
    centered = x - x.mean(0)
    s, vh = np.linalg.svd(centered, full_matrices=False)[1:]
    return np.abs(centered @ vh.T / s)


@recipe(points, size=20, large=600)
def pairwise_distances(x):
    return np.sqrt(((x[:, None, :] - x[None, :, :]) ** 2).sum(-1))


@recipe(points, size=20, large=600)
def gaussian_kernel(x):
    squares = (x**2).sum(1)
    return np.exp(-(squares[:, None] + squares - 2 * x @ x.T) / 2)


@recipe(lambda r, n: (r.normal(size=(n, 3)), r.normal(size=n), r.normal(size=(4, 3))), size=12)
def gaussian_process(x, y, at):
    def kernel(a, b):
        return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1))

    lower = np.linalg.cholesky(kernel(x, x) + 0.1 * np.eye(len(x)))
    alpha = np.linalg.solve(lower.T, np.linalg.solve(lower, y))
    return kernel(at, x) @ alpha, np.log(np.diag(lower)).sum()


@recipe(lambda r, n: (r.normal(size=(n, 2)), r.normal(size=(3, 2))), size=40)
def gaussian_mixture(x, means):
    weights, spread = np.ones(3) / 3, np.ones(3)
    for _ in range(5):
        squares = ((x[:, None] - means) ** 2).sum(-1)
        density = weights * np.exp(-squares / (2 * spread)) / spread
        share = density / density.sum(1, keepdims=True)
        total = share.sum(0)
        means = share.T @ x / total[:, None]
        spread = (share * ((x[:, None] - means) ** 2).sum(-1)).sum(0) / (2 * total)
        weights = total / len(x)
    return weights, means, spread


@recipe(batch, large=10_000)
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@recipe(batch, large=10_000)
def log_sum_exp(x):
    top = x.max(axis=1)
    return top + np.log(np.exp(x - top[:, None]).sum(axis=1))


@recipe(lambda r, n: (r.normal(size=(n, 10)), r.integers(0, 10, n)), size=20, large=50_000)
def cross_entropy(logits, labels):
    shifted = logits - logits.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return -logs[np.arange(len(labels)), labels].mean()


@recipe(lambda r, n: (r.normal(size=(n, 64)), r.random(64), r.random(64)), large=10_000)
def batch_norm(x, scale, shift):
    return scale * (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) + shift


@recipe(batch, large=10_000)
def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@recipe(batch, large=10_000)
def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@recipe(lambda r, n: tuple(r.normal(size=(n, 32)) for _ in range(3)), large=512)
def attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores = np.where(np.tri(len(q), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@recipe(lambda r, n: (r.normal(size=(n, 8)), r.normal(size=(8, 16)), r.normal(size=(16, 3))), large=20_000)
def two_layers(x, w1, w2):
    return np.maximum(x @ w1, 0) @ w2


@recipe(lambda r, n: (r.normal(size=(n, 4)), r.normal(size=(n, 1)), r.normal(size=(4, 8)), r.normal(size=(8, 1))))
def backpropagation(x, y, w1, w2):
    for _ in range(10):
        h = np.tanh(x @ w1)
        error = (h @ w2 - y) / len(x)
        w1 -= 0.1 * x.T @ (error @ w2.T * (1 - h**2))
        w2 -= 0.1 * h.T @ error
    return w1, w2


@recipe(lambda r, n: (r.normal(size=(n, 5)), r.normal(size=(5, 4)), r.normal(size=(4, 4))), size=12)
def recurrent_network(x, w, u):
    h = np.zeros(4)
    states = []
    for t in range(len(x)):
        h = np.tanh(x[t] @ w + h @ u)
        states.append(h)
    return np.stack(states)


@recipe(images, size=12, large=256)
def convolution_of_images(x, kernel):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.einsum("bijkl,kl->bij", windows, kernel)


@recipe(images, size=12, large=256)
def max_pooling(x, kernel):
    b, h, w = x.shape
    return x.reshape(b, h // 2, 2, w // 2, 2).max(axis=(2, 4))


@recipe(lambda r, n: (r.integers(0, 9, n),), size=20)
def one_hot(labels):
    return np.eye(9)[labels]


@recipe(lambda r, n: (r.integers(0, 4, n), r.integers(0, 4, n)), size=50)
def confusion_matrix(truth, guess):
    found = np.zeros((4, 4), int)
    np.add.at(found, (truth, guess), 1)
    return found


@recipe(lambda r, n: (r.integers(0, 2, n), r.random(n)), size=50)
def area_under_curve(truth, score):
    order = np.argsort(-score)
    hits, misses = np.cumsum(truth[order]), np.cumsum(1 - truth[order])
    return np.trapezoid(hits / hits[-1], misses / misses[-1])


@recipe(lambda r, n: (r.normal(size=n), np.zeros(n), np.zeros(n)), large=500_000)
def adam_step(gradient, m, v):
    m = 0.9 * m + 0.1 * gradient
    v = 0.999 * v + 0.001 * gradient**2
    return -0.001 * (m / 0.1) / (np.sqrt(v / 0.001) + 1e-8), m, v
