"""Prices, returns, samples and their summaries."""

import numpy as np
from tracing.everyday.case import recipe


def vector(r, n):
    return (r.normal(size=n),)


def two_vectors(r, n):
    return r.normal(size=n), r.normal(size=n)


def table(r, n):
    return (r.normal(size=(n, 8)),)


def prices(r, n):
    return (100 * np.exp(np.cumsum(0.01 * r.normal(size=n))),)


@recipe(lambda r, n: (r.uniform(50, 150, n), r.uniform(50, 150, n), r.uniform(0.1, 2, n)), large=500_000)
def black_scholes(spot, strike, years, rate=0.02, volatility=0.3):
    root = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / root
    d2 = d1 - root

    def normal(x):
        k = 1 / (1 + 0.2316419 * np.abs(x))
        poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        tail = 1 / np.sqrt(2 * np.pi) * np.exp(-x * x / 2) * poly
        return np.where(x < 0, tail, 1 - tail)

    call = spot * normal(d1) - strike * np.exp(-rate * years) * normal(d2)
    return call, call - spot + strike * np.exp(-rate * years)


@recipe(lambda r, n: (100.0, 95.0), size=64)
def binomial_option(spot, strike):
    steps = 32
    up = np.exp(0.3 * np.sqrt(1 / steps))
    chance = (np.exp(0.02 / steps) - 1 / up) / (up - 1 / up)
    values = np.maximum(strike - spot * up ** (2 * np.arange(steps + 1) - steps), 0)
    for i in range(steps - 1, -1, -1):
        values = np.exp(-0.02 / steps) * (chance * values[1:] + (1 - chance) * values[:-1])
        values = np.maximum(values, strike - spot * up ** (2.0 * np.arange(i + 1) - i))
    return values[0]


@recipe(lambda r, n: (r.normal(size=(n, 12)), 100.0), large=20_000)
def asian_option_by_monte_carlo(noise, spot):
    steps = 0.0025 + 0.05 * noise
    paths = spot * np.exp(np.cumsum(steps, axis=1))
    payoff = np.maximum(paths.mean(axis=1) - 100, 0)
    return payoff.mean(), payoff.std() / np.sqrt(len(payoff))


@recipe(prices, size=40, large=1_000_000)
def log_returns(p):
    return np.diff(np.log(p))


@recipe(prices, size=40, large=1_000_000)
def largest_drawdown(p):
    top = np.maximum.accumulate(p)
    return ((top - p) / top).max()


@recipe(prices, size=40, large=200_000)
def moving_average(p, width=7):
    sums = np.cumsum(p)
    sums[width:] = sums[width:] - sums[:-width]
    return sums[width - 1 :] / width


@recipe(prices, size=40)
def exponential_moving_average(p, share=0.2):
    smooth = np.empty_like(p)
    smooth[0] = p[0]
    for i in range(1, len(p)):
        smooth[i] = share * p[i] + (1 - share) * smooth[i - 1]
    return smooth


@recipe(prices, size=40)
def bollinger_bands(p):
    windows = np.lib.stride_tricks.sliding_window_view(p, 10)
    middle, spread = windows.mean(-1), windows.std(-1)
    return middle - 2 * spread, middle, middle + 2 * spread


@recipe(prices, size=40)
def relative_strength_index(p):
    change = np.diff(p)
    gain, loss = np.where(change > 0, change, 0), np.where(change < 0, -change, 0)
    kernel = np.ones(14) / 14
    strength = np.convolve(gain, kernel, "valid") / np.convolve(loss, kernel, "valid")
    return 100 - 100 / (1 + strength)


@recipe(lambda r, n: (r.normal(size=(n, 5)) * 0.01, np.full(5, 0.2)), large=100_000)
def portfolio_risk(returns, weights):
    covariance = np.cov(returns, rowvar=False)
    return returns.mean(0) @ weights, np.sqrt(weights @ covariance @ weights)


@recipe(lambda r, n: (r.normal(size=n), 0.05), size=100)
def value_at_risk(returns, level):
    cut = np.quantile(returns, level)
    return -cut, -returns[returns <= cut].mean()


