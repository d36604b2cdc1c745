"""Signals, their spectra, pictures and grids."""

import numpy as np
from tracing.everyday.case import recipe


def signal(r, n):
    return (np.sin(np.arange(n) / 5) + 0.3 * r.normal(size=n),)


def picture(r, n):
    return (r.random((n, n)),)


@recipe(lambda r, n: (r.normal(size=n), r.normal(size=9)), size=64, large=100_000)
def convolution_by_fft(x, kernel):
    length = len(x) + len(kernel) - 1
    return np.fft.irfft(np.fft.rfft(x, length) * np.fft.rfft(kernel, length), length)


@recipe(lambda r, n: (r.normal(size=n), r.normal(size=9)), size=64, large=200_000)
def convolution(x, kernel):
    return np.convolve(x, kernel, mode="same")


@recipe(signal, size=64, large=2**17)
def power_spectrum(x):
    return np.abs(np.fft.rfft(x * np.hanning(len(x)))) ** 2 / len(x)


@recipe(signal, size=64)
def low_pass(x):
    spectrum = np.fft.fft(x)
    spectrum[np.abs(np.fft.fftfreq(len(x))) > 0.1] = 0
    return spectrum.real, np.fft.ifft(spectrum).real


@recipe(signal, size=128)
def short_time_spectra(x):
    frames = np.lib.stride_tricks.sliding_window_view(x, 32)[::16]
    return np.abs(np.fft.rfft(frames * np.hamming(32), axis=-1))


