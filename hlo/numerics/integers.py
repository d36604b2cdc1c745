"""Integer arithmetic of HLO: two's complement that wraps, with a value for every division and shift.

The functions take NumPy's own integer types; `bits` tells the width where the type is narrower than its storage.
"""

from __future__ import annotations

import numpy as np

from xlalite.hlo.numerics.rounding import AnyArray


def divide(x: AnyArray, y: AnyArray) -> AnyArray:
    """Quotient, truncated toward zero; x/0 has all bits set, and the smallest number divided by -1 is itself."""
    divisor = _safe_divisor(y)
    quotient = (x - np.fmod(x, divisor)) // divisor
    if x.dtype.kind == "i":
        quotient = np.where(y == -1, np.negative(x), quotient)
    return np.where(y == 0, np.invert(np.zeros_like(x)), quotient)


def remainder(x: AnyArray, y: AnyArray) -> AnyArray:
    """Remainder with the dividend's sign; x rem 0 = x."""
    result = np.fmod(x, _safe_divisor(y))
    if x.dtype.kind == "i":
        result = np.where(y == -1, np.zeros_like(x), result)
    return np.where(y == 0, x, result)


def _safe_divisor(y: AnyArray) -> AnyArray:
    """Zero and, for signed types, -1 replaced by 1: the two divisors for which processors trap."""
    return np.where((y == 0) | ((y == -1) if y.dtype.kind == "i" else np.False_), np.ones_like(y), y)


def power(x: AnyArray, y: AnyArray) -> AnyArray:
    """Repeated product that wraps; x^0 = 1, and a negative exponent gives 1 for base 1, 1 or -1 for -1, and else 0."""
    if x.dtype.kind == "u":
        return np.power(x, y)
    # A base of 1 or -1 to a negative exponent is what it is to the exponent's lowest bit.
    result = np.power(x, np.where(y < 0, y & 1, y))
    return np.where((y < 0) & (x != 1) & (x != -1), np.zeros_like(x), result)


def multiply_high(x: AnyArray, y: AnyArray, bits: int) -> AnyArray:
    """The upper half of the product of double width."""
    if bits <= 32:
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return ((x.astype(wide) * y.astype(wide)) >> wide(bits)).astype(x.dtype)
    high = _multiply_high_unsigned(x.astype(np.uint64), y.astype(np.uint64))
    if x.dtype.kind == "i":
        high = (
            high
            - np.where(x < 0, y.astype(np.uint64), np.uint64(0))
            - np.where(y < 0, x.astype(np.uint64), np.uint64(0))
        )
    return high.astype(x.dtype)


def _multiply_high_unsigned(x: AnyArray, y: AnyArray) -> AnyArray:
    """Long multiplication with digits of 32 bits."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    x_low, x_high, y_low, y_high = x & mask, x >> half, y & mask, y >> half
    middle = x_high * y_low + ((x_low * y_low) >> half)
    other_middle = x_low * y_high + (middle & mask)
    high: AnyArray = x_high * y_high + (middle >> half) + (other_middle >> half)
    return high


def shift_left(x: AnyArray, amount: AnyArray, bits: int) -> AnyArray:
    """Zeros come in; an amount of the width or more (taken as unsigned) leaves nothing."""
    fits, amount = _shift_amount(amount, bits)
    return np.where(fits, np.left_shift(x, amount), np.zeros_like(x))


def shift_right_logical(x: AnyArray, amount: AnyArray, bits: int) -> AnyArray:
    """Zeros come in from above; an amount of the width or more (taken as unsigned) leaves nothing."""
    fits, amount = _shift_amount(amount, bits)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    pattern = x.astype(unsigned) & unsigned.type((1 << bits) - 1)
    shifted: AnyArray = np.where(fits, np.right_shift(pattern, amount.astype(unsigned)), np.zeros_like(pattern))
    return shifted.astype(x.dtype)


def shift_right_arithmetic(x: AnyArray, amount: AnyArray, bits: int) -> AnyArray:
    """Copies of the top bit come in; an amount of the width or more (taken as unsigned) leaves only those.

    The top bit is the top bit of unsigned types too.
    """
    fits, amount = _shift_amount(amount, bits)
    signed, spare = np.dtype(f"i{x.dtype.itemsize}"), x.dtype.itemsize * 8 - bits
    value = np.right_shift(np.left_shift(x.astype(signed), signed.type(spare)), signed.type(spare))
    amount = np.where(fits, amount, amount.dtype.type(bits - 1)).astype(signed)
    shifted: AnyArray = np.right_shift(value, amount)
    return shifted.astype(x.dtype)


def _shift_amount(amount: AnyArray, bits: int) -> tuple[AnyArray, AnyArray]:
    """Whether each amount is less than the width, and the amounts with 0 in place of those that are not."""
    unsigned = np.dtype(f"u{amount.dtype.itemsize}")
    fits: AnyArray = (amount.astype(unsigned) & unsigned.type((1 << bits) - 1)) < bits
    return fits, np.where(fits, amount, np.zeros_like(amount))


def population_count(x: AnyArray, bits: int) -> AnyArray:
    """Number of bits set."""
    return _count_ones(_pattern(x, bits)).astype(x.dtype)


def count_leading_zeros(x: AnyArray, bits: int) -> AnyArray:
    """Number of zero bits above the highest one; the width for zero."""
    pattern = _pattern(x, bits)
    for distance in (1, 2, 4, 8, 16, 32):
        pattern = pattern | (pattern >> np.uint64(distance))
    return (np.uint64(bits) - _count_ones(pattern)).astype(x.dtype)


def _pattern(x: AnyArray, bits: int) -> AnyArray:
    pattern: AnyArray = x.astype(np.uint64) & np.uint64((1 << bits) - 1)
    return pattern


def _count_ones(pattern: AnyArray) -> AnyArray:
    """Sums bits in pairs, then pairs in nibbles, then all nibbles by one product."""
    pairs = pattern - ((pattern >> np.uint64(1)) & np.uint64(0x5555555555555555))
    low = np.uint64(0x3333333333333333)
    nibbles = (pairs & low) + ((pairs >> np.uint64(2)) & low)
    octets = (nibbles + (nibbles >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    counts: AnyArray = (octets * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return counts
