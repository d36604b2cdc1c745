"""Narrow types: conversions, arithmetic of bytes in vectors of bytes, quantisation, sums into wider types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import dims, function_contest, signed, text_contest

from xlalite.hlo.types.dtype import DType

_CONVERSIONS = (
    ("f32", "f8e4m3fn"),
    ("f8e4m3fn", "f32"),
    ("f8e5m2", "bf16"),
    ("bf16", "f8e4m3fn"),
    ("f32", "f16"),
    ("bf16", "s8"),
)


def workloads() -> list[Workload]:
    """All of them."""
    big, odd, long = ({"rows": r, "columns": c} for r, c in ((4096, 1024), (1000, 777), (63, 4097)))
    place = " [{rows},{columns}]"
    return [
        *(workload(f"{a} to {b}{place}", partial(_convert, a, b), **odd) for a, b in _CONVERSIONS),
        workload("f32 to s4" + place, partial(_convert, "f32", "s4"), **odd),
        workload("f4e2m1fn to bf16" + place, partial(_convert, "f4e2m1fn", "bf16"), **odd),
        workload("s8 add of {count}", partial(_binary, "add", "s8"), count=16_000_000),
        *(
            workload(f"{dtype} {opcode}{place}", partial(_elementwise, opcode, dtype), **size)
            for opcode, dtype, size in (
                ("add", "s8", odd),
                ("multiply", "s8", odd),
                ("maximum", "u8", long),
                ("divide", "s8", odd),
                ("remainder", "s16", odd),
                ("add", "s4", odd),
                ("shift-right-logical", "u8", odd),
                ("add", "f16", odd),
                ("multiply", "bf16", big),
                ("add", "f8e4m3fn", odd),
            )
        ),
        workload("u8 saturating add" + place, _saturating_add, **odd),
        workload("s8 select by comparison" + place, _select, **odd),
        *(workload("s8 sum of rows into s32" + place, _sum, **size) for size in (big, odd)),
        *(workload("quantise f32 to s8" + place, _quantise, **size) for size in (big, odd)),
        *(workload("dequantise s8 to bf16" + place, _dequantise, **size) for size in (big, odd)),
        workload("tanh, bf16" + place, _tanh, **odd),
        workload("step of momentum, f16" + place, _momentum, **odd),
        workload("normalise bytes [{images},{size},{size},3]", _normalise, images=8, size=224),
    ]


def _momentum(rows: int = 5, columns: int = 7) -> Contest:
    """Weights and their momentum after a step."""
    arrays = [_numbers("f16", rows, columns, seed=seed) for seed in range(3)]

    def step(package: Any) -> Callable[..., Any]:
        half = np.float16
        return lambda w, g, m: (w - half(0.01) * (half(0.9) * m + g), half(0.9) * m + g)

    in_torch = lambda torch: lambda w, g, m: (w - 0.01 * (0.9 * m + g), 0.9 * m + g)  # noqa: E731
    return function_contest(None, arrays, step, torch=in_torch, tolerance=1e-2)


def _normalise(images: int = 2, size: int = 5) -> Contest:
    """Images as networks take them: of numbers from 0 to 1, less a mean, by a deviation."""
    pixels = np.random.default_rng(0).integers(0, 256, (images, size, size, 3), np.uint8)
    mean, deviation = (np.array(three, np.float32) for three in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))

    def normalise(package: Any) -> Callable[..., Any]:
        return lambda x, m, d: (package.float32(1) * x / package.float32(255) - m) / d

    in_torch = lambda torch: lambda x, m, d: (x.float() / 255 - m) / d  # noqa: E731
    return function_contest(None, [pixels, mean, deviation], normalise, torch=in_torch)


def _numbers(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers of about the range of small integers, none of them 0."""
    (numbers,) = signed(shape, seed=seed)
    kind = DType(dtype)
    size = min(50.0, 2.0 ** (kind.bits - 3)) if kind.is_integral else 1.0
    numbers = np.sign(numbers) * np.minimum(np.abs(numbers * np.float32(size)) + 1, 2.0 ** (kind.bits - 1) - 1)
    return (np.abs(numbers) if kind.is_unsigned else numbers).astype(kind.numpy)


def _peers(dtypes: Sequence[str], function: Callable[[Any], Callable[..., Any]]) -> dict[str, Any]:
    """NumPy and, where it knows the types, jax."""
    beyond_jax = any(DType(dtype).bits < 8 for dtype in dtypes)
    return {"numpy" if beyond_jax else "plain": function}


def _convert(source: str, target: str, rows: int = 5, columns: int = 7) -> Contest:
    body = f"  x = {source}[{rows},{columns}] parameter(0)\n  ROOT r = {target}[{rows},{columns}] convert(x)\n"
    peers = _peers((source, target), lambda _: lambda x: x.astype(DType(target).numpy))
    return text_contest(body, [_numbers(source, rows, columns)], tolerance=0, **peers)


_FUNCTIONS = {
    "add": "add",
    "multiply": "multiply",
    "maximum": "maximum",
    "shift-right-logical": "right_shift",
    "remainder": "fmod",
}


