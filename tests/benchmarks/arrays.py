"""Single kernels on arrays: calls, elementwise functions, reductions, row operations, conversions, rearrangements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from benchmarks.harness import Contest, Workload, has, workload
from benchmarks.programs import dims, floats, function_contest, onnx_program, signed, text_contest

import xlalite as xl

_FUNCTIONS = {"exponential": "exp", "tanh": "tanh", "log": "log", "sine": "sin"}


def workloads() -> list[Workload]:
    """All of them."""
    big, odd, long = ({"rows": r, "columns": c} for r, c in ((4096, 1024), (1000, 777), (63, 4097)))
    place = " [{rows},{columns}]"
    return [
        Workload("call a+b, 8 floats", _small_call),
        workload("x+1" + place, _increment, **big),
        *(workload(name + place, partial(_elementwise, op), **big) for op, name in _FUNCTIONS.items()),
        workload("exp" + place, partial(_elementwise, "exponential"), **odd),
        workload("tanh" + place, partial(_elementwise, "tanh"), **long),
        *(workload("softmax" + place, partial(_softmax, "f32"), **size) for size in (big, odd, long)),
        workload("softmax, bf16" + place, partial(_softmax, "bf16"), **big),
        *(workload("layer norm" + place, partial(_layer_norm, "f32"), **size) for size in (big, odd, long)),
        workload("layer norm, bf16" + place, partial(_layer_norm, "bf16"), **big),
        *(
            workload(f"sum {name}{place}", partial(_sum, axis), **size)
            for name, axis in (("all", None), ("rows", "1"), ("columns", "0"))
            for size in (big, odd)
        ),
        workload("sum of {count}", _sum_long, count=16_000_000),
        workload("log-sum-exp of the middle axis [{a},{b},{c}]", _log_sum_exp, a=64, b=128, c=257),
        workload(
            "group norm [{batch},{pixels},{groups},{channels}]",
            _group_norm,
            batch=8,
            pixels=1024,
            groups=32,
            channels=8,
        ),
        workload("var of columns" + place, partial(_statistic, "var", 0), rows=4000, columns=256),
        workload("var of columns" + place, partial(_statistic, "var", 0), rows=16000, columns=256),
        workload("var of rows" + place, partial(_statistic, "var", 1), rows=4000, columns=256),
        workload("argmax of rows" + place, partial(_statistic, "argmax", 1), rows=4000, columns=256),
        workload("argmax of rows" + place, partial(_statistic, "argmax", 1), rows=1000, columns=1000),
        *(
            workload(f"{source} to {target}{place}", partial(_convert, source, target), **size)
            for source, target, size in (
                ("f32", "bf16", big),
                ("bf16", "f32", big),
                ("f32", "s32", odd),
                ("f64", "f32", odd),
                ("u8", "f32", long),
            )
        ),
        workload("transpose [{a},{b}]", partial(_transpose, (1, 0)), a=4096, b=4096),
        workload("transpose [{a},{b}]", partial(_transpose, (1, 0)), a=1000, b=777),
        workload("transpose 0213 [{a},{b},{c},{d}]", partial(_transpose, (0, 2, 1, 3)), a=8, b=129, c=12, d=64),
        workload("transpose 021 [{a},{b},{c}]", partial(_transpose, (0, 2, 1)), a=63, b=64, c=1000),
        workload("concatenate along rows [{rows},{columns}], 3 of it", partial(_concatenate, 0), **odd),
        workload("concatenate along columns [{rows},{columns}], 3 of it", partial(_concatenate, 1), **odd),
        workload("largest of 4 arrays" + place, _largest_of_stacked, **odd),
        workload("pad by 1 and 3" + place, partial(_pad, 0), **odd),
        workload("pad by 1 and 3, and between" + place, partial(_pad, 1), **odd),
        workload("reverse both axes" + place, _reverse, **odd),
    ]


def _increment(rows: int = 5, columns: int = 7) -> Contest:
    in_torch = lambda torch: lambda x: x + 1  # noqa: E731
    return function_contest(None, floats((rows, columns)), lambda np_: lambda x: x + np_.float32(1), torch=in_torch)


def _largest_of_stacked(rows: int = 5, columns: int = 7) -> Contest:
    in_torch = lambda torch: lambda *arrays: torch.stack(arrays).amax(0)  # noqa: E731
    arrays = signed(*[(rows, columns)] * 4)
    return function_contest(None, arrays, lambda np_: lambda *arrays: np_.stack(arrays).max(0), torch=in_torch)


def _elementwise(opcode: str, rows: int = 5, columns: int = 7) -> Contest:
    shape = f"f32[{rows},{columns}]"
    body = f"  x = {shape} parameter(0)\n  ROOT r = {shape} {opcode}(x)\n"
    name = _FUNCTIONS[opcode]
    arguments = floats((rows, columns))
    plain = lambda package: getattr(package, name)  # noqa: E731
    return text_contest(body, arguments, plain=plain, torch=plain)


def _softmax(dtype: str, rows: int = 5, columns: int = 7) -> Contest:
    shape, row = f"f32[{rows},{columns}]", f"f32[{rows}]"
    body = f"""
  p = {dtype}[{rows},{columns}] parameter(0)
  x = {shape} convert(p)
  z = f32[] constant(0)
  low = f32[] constant(-inf)
  m = {row} reduce(x, low), dimensions={{1}}, to_apply=max_f32
  mb = {shape} broadcast(m), dimensions={{0}}
  s = {shape} subtract(x, mb)
  e = {shape} exponential(s)
  q = {row} reduce(e, z), dimensions={{1}}, to_apply=add_f32
  qb = {shape} broadcast(q), dimensions={{0}}
  d = {shape} divide(e, qb)
  ROOT r = {dtype}[{rows},{columns}] convert(d)
