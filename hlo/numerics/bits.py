"""Element types as patterns of bits: reinterpretation, and rounding to formats that are no element type."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.numerics.rounding import AnyArray, round_to
from xlalite.hlo.types.dtype import DType


def reinterpreted_dims(dims: tuple[int, ...], source: DType, target: DType) -> tuple[int, ...] | None:
    """Sizes after `reinterpret`: one more dimension for a narrower type, one less for a wider one.

    None when the last dimension does not hold exactly the parts of one wider element.
    """
    if source.bits == target.bits:
        return dims
    if source.bits > target.bits:
        parts, rest = divmod(source.bits, target.bits)
        return None if rest else (*dims, parts)
    parts, rest = divmod(target.bits, source.bits)
    return None if rest or not dims or dims[-1] != parts else dims[:-1]


def reinterpret(values: AnyArray, target: DType) -> AnyArray:
    """The bits as another type; the lowest bits of a wider element are the first of its narrower parts."""
    source = DType.from_numpy(values.dtype)
    if source.bits == target.bits:
        return np.ascontiguousarray(values).view(target.numpy).reshape(values.shape)
    if source.bits > target.bits:
        return _split(values, source, target)
    return _join(values, source, target)


def reinterpret_flat(values: AnyArray, target: DType) -> AnyArray:
    """The bits of a vector as a vector of another type."""
    source = DType.from_numpy(values.dtype)
    if source.bits == target.bits:
        return reinterpret(values, target)
    if source.bits > target.bits:
        return _split(values, source, target).reshape(-1)
    return _join(values.reshape(-1, target.bits // source.bits), source, target)


def _split(values: AnyArray, source: DType, target: DType) -> AnyArray:
    parts = source.bits // target.bits
    octets = np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, source.size_bytes)
    if target.bits >= 8:
        return octets.view(target.numpy).reshape(*values.shape, parts)
    shifts = np.arange(0, min(source.bits, 8), target.bits, dtype=np.uint8)
    fields = (octets[..., np.newaxis] >> shifts) & np.uint8((1 << target.bits) - 1)
    return _from_fields(fields.reshape(*values.shape, parts), target)


def _join(values: AnyArray, source: DType, target: DType) -> AnyArray:
    dims = values.shape[:-1]
    octets = np.ascontiguousarray(values).view(np.uint8)
    if source.bits < 8:
        fields = (octets & np.uint8((1 << source.bits) - 1)).reshape(*dims, target.size_bytes, -1)
        shifts = np.arange(0, min(target.bits, 8), source.bits, dtype=np.uint8)
        octets = np.bitwise_or.reduce(fields << shifts, axis=-1)
    if target.bits < 8:
        return _from_fields(octets.reshape(dims), target)
    return np.ascontiguousarray(octets).reshape(*dims, target.size_bytes).view(target.numpy).reshape(dims)


def _from_fields(fields: AnyArray, target: DType) -> AnyArray:
    """Bit patterns in the low bits of bytes as elements; signed integers are stored sign-extended."""
    if target.is_signed:
        spare = np.uint8(8 - target.bits)
        return ((fields << spare).view(np.int8) >> spare.astype(np.int8)).astype(target.numpy)
    return np.ascontiguousarray(fields).view(target.numpy)


# Bits of exponent and mantissa of the formats that follow IEEE 754 and that NumPy can view as integers.
_IEEE_FIELDS = {DType.F16: (5, 10), DType.BF16: (8, 7), DType.F32: (8, 23), DType.F64: (11, 52)}


def reduce_precision(values: AnyArray, exponent_bits: int, mantissa_bits: int) -> AnyArray:
    """The values rounded to nearest even in a format of 1 + exponent_bits + mantissa_bits bits, in their own type.

    Too large becomes infinite; where the exponent is narrower than the type's, denormals of the format become zero. NaN
    stays NaN, even where the format has no mantissa to hold it.
    """
    dtype = DType.from_numpy(values.dtype)
    if dtype not in _IEEE_FIELDS:
        return round_to(reduce_precision(values.astype(np.float32), exponent_bits, mantissa_bits), values.dtype)
    own_exponent, own_mantissa = _IEEE_FIELDS[dtype]
    unsigned = np.dtype(f"u{dtype.size_bytes}").type
    pattern = np.ascontiguousarray(values).view(unsigned).reshape(values.shape)
    sign = pattern & unsigned(1 << (dtype.bits - 1))
    size = pattern ^ sign
    if mantissa_bits < own_mantissa:
        unit = 1 << (own_mantissa - mantissa_bits)
        odd = (size >> unsigned(own_mantissa - mantissa_bits)) & unsigned(1)
        size = (size + odd + unsigned((unit >> 1) - 1)) & ~unsigned(unit - 1)
    infinity = unsigned(((1 << own_exponent) - 1) << own_mantissa)
    if exponent_bits < own_exponent:
        own_bias, bias = (1 << (own_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = size >> unsigned(own_mantissa)
        size = np.where(exponent > own_bias + bias, infinity, size)
        size = np.where(exponent <= own_bias - bias, unsigned(0), size)
    result = (sign | size).astype(unsigned).view(dtype.numpy)
    return np.where(_is_nan(values), values, result)


def _is_nan(values: AnyArray) -> AnyArray:
    return np.isnan(values if values.dtype.isbuiltin == 1 else values.astype(np.float32))
