"""Random numbers, as users ask for them."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.dtypes import FLOATING_TYPES, DType, as_dtype, float32, int32, int64
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.random_seed import get_seed
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.sizes import as_size_vector


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