@recipe(signal, size=64)
def analytic_signal(x):
    n = len(x)
    factor = np.zeros(n)
    factor[0] = factor[n // 2] = 1
    factor[1 : n // 2] = 2
    return np.abs(np.fft.ifft(np.fft.fft(x) * factor))


@recipe(signal, size=64)
def discrete_cosines(x):
    n = len(x)
    k = np.arange(n)
    return np.cos(np.pi / n * (k[None, :] + 0.5) * k[:, None]) @ x


@recipe(signal, size=64)
def haar_wavelet(x):
    parts = []
    while len(x) > 1:
        parts.append((x[::2] - x[1::2]) / np.sqrt(2))
        x = (x[::2] + x[1::2]) / np.sqrt(2)
    return np.concatenate([x, *parts[::-1]])


@recipe(signal, size=64)
def zero_crossings(x):
    return np.sum(np.sign(x[1:]) != np.sign(x[:-1]))


@recipe(signal, size=64)
def peaks(x):
    inner = (x[1:-1] > x[:-2]) & (x[1:-1] > x[2:])
    return np.pad(inner, 1)


@recipe(signal, size=64, large=20_000)
def median_filter(x):
    padded = np.pad(x, 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=-1)


@recipe(signal, size=32)
def first_order_filter(x):
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        y[i] = 0.9 * y[i - 1] + 0.05 * (x[i] + x[i - 1])
    return y


@recipe(signal, size=64)
def savitzky_golay(x):
    rows = np.vander(np.arange(-3.0, 4.0), 3)
    kernel = np.linalg.pinv(rows)[2]
    return np.convolve(x, kernel[::-1], "valid")


@recipe(signal, size=64)
def detrend(x):
    t = np.arange(len(x))
    return x - np.polyval(np.polyfit(t, x, 1), t)


@recipe(signal, size=60)
def resample(x):
    new = np.linspace(0, len(x) - 1, 2 * len(x))
    return np.interp(new, np.arange(len(x)), x)


@recipe(signal, size=64)
def unwrapped_phase(x):
    return np.unwrap(np.angle(np.fft.fft(x))[1:8])


@recipe(signal, size=64)
def windows_of_signals(x):
    return x * np.blackman(len(x)) + x * np.kaiser(len(x), 5) + x * np.bartlett(len(x))


@recipe(lambda r, n: (r.normal(size=n), r.normal(size=n)), size=64)
def delay_by_correlation(x, y):
    spectrum = np.fft.fft(x) * np.conj(np.fft.fft(y))
    return np.argmax(np.abs(np.fft.ifft(spectrum)))


@recipe(signal, size=64)
def quantized_signal(x):
    levels = np.round((x - x.min()) / (x.max() - x.min()) * 255).astype(np.uint8)
    return levels


@recipe(picture, large=1024)
def five_point_stencil(u):
    v = u.copy()
    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return v


@recipe(picture, large=1024)
def sobel_edges(x):
    gx = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
    gy = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
    return np.hypot(gx, gy)


@recipe(picture, large=512)
def gaussian_blur(x):
    kernel = np.exp(-0.5 * (np.arange(-4, 5) / 1.5) ** 2)
    kernel /= kernel.sum()
    padded = np.pad(x, 4, mode="reflect")
    rows = sum(k * padded[i : i + x.shape[0]] for i, k in enumerate(kernel))
    return sum(k * rows[:, i : i + x.shape[1]] for i, k in enumerate(kernel))


@recipe(lambda r, n: (r.integers(0, 256, (n, n)).astype(np.uint8),), large=512)
def histogram_equalization(x):
    counts = np.bincount(x.ravel(), minlength=256)
    table = np.cumsum(counts) / x.size * 255
    return table[x].astype(np.uint8)


@recipe(lambda r, n: (r.random((n, n, 3)),), large=512)
def rgb_to_gray(x):
    return x @ np.array([0.299, 0.587, 0.114])


@recipe(picture)
def threshold_of_otsu(x):
    counts, edges = np.histogram(x, bins=16, range=(0, 1))
    centers = (edges[:-1] + edges[1:]) / 2
    low, sums = np.cumsum(counts), np.cumsum(counts * centers)
    high = counts.sum() - low
    between = low * high * (sums / np.maximum(low, 1) - (sums[-1] - sums) / np.maximum(high, 1)) ** 2
    return centers[np.argmax(between)]


@recipe(picture)
def bilinear_zoom(x):
    at = np.linspace(0, x.shape[0] - 1, 2 * x.shape[0])
    i = np.minimum(at.astype(int), x.shape[0] - 2)
    f = at - i
    rows = x[i] * (1 - f)[:, None] + x[i + 1] * f[:, None]
    return rows[:, i] * (1 - f) + rows[:, i + 1] * f


@recipe(picture)
def rotate_and_flip(x):
    return np.rot90(x), np.flipud(x), np.fliplr(x), x.T[::-1]


@recipe(picture)
def integral_image(x):
    s = np.pad(x.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    return s[4:, 4:] - s[:-4, 4:] - s[4:, :-4] + s[:-4, :-4]


@recipe(picture)
def dilation(x):
    m = x > 0.7
    padded = np.pad(m, 1)
    n = len(x)
    return np.any([padded[i : i + n, j : j + n] for i in range(3) for j in range(3)], axis=0)


@recipe(lambda r, n: (r.integers(0, 2, (n, n)),), large=512)
def game_of_life(cells):
    neighbours = sum(np.roll(cells, (i, j), axis=(0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((neighbours == 3) | ((cells == 1) & (neighbours == 2))).astype(cells.dtype)


@recipe(lambda r, n: (n,), size=24, large=200, static_argnames="n")
def mandelbrot(n):
    c = np.linspace(-2, 0.5, n)[None, :] + 1j * np.linspace(-1.2, 1.2, n)[:, None]
    z = np.zeros_like(c)
    steps = np.zeros(c.shape, int)
    for _ in range(30):
        inside = np.abs(z) <= 2
        z = np.where(inside, z**2 + c, z)
        steps += inside
    return steps


@recipe(lambda r, n: (r.random((n, n)), np.array([0.3, 0.7])), size=9)
def radial_profile(x, center):
    i, j = np.indices(x.shape)
    radius = np.hypot(i / len(x) - center[0], j / len(x) - center[1])
    bins = np.minimum((radius * 8).astype(int), 7)
    return np.bincount(bins.ravel(), x.ravel(), minlength=8)


@recipe(picture, size=8)
def spectrum_of_a_picture(x):
    return np.log1p(np.abs(np.fft.fftshift(np.fft.fft2(x))))