@recipe(lambda r, n: (1000.0, 0.01))
def loan_payments(amount, rate, months=12):
    payment = amount * rate / (1 - (1 + rate) ** -months)
    rest = amount * (1 + rate) ** np.arange(months) - payment * ((1 + rate) ** np.arange(months) - 1) / rate
    return payment, rest


@recipe(lambda r, n: (np.array([-100.0, 30.0, 40.0, 60.0]),))
def internal_rate_of_return(flows):
    years, rate = np.arange(len(flows)), 0.1
    for _ in range(20):
        factors = (1 + rate) ** -years.astype(float)
        rate = rate + (flows * factors).sum() / (years * flows * factors / (1 + rate)).sum()
    return rate


@recipe(table, large=100_000)
def standardize(x):
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


@recipe(table, large=100_000)
def min_max_scaling(x):
    low, high = x.min(axis=0), x.max(axis=0)
    return (x - low) / (high - low)


@recipe(table, large=100_000)
def correlation_matrix(x):
    return np.corrcoef(x, rowvar=False)


@recipe(two_vectors)
def spearman_correlation(x, y):
    ranks = [np.argsort(np.argsort(each)).astype(float) for each in (x, y)]
    return np.corrcoef(ranks[0], ranks[1])[0, 1]


@recipe(vector, large=1_000_000)
def skewness_and_kurtosis(x):
    d = x - x.mean()
    m2, m3, m4 = (d**2).mean(), (d**3).mean(), (d**4).mean()
    return m3 / m2**1.5, m4 / m2**2 - 3


@recipe(vector, size=101, large=100_000)
def five_numbers(x):
    return np.percentile(x, [0, 25, 50, 75, 100])


@recipe(vector, size=101)
def median_absolute_deviation(x):
    return 1.4826 * np.median(np.abs(x - np.median(x)))


@recipe(vector, size=200, large=1_000_000)
def histogram(x):
    return np.histogram(x, bins=50, range=(-4, 4))[0]


@recipe(lambda r, n: (r.integers(0, 10, n), r.normal(size=n)), size=50, large=1_000_000)
def means_of_groups(group, x):
    return np.bincount(group, weights=x, minlength=10) / np.maximum(np.bincount(group, minlength=10), 1)


@recipe(lambda r, n: (r.normal(size=n), np.linspace(-3, 3, 40)), size=60, large=5_000)
def kernel_density(x, grid):
    z = (grid[:, None] - x[None, :]) / 0.3
    return np.exp(-0.5 * z**2).sum(axis=1) / (len(x) * 0.3 * np.sqrt(2 * np.pi))


@recipe(lambda r, n: (r.normal(size=n), r.integers(0, n, (20, n))), size=30, large=50_000)
def bootstrap_means(x, picks):
    means = x[picks].mean(axis=1)
    return means.mean(), np.sort(means)[[0, -1]]


@recipe(two_vectors)
def two_sample_t(x, y):
    spread = x.var(ddof=1) / x.size + y.var(ddof=1) / y.size
    return (x.mean() - y.mean()) / np.sqrt(spread)


@recipe(lambda r, n: (r.integers(1, 30, (4, 5)).astype(float),))
def chi_squared(table):
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    return ((table - expected) ** 2 / expected).sum()


@recipe(vector, size=50)
def autocorrelation(x):
    d = x - x.mean()
    found = np.correlate(d, d, mode="full")[len(x) - 1 :]
    return found / found[0]


@recipe(lambda r, n: (r.random(n),), large=1_000_000)
def entropy(p):
    p = p / p.sum()
    return -np.sum(p * np.log2(p))


@recipe(vector)
def winsorize(x):
    low, high = np.quantile(x, [0.1, 0.9])
    return np.clip(x, low, high)


@recipe(lambda r, n: (np.where(r.random(n) < 0.3, np.nan, r.normal(size=n)),))
def fill_missing_with_mean(x):
    y = x.copy()
    y[np.isnan(y)] = np.nanmean(x)
    return y


@recipe(vector)
def empirical_distribution(x):
    ordered = np.sort(x)
    return ordered, np.arange(1, len(x) + 1) / len(x)


@recipe(two_vectors, size=40)
def kolmogorov_smirnov(x, y):
    both = np.concatenate([x, y])
    below = [np.searchsorted(np.sort(each), both, side="right") / len(each) for each in (x, y)]
    return np.abs(below[0] - below[1]).max()
