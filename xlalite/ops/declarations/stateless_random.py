"""Random numbers that follow from a seed among the inputs, and distributions that are drawn on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, int32
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value_as_shape
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.declarations.random_numbers import Draw, Stream, full_integers, integers
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import declare
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, of_one_output
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.random_stream import WHY_HOST, stream_for
from xlalite.ops.helpers.shape_rules import require_rank, require_same_type, require_type

HostDraw = Callable[[np.random.Generator, Array, tuple[int, ...]], Array]

# StatelessRandom*(shape, seed): two integers decide all numbers.


def _declare(name: str, draw: Draw, bounds: tuple[str, ...] = ()) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        shape, seed = op.inputs[:2]
        require_type(shape, INTEGER_TYPES, "shape")
        require_type(seed, INTEGER_TYPES, "seed")
        require_rank(seed, lambda rank: rank == 1, "a vector of two numbers", "seed")
        if not seed.shape.is_compatible_with([2]):
            raise ShapeError(f"seed {seed.name!r} has shape {seed.shape}; expected (2,)")
        if bounds:
            require_same_type(op.inputs[2:])
        return [(op.get_attr("dtype"), constant_value_as_shape(shape))]

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        b, dtype = ctx.builder, op.outputs[0].dtype.hlo
        first, second = b.scalars(b.convert(inputs[0], HloDType.U64))
        words = [b.reshape(word, (1,)) for word in (first, b.constant(0, HloDType.U64), second)]
        stream = Stream(b, b.concatenate(words, 0))
        dims = tuple(int(size) for size in ctx.constant(op, "shape"))
        working = HloDType.F32 if dtype in (HloDType.F16, HloDType.BF16) else dtype
        return [b.convert(draw(stream, dims, working, inputs[1:]), dtype)]

    declare(
        name,
        ("shape", "seed", *bounds),
        infer,
        lower,
        None,
        None,
        attrs=("dtype",),
        constant_inputs=("shape",),
    )


_declare("StatelessRandomUniform", lambda stream, dims, dtype, _: stream.uniform(dims, dtype))
_declare("StatelessRandomNormal", lambda stream, dims, dtype, _: stream.normal(dims, dtype))
_declare("StatelessTruncatedNormal", lambda stream, dims, dtype, _: stream.truncated(dims, dtype))
_declare("StatelessRandomUniformFullInt", full_integers)
_declare("StatelessRandomUniformInt", integers, ("minval", "maxval"))


# RandomGamma(shape, alpha), RandomPoissonV2(shape, rate): so many numbers for each parameter.


def _distributed(
    name: str,
    parameter: str,
    draw: Callable[[np.random.Generator, Array, tuple[int, ...]], Array],
    gradient: OneOutputGradient | None = None,
) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        shape, given = op.inputs
        require_type(shape, INTEGER_TYPES, "shape")
        require_type(given, FLOATING_TYPES | INTEGER_TYPES, parameter)
        return [(op.get_attr("dtype"), constant_value_as_shape(shape).concatenate(given.shape))]

    def kernel(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
        sizes, given = (np.asarray(value) for value in inputs)
        stream = context.state(op, lambda: stream_for(op))
        wide = given.astype(np.float64)
        if (wide < 0).any():
            raise ShapeError(f"{parameter} must not be negative, found {float(wide.min())}")
        with stream.lock:
            drawn = draw(stream.generator, wide, (*map(int, sizes), *given.shape))
        return [np.asarray(drawn).astype(op.get_attr("dtype").numpy_dtype)]

    register(
        OpSpec(
            name,
            infer,
            inputs=("shape", parameter),
            attrs=("seed", "seed2", "dtype"),
            host_kernel=kernel,
            gradient=None if gradient is None else of_one_output(gradient),
            group=None,
            is_stateful=True,
            why_host=WHY_HOST,
        )
    )


def _gamma_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """Each number with its parameter while its probability stays, summed over the numbers of one parameter."""
    sizes, alpha = op.inputs
    slope = grad * node("RandomGammaGrad", [alpha, op.outputs[0]])
    leading = node("Range", [constant(0), node("Size", [sizes], {"out_type": int32}), constant(1)])
    return [None, node("Sum", [slope, leading], {"keep_dims": False})]


_distributed(
    "RandomGamma",
    "alpha",
    lambda rng, alpha, sizes: np.asarray(rng.standard_gamma(alpha, sizes)),
    _gamma_gradient,
)
_distributed("RandomPoissonV2", "rate", lambda rng, rate, sizes: np.asarray(rng.poisson(rate, sizes)))