"""
    arguments = _in_type(dtype, floats((rows, columns)))
    sizes = f"[{rows},{columns}]"
    in_onnx = onnx_program(f"float{sizes} x", f"float{sizes} y", "y = Softmax<axis=1>(x)")
    return text_contest(
        body,
        arguments,
        plain=_plain_softmax,
        torch=lambda torch: lambda x: torch.softmax(x, 1),
        onnxruntime=in_onnx if dtype == "f32" else None,
        tolerance=_tolerance(dtype),
    )


def _plain_softmax(np_: Any) -> Callable[[Any], Any]:
    def softmax(x: Any) -> Any:
        wide = x.astype(np.float32)
        e = np_.exp(wide - np_.max(wide, axis=1, keepdims=True))
        return (e / np_.sum(e, axis=1, keepdims=True)).astype(x.dtype)

    return softmax


def _layer_norm(dtype: str, rows: int = 5, columns: int = 7) -> Contest:
    shape, row = f"f32[{rows},{columns}]", f"f32[{rows}]"
    body = f"""
  p = {dtype}[{rows},{columns}] parameter(0)
  x = {shape} convert(p)
  z = f32[] constant(0)
  n = f32[] constant({columns})
  nb = {row} broadcast(n), dimensions={{}}
  eps = f32[] constant(1e-05)
  epsb = {row} broadcast(eps), dimensions={{}}
  s = {row} reduce(x, z), dimensions={{1}}, to_apply=add_f32
  mean = {row} divide(s, nb)
  meanb = {shape} broadcast(mean), dimensions={{0}}
  d = {shape} subtract(x, meanb)
  d2 = {shape} multiply(d, d)
  v = {row} reduce(d2, z), dimensions={{1}}, to_apply=add_f32
  var = {row} divide(v, nb)
  vare = {row} add(var, epsb)
  r = {row} rsqrt(vare)
  rb = {shape} broadcast(r), dimensions={{0}}
  o = {shape} multiply(d, rb)
  ROOT t = {dtype}[{rows},{columns}] convert(o)
