"""Random choices, crops and distributions: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.random_seed import get_seed
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import expand_dims, shape, slice as cut
from xlalite.ops.functions.math import argmax, clip_by_value, log
from xlalite.ops.functions.random_ops import random_uniform
from xlalite.ops.functions.special import erfc, ndtri
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.sizes import as_size_vector


def multinomial(
    logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None, output_dtype: Any = dtypes.int64
) -> Tensor:
    """For each row of unnormalised log-probabilities so many random classes: `[batch, num_samples]`."""
    scores = convert_to_tensor(logits)
    with get_default_graph().name_scope(name or "multinomial"):
        drawn = random_uniform(_sizes_of_choices(scores, num_samples), seed=seed, dtype=_drawn_type(scores))
        return _chosen(scores, drawn, output_dtype)


categorical = multinomial


def stateless_multinomial(
    logits: Any, num_samples: Any, seed: Any, output_dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """For each row of unnormalised log-probabilities so many random classes, which follow from the seed."""
    scores = convert_to_tensor(logits)
    with get_default_graph().name_scope(name or "stateless_multinomial"):
        drawn = stateless_random_uniform(_sizes_of_choices(scores, num_samples), seed, dtype=_drawn_type(scores))
        return _chosen(scores, drawn, output_dtype)


def _drawn_type(scores: Tensor) -> dtypes.DType:
    return scores.dtype if scores.dtype in (dtypes.float32, dtypes.float64) else dtypes.float32


def _sizes_of_choices(scores: Tensor, num_samples: Any) -> Tensor:
    rows = shape(scores)
    count = cast_to(convert_to_tensor(num_samples), rows.dtype)
    return node("Pack", [rows[0], count, rows[1]], {"axis": 0})


def _chosen(scores: Tensor, drawn: Tensor, output_dtype: Any) -> Tensor:
    """The largest of the scores with Gumbel's noise (Gumbel 1954)."""
    noise = -log(-log(drawn))
    return argmax(expand_dims(cast_to(scores, drawn.dtype), 1) + noise, 2, output_type=as_dtype(output_dtype))


def stateless_random_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Numbers evenly distributed in `[minval, maxval)`, which follow from the seed.

    Integers need a `maxval`, or neither bound: any integer.

    Raises:
        ShapeError: integers without a `maxval`.
    """
    wanted = as_dtype(dtype)
    sizes, numbers = as_size_vector(shape), convert_to_tensor(seed)
    attrs = {"dtype": wanted}
    if wanted.is_integer:
        if minval is None and maxval is None:
            return node("StatelessRandomUniformFullInt", [sizes, numbers], attrs, name)
        if maxval is None:
            raise ShapeError("stateless_random_uniform of integers needs maxval")
        low, high = (cast_to(bound, wanted) for bound in promote(minval, maxval))
        return node("StatelessRandomUniformInt", [sizes, numbers, low, high], attrs, name)
    drawn = node("StatelessRandomUniform", [sizes, numbers], attrs, name)
    low, high = (cast_to(bound, wanted) for bound in promote(minval, 1 if maxval is None else maxval))
    scaled: Tensor = drawn * (high - low) + low
    return scaled


def stateless_random_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Normally distributed numbers, which follow from the seed."""
    return _scaled("StatelessRandomNormal", shape, seed, mean, stddev, dtype, name)


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Normally distributed numbers within two standard deviations of the mean, which follow from the seed."""
    return _scaled("StatelessTruncatedNormal", shape, seed, mean, stddev, dtype, name)


def _scaled(op_type: str, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: str | None) -> Tensor:
    wanted = as_dtype(dtype)
    drawn = node(op_type, [as_size_vector(shape), convert_to_tensor(seed)], {"dtype": wanted}, name)
    scaled: Tensor = drawn * cast_to(promote(stddev)[0], wanted) + cast_to(promote(mean)[0], wanted)
    return scaled


def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """So many numbers for each pair of parameters, distributed as Gamma(alpha, beta) with rate beta."""
    wanted = as_dtype(dtype)
    a = cast_to(promote(alpha)[0], wanted)
    b = cast_to(promote(1.0 if beta is None else beta)[0], wanted)
    graph_seed, op_seed = get_seed(seed)
    attrs = {"seed": graph_seed, "seed2": op_seed, "dtype": wanted}
    with get_default_graph().name_scope(name or "random_gamma"):
        common = a + node("ZerosLike", [b])
        drawn: Tensor = node("RandomGamma", [as_size_vector(shape), common], attrs) / b
        return drawn


def random_poisson(
    lam: Any, shape: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """So many numbers for each rate, distributed as Poisson(lam)."""
    graph_seed, op_seed = get_seed(seed)
    attrs = {"seed": graph_seed, "seed2": op_seed, "dtype": as_dtype(dtype)}
    rate = convert_to_tensor(lam, preferred_dtype=dtypes.float32)
    return node("RandomPoissonV2", [as_size_vector(shape), rate], attrs, name)


def parameterized_truncated_normal(
    shape: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers between bounds; each parameter is one number, or one for each row of the result.

    They are quantiles of the normal distribution, of whichever tail lies nearer to the bounds.
    """
    wanted = as_dtype(dtype)
    with get_default_graph().name_scope(name or "parameterized_truncated_normal"):
        drawn = random_uniform(shape, seed=seed, dtype=dtypes.float64)
        rank = drawn.shape.rank
        if rank is None:
            raise ShapeError("parameterized_truncated_normal: the rank of the result is not known")
        parameters = []
        for value in (means, stddevs, minvals, maxvals):
            each = cast_to(promote(value)[0], dtypes.float64)
            parameters.append(node("Reshape", [each, convert_to_tensor([-1, *[1] * (rank - 1)])]) if rank else each)
        mean, deviation, low, high = parameters
        first, last = (low - mean) / deviation, (high - mean) / deviation
        turned = node("Greater", [first, node("ZerosLike", [first])])
        near = node("SelectV2", [turned, -last, first])
        far = node("SelectV2", [turned, -first, last])
        below, above = _probability(near), _probability(far)
        place = ndtri(below + drawn * (above - below))
        place = node("SelectV2", [turned, -place, place])
        return cast_to(clip_by_value(place * deviation + mean, low, high), wanted)


def _probability(x: Tensor) -> Tensor:
    """That a standard normal number is less."""
    half: Tensor = erfc(x * -(0.5**0.5)) * 0.5
    return half


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A random part of a tensor, of the given sizes."""
    x, sizes = convert_to_tensor(value), as_size_vector(size)
    with get_default_graph().name_scope(name or "random_crop"):
        room = cast_to(shape(x), sizes.dtype) - sizes + 1
        drawn = random_uniform(shape(room), 0, sizes.dtype.max, sizes.dtype, seed)
        cropped = cut(x, drawn % room, sizes)
        if sizes.op.spec.is_constant:
            cropped.set_shape([int(each) for each in sizes.op.get_attr("value")])
        return cropped
