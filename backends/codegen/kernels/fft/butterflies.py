"""Transforms of a few numbers in registers, complex numbers being pairs of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from xlalite.backends.codegen.kernels.fft.twiddles import roots
from xlalite.backends.codegen.llvm import FunctionBuilder, Value

Complex = tuple[Value, Value]


def add(fb: FunctionBuilder, a: Complex, b: Complex) -> Complex:
    """The sum."""
    return fb.fadd(a[0], b[0]), fb.fadd(a[1], b[1])


def subtract(fb: FunctionBuilder, a: Complex, b: Complex) -> Complex:
    """The difference."""
    return fb.fsub(a[0], b[0]), fb.fsub(a[1], b[1])


def multiply(fb: FunctionBuilder, a: Complex, b: Complex) -> Complex:
    """The product."""
    real = fb.fsub(fb.fmul(a[0], b[0]), fb.fmul(a[1], b[1]))
    return real, fb.fadd(fb.fmul(a[0], b[1]), fb.fmul(a[1], b[0]))


def butterfly(fb: FunctionBuilder, elements: Sequence[Complex]) -> list[Complex]:
    """`result[k] = sum over j of elements[j] * exp(-2 pi i j k / n)`, n one of 2, 4, 8 or odd."""
    return _BUTTERFLIES.get(len(elements), _odd)(fb, elements)


def _two(fb: FunctionBuilder, x: Sequence[Complex]) -> list[Complex]:
    return [add(fb, x[0], x[1]), subtract(fb, x[0], x[1])]


def _four(fb: FunctionBuilder, x: Sequence[Complex]) -> list[Complex]:
    (a, b), (c, d) = _two(fb, (x[0], x[2])), _two(fb, (x[1], x[3]))
    return [
        add(fb, a, c),
        (fb.fadd(b[0], d[1]), fb.fsub(b[1], d[0])),
        subtract(fb, a, c),
        (fb.fsub(b[0], d[1]), fb.fadd(b[1], d[0])),
    ]


def _eight(fb: FunctionBuilder, x: Sequence[Complex]) -> list[Complex]:
    even, odd = _four(fb, x[::2]), _four(fb, x[1::2])
    (r1, i1), (r2, i2), (r3, i3) = odd[1:]
    half = math.sqrt(0.5)
    first = fb.fmul(fb.fadd(r1, i1), half), fb.fmul(fb.fsub(i1, r1), half)
    third = fb.fmul(fb.fsub(i3, r3), half), fb.fmul(fb.fadd(r3, i3), -half)
    low = [add(fb, a, b) for a, b in zip(even, (odd[0], first, (i2, r2), third), strict=True)]
    high = [subtract(fb, a, b) for a, b in zip(even, (odd[0], first, (i2, r2), third), strict=True)]
    # odd[2] is turned by -i, which is (i2, -r2).
    low[2], high[2] = (low[2][0], high[2][1]), (high[2][0], low[2][1])
    return [*low, *high]


def _odd(fb: FunctionBuilder, x: Sequence[Complex]) -> list[Complex]:
    """Sums and differences of the pairs j, n - j, times cosines and sines."""
    count = len(x)
    half, unit = range(1, count // 2 + 1), roots(np.arange(count), count)
    sums = [add(fb, x[j], x[count - j]) for j in half]
    differences = [subtract(fb, x[j], x[count - j]) for j in half]
    total = x[0]
    for one in sums:
        total = add(fb, total, one)
    result = [total] * count
    for k in half:
        middle, turned = x[0], None
        for j, one, other in zip(half, sums, differences, strict=True):
            cosine, sine = float(unit[j * k % count].real), -float(unit[j * k % count].imag)
            middle = (
                fb.fadd(middle[0], fb.fmul(one[0], cosine)),
                fb.fadd(middle[1], fb.fmul(one[1], cosine)),
            )
            part = fb.fmul(other[0], sine), fb.fmul(other[1], sine)
            turned = part if turned is None else add(fb, turned, part)
        assert turned is not None, "an odd radix is at least 3"
        result[k] = fb.fadd(middle[0], turned[1]), fb.fsub(middle[1], turned[0])
        result[count - k] = fb.fsub(middle[0], turned[1]), fb.fadd(middle[1], turned[0])
    return result


_BUTTERFLIES: dict[int, Callable[[FunctionBuilder, Sequence[Complex]], list[Complex]]] = {2: _two, 4: _four, 8: _eight}