def _binary(opcode: str, dtype: str, *shape: int, count: int = 1001) -> Contest:
    sizes = shape or (count,)
    text = f"{dtype}[{dims(sizes)}]"
    body = f"  x = {text} parameter(0)\n  y = {text} parameter(1)\n  ROOT r = {text} {opcode}(x, y)\n"
    y = _numbers(dtype, *sizes, seed=1)
    if opcode.startswith("shift"):
        y = y % y.dtype.type(8)
    if opcode == "divide":
        peers: dict[str, Any] = {
            "numpy": lambda _: lambda x, y: np.trunc(x.astype(np.float32) / y).astype(x.dtype),
            "jax": lambda jax: jax.lax.div,
        }
    else:
        peers = _peers((dtype,), lambda np_: getattr(np_, _FUNCTIONS[opcode]))
    return text_contest(body, [_numbers(dtype, *sizes), y], tolerance=0, **peers)


def _elementwise(opcode: str, dtype: str, rows: int = 5, columns: int = 7) -> Contest:
    return _binary(opcode, dtype, rows, columns)


def _saturating_add(rows: int = 5, columns: int = 7) -> Contest:
    shape = f"[{rows},{columns}]"
    body = f"""
  x = u8{shape} parameter(0)
  y = u8{shape} parameter(1)
  a = u16{shape} convert(x)
  b = u16{shape} convert(y)
  s = u16{shape} add(a, b)
  m = u16[] constant(255)
  mb = u16{shape} broadcast(m), dimensions={{}}
  c = u16{shape} minimum(s, mb)
  ROOT r = u8{shape} convert(c)
"""

    def plain(np_: Any) -> Callable[[Any, Any], Any]:
        return lambda x, y: np_.minimum(x.astype(np.uint16) + y.astype(np.uint16), np.uint16(255)).astype(np.uint8)

    return text_contest(body, [_numbers("u8", rows, columns, seed=s) * 3 for s in (0, 1)], plain=plain, tolerance=0)


def _select(rows: int = 5, columns: int = 7) -> Contest:
    shape = f"[{rows},{columns}]"
    body = f"""
  x = s8{shape} parameter(0)
  y = s8{shape} parameter(1)
  g = pred{shape} compare(x, y), direction=GT
  d = s8{shape} subtract(x, y)
  e = s8{shape} xor(x, y)
  ROOT r = s8{shape} select(g, d, e)
"""
    plain = lambda np_: lambda x, y: np_.where(x > y, x - y, x ^ y)  # noqa: E731
    return text_contest(body, [_numbers("s8", rows, columns, seed=s) for s in (0, 1)], plain=plain, tolerance=0)


def _sum(rows: int = 5, columns: int = 7) -> Contest:
    body = f"""
  x = s8[{rows},{columns}] parameter(0)
  w = s32[{rows},{columns}] convert(x)
  z = s32[] constant(0)
  ROOT r = s32[{rows}] reduce(w, z), dimensions={{1}}, to_apply=add_s32
"""
    plain = lambda np_: lambda x: np_.sum(x, axis=1, dtype=np.int32)  # noqa: E731
    return text_contest(body, [_numbers("s8", rows, columns)], plain=plain, tolerance=0)


def _quantise(rows: int = 5, columns: int = 7) -> Contest:
    shape = f"[{rows},{columns}]"
    body = f"""
  x = f32{shape} parameter(0)
  s = f32[{rows}] parameter(1)
  sb = f32{shape} broadcast(s), dimensions={{0}}
  q = f32{shape} multiply(x, sb)
  n = f32{shape} round-nearest-even(q)
  low = f32[] constant(-127)
  high = f32[] constant(127)
  c = f32{shape} clamp(low, n, high)
  ROOT r = s8{shape} convert(c)
"""

    def plain(np_: Any) -> Callable[[Any, Any], Any]:
        return lambda x, s: np_.clip(np_.round(x * s[:, None]), -127, 127).astype(np.int8)

    scale = np.full(rows, 40, np.float32)
    return text_contest(body, [*signed((rows, columns)), scale], plain=plain, tolerance=0)


def _dequantise(rows: int = 5, columns: int = 7) -> Contest:
    shape = f"[{rows},{columns}]"
    body = f"""
  x = s8{shape} parameter(0)
  s = f32[{rows}] parameter(1)
  w = f32{shape} convert(x)
  sb = f32{shape} broadcast(s), dimensions={{0}}
  q = f32{shape} multiply(w, sb)
  ROOT r = bf16{shape} convert(q)
"""

    def plain(np_: Any) -> Callable[[Any, Any], Any]:
        return lambda x, s: (x.astype(np.float32) * s[:, None]).astype(DType.BF16.numpy)

    scale = np.full(rows, 0.025, np.float32)
    return text_contest(body, [_numbers("s8", rows, columns), scale], plain=plain, tolerance=0)


def _tanh(rows: int = 5, columns: int = 7) -> Contest:
    shape = f"bf16[{rows},{columns}]"
    body = f"  x = {shape} parameter(0)\n  ROOT r = {shape} tanh(x)\n"
    return text_contest(
        body, [_numbers("bf16", rows, columns)], plain=lambda np_: lambda x: np_.tanh(x), tolerance=1e-2
    )