"""
    arguments = _in_type(dtype, floats((rows, columns)))
    return text_contest(
        body,
        arguments,
        plain=_plain_layer_norm,
        torch=lambda torch: lambda x: torch.nn.functional.layer_norm(x, (columns,)),
        tolerance=_tolerance(dtype),
    )


def _plain_layer_norm(np_: Any) -> Callable[[Any], Any]:
    def layer_norm(x: Any) -> Any:
        wide = x.astype(np.float32)
        d = wide - np_.mean(wide, axis=1, keepdims=True)
        return (d / np_.sqrt(np_.mean(d * d, axis=1, keepdims=True) + np.float32(1e-5))).astype(x.dtype)

    return layer_norm


def _sum(axis: str | None, rows: int = 5, columns: int = 7) -> Contest:
    number = None if axis is None else int(axis)
    result = () if axis is None else (rows, columns)[1 - int(axis) : 2 - int(axis)]
    body = (
        f"  x = f32[{rows},{columns}] parameter(0)\n  z = f32[] constant(0)\n"
        f"  ROOT r = f32[{dims(result)}] reduce(x, z), dimensions={{{axis or '0,1'}}}, to_apply=add_f32\n"
    )
    plain = lambda np_: lambda x: np_.sum(x, axis=number)  # noqa: E731
    return text_contest(body, floats((rows, columns)), plain=plain, torch=plain)


def _sum_long(count: int = 1001) -> Contest:
    body = (
        f"  x = f32[{count}] parameter(0)\n  z = f32[] constant(0)\n"
        "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add_f32\n"
    )
    return text_contest(body, floats((count,)), plain=lambda np_: np_.sum, torch=lambda t: t.sum)


def _log_sum_exp(a: int = 3, b: int = 5, c: int = 7) -> Contest:
    def plain(np_: Any) -> Callable[[Any], Any]:
        def log_sum_exp(x: Any) -> Any:
            m = np_.max(x, axis=1, keepdims=True)
            return np_.log(np_.sum(np_.exp(x - m), axis=1)) + np_.squeeze(m, 1)

        return log_sum_exp

    in_torch = lambda torch: lambda x: torch.logsumexp(x, 1)  # noqa: E731
    return function_contest(None, signed((a, b, c)), plain, scipy=_scipy_log_sum_exp, torch=in_torch)


def _scipy_log_sum_exp(scipy: Any) -> Callable[[Any], Any]:
    from scipy.special import logsumexp

    return lambda x: logsumexp(x, axis=1)


def _group_norm(batch: int = 2, pixels: int = 5, groups: int = 3, channels: int = 4) -> Contest:
    def plain(np_: Any) -> Callable[[Any, Any], Any]:
        def group_norm(x: Any, scale: Any) -> Any:
            d = x - np_.mean(x, axis=(1, 3), keepdims=True)
            return d / np_.sqrt(np_.mean(d * d, axis=(1, 3), keepdims=True) + np_.float32(1e-5)) * scale

        return group_norm

    return function_contest(None, signed((batch, pixels, groups, channels), (groups, channels)), plain)


def _statistic(name: str, axis: int, rows: int = 5, columns: int = 7) -> Contest:
    return function_contest(
        None,
        signed((rows, columns)),
        lambda np_: lambda x: getattr(np_, name)(x, axis=axis),
        torch=lambda torch: (
            lambda x: torch.var(x, axis, correction=0) if name == "var" else getattr(torch, name)(x, axis)
        ),
        tolerance=1e-3,
    )


def _convert(source: str, target: str, rows: int = 5, columns: int = 7) -> Contest:
    body = f"  x = {source}[{rows},{columns}] parameter(0)\n  ROOT r = {target}[{rows},{columns}] convert(x)\n"
    (numbers,) = floats((rows, columns))
    arguments = [(numbers * np.float32(50)).astype(_TYPES[source])]
    # jax would narrow f64 before it begins.
    peer = "numpy" if source == "f64" else "plain"
    peers = {peer: lambda _: lambda x: x.astype(_TYPES[target])}
    in_torch = lambda torch: lambda x: x.to(getattr(torch, _TORCH_TYPES[target]))  # noqa: E731
    return text_contest(body, arguments, tolerance=0, torch=in_torch, **peers)


def _transpose(order: Sequence[int], **sizes: int) -> Contest:
    shape = tuple(sizes.values()) or (3, 4, 5, 7)[: len(order)]
    result = [shape[axis] for axis in order]
    body = (
        f"  x = f32[{dims(shape)}] parameter(0)\n"
        f"  ROOT r = f32[{dims(result)}] transpose(x), dimensions={{{dims(order)}}}\n"
    )
    return text_contest(
        body,
        floats(shape),
        plain=lambda np_: lambda x: np_.transpose(x, order).copy(),
        torch=lambda torch: lambda x: x.permute(order).contiguous(),
        onnxruntime=onnx_program(
            f"float[{dims(shape)}] x", f"float[{dims(result)}] y", f"y = Transpose<perm=[{dims(order)}]>(x)"
        ),
        tolerance=0,
    )


def _concatenate(axis: int, rows: int = 5, columns: int = 7) -> Contest:
    shapes = [(rows, columns)] * 3
    plain = lambda np_: lambda x, y, z: np_.concatenate([x, y, z], axis)  # noqa: E731
    return function_contest(None, floats(*shapes), plain, torch=plain, tolerance=0)


def _pad(between: int, rows: int = 5, columns: int = 7) -> Contest:
    grown = [4 + size + between * (size - 1) for size in (rows, columns)]
    body = (
        f"  x = f32[{rows},{columns}] parameter(0)\n  z = f32[] constant(0)\n"
        f"  ROOT r = f32[{dims(grown)}] pad(x, z), padding=1_3_{between}x1_3_{between}\n"
    )

    def padded(x: np.ndarray) -> np.ndarray:
        result = np.zeros(grown, np.float32)
        result[1 : -3 : 1 + between, 1 : -3 : 1 + between] = x
        return result

    low_high_between = [(1, 3, between)] * 2
    return text_contest(
        body,
        floats((rows, columns)),
        numpy=lambda _: padded,
        jax=lambda jax: lambda x: jax.lax.pad(x, np.float32(0), low_high_between),
        torch=None if between else lambda torch: lambda x: torch.nn.functional.pad(x, (1, 3, 1, 3)),
        tolerance=0,
    )


def _reverse(rows: int = 5, columns: int = 7) -> Contest:
    return function_contest(
        None,
        floats((rows, columns)),
        lambda np_: lambda x: np_.flip(x, (0, 1)).copy(),
        torch=lambda torch: lambda x: torch.flip(x, (0, 1)),
        tolerance=0,
    )


def _small_call() -> Contest:
    a, b = np.ones(8, np.float32), np.ones(8, np.float32)
    text = "HloModule t\nENTRY e {\n x = f32[8] parameter(0)\n y = f32[8] parameter(1)\n ROOT r = f32[8] add(x, y)\n}\n"
    executable = xl.compile(xl.hlo.parse(text))
    function = executable.function
    contestants: dict[str, Callable[[], object]] = {
        "xlalite": lambda: executable(a, b),
        "xlalite (.function)": lambda: function(a, b),
        "numpy": lambda: a + b,
    }
    if has("jax"):
        import jax

        compiled, x, y = jax.jit(lambda p, q: p + q), jax.device_put(a), jax.device_put(b)
        contestants["jax"] = lambda: compiled(x, y).block_until_ready()
        contestants["jax, NumPy arrays"] = lambda: compiled(a, b).block_until_ready()
    return Contest(contestants, executable=executable)


_TORCH_TYPES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "s32": "int32", "u8": "uint8"}
_TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "s32": np.int32, "u8": np.uint8}


def _in_type(dtype: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [array.astype(_TYPES[dtype]) for array in arrays]


def _tolerance(dtype: str) -> float:
    return 1e-2 if dtype == "bf16" else 1e-4
