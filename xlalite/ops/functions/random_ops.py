"""Random numbers from NumPy's Philox generator, one stream for each operation and session.

They are drawn on the host, compiled or not, so that results do not depend on whether anything was compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, DType, as_dtype, float32, int32, int64
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.static_value import constant_value_as_shape
from xlalite.framework.random_seed import get_seed
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.shape_rules import require_same_type, require_scalar, require_type
from xlalite.ops.helpers.sizes import as_size_vector

Draw = Callable[[np.random.Generator, tuple[int, ...], np.dtype[Any], tuple[Array, ...]], Array]
WHY_HOST = "it draws from a stream of random numbers that belongs to the session"


@dataclass(slots=True)
class RandomStream:
    """One operation's generator in one session; draws are taken one at a time."""

    generator: np.random.Generator
    lock: threading.Lock = field(default_factory=threading.Lock)


def stream_for(op: Operation) -> RandomStream:
    """A new generator for an operation, as its seeds say."""
    seed, seed2 = op.get_attr("seed"), op.get_attr("seed2")
    if seed == 0 and seed2 == 0:
        return RandomStream(np.random.Generator(np.random.Philox()))
    key = (seed & 0xFFFFFFFFFFFFFFFF) | (seed2 & 0xFFFFFFFFFFFFFFFF) << 64
    return RandomStream(np.random.Generator(np.random.Philox(key=key)))


def _declare(name: str, draw: Draw, bounds: tuple[str, ...] = ()) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        shape, *rest = op.inputs
        require_type(shape, INTEGER_TYPES, "shape")
        if rest:
            require_same_type(rest)
            for tensor, what in zip(rest, bounds, strict=True):
                require_scalar(tensor, what)
        return [(op.get_attr("dtype"), constant_value_as_shape(shape))]

    def kernel(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
        sizes, *rest = (np.asarray(value) for value in inputs)
        stream = context.state(op, lambda: stream_for(op))
        dtype = op.get_attr("dtype").as_numpy_dtype
        if (sizes < 0).any():
            raise InvalidArgumentError(None, op, f"sizes must not be negative, found {sizes.tolist()}")
        with stream.lock:
            return [np.asarray(draw(stream.generator, tuple(int(s) for s in sizes), dtype, tuple(rest)))]

    register(
        OpSpec(
            name,
            infer,
            inputs=("shape", *bounds),
            attrs=("dtype", "seed", "seed2"),
            host_kernel=kernel,
            gradient=None,
            group=None,
            constant_inputs=("shape",),
            is_stateful=True,
            why_host=WHY_HOST,
        )
    )


def _working_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)


def _uniform(rng: np.random.Generator, dims: tuple[int, ...], dtype: np.dtype[Any], rest: tuple[Array, ...]) -> Array:
    drawn = np.asarray(rng.random(dims, _working_type(dtype)))
    # Cut off the bits that a narrow type lacks: rounding could reach 1, which the interval leaves out.
    scale = 2.0 ** (ml_dtypes.finfo(dtype).nmant + 1)  # type: ignore[no-untyped-call]
    return np.asarray((np.floor(drawn * scale) / scale).astype(dtype))


def _normal(rng: np.random.Generator, dims: tuple[int, ...], dtype: np.dtype[Any], rest: tuple[Array, ...]) -> Array:
    return np.asarray(rng.standard_normal(dims, _working_type(dtype))).astype(dtype)


def _truncated(rng: np.random.Generator, dims: tuple[int, ...], dtype: np.dtype[Any], rest: tuple[Array, ...]) -> Array:
    """Normal numbers; those beyond two standard deviations are drawn again."""
    values = np.asarray(rng.standard_normal(dims, _working_type(dtype))).ravel()
    outside = np.flatnonzero(np.abs(values) > 2)
    while outside.size:
        values[outside] = rng.standard_normal(outside.size, _working_type(dtype))
        outside = outside[np.abs(values[outside]) > 2]
    return values.reshape(dims).astype(dtype)


def _integers(rng: np.random.Generator, dims: tuple[int, ...], dtype: np.dtype[Any], rest: tuple[Array, ...]) -> Array:
    low, high = int(rest[0]), int(rest[1])
    if low >= high:
        raise ShapeError(f"random integers: minval {low} must be less than maxval {high}")
    return np.asarray(rng.integers(low, high, dims, dtype=dtype))


_declare("RandomUniform", _uniform)
_declare("RandomStandardNormal", _normal)
_declare("TruncatedNormal", _truncated)
_declare("RandomUniformInt", _integers, ("minval", "maxval"))


# RandomShuffle(value): its rows in random order.


def _shuffle_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[0].dtype, op.inputs[0].shape)]


def _shuffle(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    value = np.asarray(inputs[0])
    stream = context.state(op, lambda: stream_for(op))
    with stream.lock:
        return [value if value.ndim == 0 else value[stream.generator.permutation(len(value))]]


register(
    OpSpec(
        "RandomShuffle",
        _shuffle_infer,
        inputs=("value",),
        attrs=("seed", "seed2"),
        host_kernel=_shuffle,
        gradient=None,
        group=None,
        is_stateful=True,
        why_host=WHY_HOST,
    )
)


# The functions users call.


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers evenly distributed in `[minval, maxval)`; integers need a `maxval`."""
    wanted = as_dtype(dtype)
    sizes = as_size_vector(shape)
    if wanted in (int32, int64):
        if maxval is None:
            raise ShapeError("random_uniform of integers needs maxval")
        low, high = (cast_to(tensor, wanted) for tensor in promote(minval, maxval))
        return node("RandomUniformInt", [sizes, low, high], _attrs(wanted, seed), name or "random_uniform")
    _require_floating(wanted, "random_uniform")
    drawn = node("RandomUniform", [sizes], _attrs(wanted, seed), name or "random_uniform")
    if isinstance(minval, int | float) and minval == 0 and (maxval is None or maxval == 1):
        return drawn
    low, high = (cast_to(tensor, wanted) for tensor in promote(minval, 1 if maxval is None else maxval))
    return drawn * (high - low) + low  # type: ignore[no-any-return]


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers."""
    return _scaled_normal("RandomStandardNormal", shape, mean, stddev, dtype, seed, name or "random_normal")


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers, none further than two standard deviations from the mean."""
    return _scaled_normal("TruncatedNormal", shape, mean, stddev, dtype, seed, name or "truncated_normal")


def random_shuffle(value: Tensor, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of `value` in random order."""
    graph_seed, op_seed = get_seed(seed)
    return node("RandomShuffle", promote(value), {"seed": graph_seed, "seed2": op_seed}, name)


def _scaled_normal(op_type: str, shape: Any, mean: Any, stddev: Any, dtype: Any, seed: int | None, name: str) -> Tensor:
    wanted = as_dtype(dtype)
    _require_floating(wanted, name)
    drawn = node(op_type, [as_size_vector(shape)], _attrs(wanted, seed), name)
    if not isinstance(stddev, int | float) or stddev != 1:
        drawn = drawn * cast_to(promote(stddev)[0], wanted)
    if not isinstance(mean, int | float) or mean != 0:
        drawn = drawn + cast_to(promote(mean)[0], wanted)
    return drawn


def _attrs(dtype: DType, seed: int | None) -> dict[str, object]:
    graph_seed, op_seed = get_seed(seed)
    return {"dtype": dtype, "seed": graph_seed, "seed2": op_seed}


def _require_floating(dtype: DType, what: str) -> None:
    if dtype not in FLOATING_TYPES:
        raise ShapeError(f"{what}: element type {dtype.name} is not floating-point")
