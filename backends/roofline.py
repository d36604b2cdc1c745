"""What this machine can do at most: the roofline (Williams, Waterman, Patterson 2009), measured with compiled programs.

A kernel can be no quicker than its arithmetic takes at the rate of a large product of matrices, nor than its bytes
take at the rate at which a sum reads an array of their size, which depends on the cache that this fits into.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

import numpy as np

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.kernel_profile import KernelProfile, KernelTime
from xlalite.hlo.records import dataclass
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

_PRODUCTS = {name: name for name in ("f16", "bf16", "f32", "f64", "c64", "c128")} | {"s8": "s32", "u8": "s32"}
"""Element types that large products are measured of, and those of the products."""
_SIZES = (16 << 10, 256 << 10, 4 << 20, 128 << 20)
_MATRIX = 512
_BATCHES = 5
_BATCH_NS = 4e6
_WIDTH, _HEIGHT, _MARGIN = 720, 400, 56


@dataclass(frozen=True, slots=True)
class Roofline:
    """The rates of a machine.

    Attributes:
        gflops: Billions of operations a second by element type; f32's is there and stands for types that are not.
        gbytes: (bytes, billions of bytes a second that arrays of so many are read at), the smallest first.
    """

    gflops: Mapping[str, float]
    gbytes: tuple[tuple[int, float], ...]

    def least_ns(self, kernel: KernelTime) -> float:
        """How long the calls of a kernel take at least."""
        size = kernel.bytes_accessed / max(kernel.calls, 1)
        rate = next((rate for limit, rate in self.gbytes if size <= limit), self.gbytes[-1][1])
        return max(kernel.flops / self.peak(kernel.dtype), kernel.bytes_accessed / rate)

    def peak(self, dtype: str) -> float:
        """Billions of operations a second of an element type."""
        return self.gflops.get(dtype, self.gflops["f32"])

    def share(self, kernel: KernelTime) -> float:
        """The part of the possible speed that a kernel comes to."""
        return self.least_ns(kernel) / kernel.time_ns if kernel.time_ns else 0.0


def measured_roofline(num_threads: int | None = None, dtypes: Iterable[str] = ()) -> Roofline:
    """The roofline of this machine for programs with so many threads; each rate is measured once in a process.

    Args:
        num_threads: The threads; as many as there are processors by default.
        dtypes: Element types of interest besides f32; those that products are not made of have the rate of f32.
    """
    names = {"f32", *(name for name in dtypes if name in _PRODUCTS)}
    return Roofline({name: _product_rate(name, num_threads) for name in sorted(names)}, _read_rates(num_threads))


def roofline_svg(profile: KernelProfile, roofline: Roofline) -> str:
    """The kernels of a profile below the roofline as an `<svg>`: GFLOP/s over operations for each byte.

    The larger a dot, the more of the time its kernel took. Kernels without arithmetic are not in it.
    """
    kernels = [one for one in profile.kernels if one.flops and one.bytes_accessed and one.time_ns]
    peak = max(roofline.gflops.values())
    intensities = [one.flops / one.bytes_accessed for one in kernels] + [1.0, peak / roofline.gbytes[-1][1]]
    rates = [one.gflops for one in kernels] + [peak, peak / 100]
    (left, right), (low, high) = _decades(intensities), _decades(rates)

    def at(intensity: float, rate: float) -> tuple[float, float]:
        x = _MARGIN + (_WIDTH - 2 * _MARGIN) * (math.log10(intensity) - left) / (right - left)
        return x, _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * (math.log10(rate) - low) / (high - low)

    parts = [_axes(left, right, low, high, at)]
    for (dtype, peak), (size, rate) in itertools.product(roofline.gflops.items(), roofline.gbytes):
        ridge = peak / rate
        start = max(10.0**left, 10.0**low / rate)
        (x, y), (ridge_x, ridge_y), (end_x, _) = at(start, start * rate), at(ridge, peak), at(10.0**right, 1)
        hint = f"arrays of {size >> 10:,} KiB: {rate:.0f} GB/s; arithmetic of {dtype}: {peak:.0f} GFLOP/s"
        path = f"M{x:.1f} {y:.1f}L{ridge_x:.1f} {ridge_y:.1f}H{end_x:.1f}"
        parts.append(f'<path class="roof" d="{path}"><title>{hint}</title></path>')
    total = sum(one.time_ns for one in kernels)
    for one in sorted(kernels, key=lambda one: -one.time_ns):
        x, y = at(one.flops / one.bytes_accessed, one.gflops)
        radius = 3 + 12 * math.sqrt(one.time_ns / total)
        hint = (
            f"{one.name} ({one.kind}): {one.gflops:.1f} GFLOP/s, {one.gbytes:.1f} GB/s, {one.time_ns / total:.0%} of "
            f"the time, {roofline.share(one):.0%} of the possible speed"
        )
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{escape(hint)}</title></circle>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" '
        f'aria-label="roofline"><style>{_STYLE}</style><rect width="100%" height="100%"/>{"".join(parts)}</svg>\n'
    )


@functools.cache
def _product_rate(dtype: str, num_threads: int | None) -> float:
    side, result = (f"{name}[{_MATRIX},{_MATRIX}]" for name in (dtype, _PRODUCTS[dtype]))
    product = (
        f"HloModule product\nENTRY e {{ a = {side} parameter(0)\n b = {side} parameter(1)\n"
        f" ROOT c = {result} dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"
    )
    matrix = np.ones((_MATRIX, _MATRIX), DType(dtype).numpy)
    return _best(product, [matrix, matrix], num_threads).gflops


@functools.cache
def _read_rates(num_threads: int | None) -> tuple[tuple[int, float], ...]:
    arrays = ((size, np.ones(size // 4, np.float32)) for size in _SIZES)
    return tuple((size, _best(_sum_of(array.size), [array], num_threads).gbytes) for size, array in arrays)


def _sum_of(count: int) -> str:
    return (
        "HloModule sum\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
        f"ENTRY e {{ x = f32[{count}] parameter(0)\n z = f32[] constant(0)\n"
        " ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=add }"
    )


def _best(text: str, arguments: Sequence[np.ndarray], num_threads: int | None) -> KernelTime:
    """The kernels of a program in the quickest of a few batches of calls, taken together."""
    options = CompileOptions(num_threads=num_threads, profile=True)
    executable = get_backend("cpu").compile(parse(text), options)

    def passed(calls: int) -> KernelTime:
        before = executable.kernel_profile().kernels
        for _ in range(calls):
            executable(*arguments)
        after = executable.kernel_profile().kernels
        time_ns, flops, size = (
            sum(getattr(one, name) for one in after) - sum(getattr(one, name) for one in before)
            for name in ("time_ns", "flops", "bytes_accessed")
        )
        return KernelTime(executable.name, "", calls, time_ns, flops, size)

    calls = max(1, min(1000, int(_BATCH_NS / max(passed(1).time_ns, 1))))
    return min((passed(calls) for _ in range(_BATCHES)), key=lambda one: one.time_ns)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    return math.floor(math.log10(min(values)) - 0.1), math.ceil(math.log10(max(values)) + 0.1)


def _axes(left: int, right: int, low: int, high: int, at: Callable[[float, float], tuple[float, float]]) -> str:
    parts = []
    for power in range(left, right + 1):
        x, _ = at(10.0**power, 1)
        parts.append(f'<path d="M{x:.1f} {_MARGIN}V{_HEIGHT - _MARGIN}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _MARGIN + 18}">{10.0**power:g}</text>')
    for power in range(low, high + 1):
        _, y = at(1, 10.0**power)
        parts.append(f'<path d="M{_MARGIN} {y:.1f}H{_WIDTH - _MARGIN}"/>')
        parts.append(f'<text x="{_MARGIN - 6}" y="{y + 4:.1f}" class="y">{10.0**power:g}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 14}">operations for each byte</text>')
    parts.append(f'<text x="{_MARGIN}" y="{_MARGIN - 18}">GFLOP/s</text>')
    return "".join(parts)


_STYLE = (
    "rect{fill:#fff}path{stroke:#dfe4ea;fill:none}.roof{stroke:#d9644a;stroke-width:2}"
    "circle{fill:#4f8ef0;fill-opacity:.7;stroke:#1c2128}text{font:12px system-ui,sans-serif;fill:#5b6676;"
    "text-anchor:middle}.y{text-anchor:end}@media(prefers-color-scheme:dark){rect{fill:#14181d}path{stroke:#323a45}"
    ".roof{stroke:#ff9d7a}circle{stroke:#d7dde5}text{fill:#9aa7b8}}"
)
