"""Rounding to integers by chance: `StochasticCastToInt`, whose random bits depend on a key and a counter only."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import LoweringError, ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.random import RandomAlgorithm
from xlalite.hlo.types.dtype import DType as HloType
from xlalite.hlo.types.shape import Shape
from xlalite.ops.helpers.declare import declare

_SOURCES: frozenset[DType] = dtypes.FLOATING_TYPES
_TARGETS: frozenset[DType] = frozenset({dtypes.int8, dtypes.int16, dtypes.int32})
# What the input `alg` may be, and how many words of the counter belong to the generator's state.
_ALGORITHMS = {1: (RandomAlgorithm.PHILOX, 2), 2: (RandomAlgorithm.THREE_FRY, 1), 3: (RandomAlgorithm.PHILOX, 2)}


def _infer(op: Operation) -> Sequence[OutputType]:
    source, target = op.inputs[0].dtype, op.get_attr("Tout")
    if source not in _SOURCES or target not in _TARGETS:
        raise ElementTypeError(f"StochasticCastToInt: cannot round {source.name} to {target.name}")
    for position, name, size in ((1, "key", 1), (2, "counter", 2)):
        found = op.inputs[position]
        if found.dtype is not dtypes.uint64 or not found.shape.is_compatible_with([size]):
            raise ShapeError(
                f"StochasticCastToInt: {name} is {found.dtype.name} of shape {found.shape}, expected uint64 of [{size}]"
            )
    return [(target, op.inputs[0].shape)]


def _lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    """Bits as wide as the input decide whether an element goes away from zero."""
    b, (x, key, counter) = ctx.builder, inputs
    number = int(ctx.constant(op, "alg"))
    if number not in _ALGORITHMS:
        raise LoweringError(f"StochasticCastToInt: found alg {number}, expected one of {sorted(_ALGORITHMS)}")
    algorithm, words = _ALGORITHMS[number]
    used = b.slice(counter, [0], [words])
    state = b.concatenate((key, used), 0)
    random_type = HloType.from_name(f"u{x.dtype.bits}")
    result = Shape.tuple([state.shape, Shape.array(random_type, x.dims)])
    generated = b.op("rng-bit-generator", (state,), OPS["rng-bit-generator"].attrs(algorithm), shape=result)
    return [b.op("stochastic-convert", (x, generated[1]), shape=Shape.array(op.outputs[0].dtype.hlo, x.dims))]


declare(
    "StochasticCastToInt",
    ("input", "key", "counter", "alg"),
    _infer,
    _lower,
    None,
    None,
    attrs=("Tout",),
    constant_inputs=("alg",),
)
