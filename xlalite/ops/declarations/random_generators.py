"""Random numbers from a key and a counter: both among the inputs, or both in a variable, which moves on.

The bits are those of TensorFlow and XLA: `Philox` has a counter of two words, `ThreeFry` of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, DType, float32, int32, int64, uint32, uint64
from xlalite.framework.graph.errors import ElementTypeError, InvalidArgumentError
from xlalite.framework.graph.op_spec import (
    InferFunction,
    LowerFunction,
    OpSpec,
    OutputType,
    VariableAccess,
    register,
)
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor, handle_data_of
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value_as_shape
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops.random import RandomAlgorithm
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.hlo.types.shape import Shape
from xlalite.ops.declarations.random_numbers import Draw, Stream, full_integers, in_working_type, integers
from xlalite.ops.helpers.declare import declare, declare_outputs
from xlalite.ops.helpers.shape_rules import require_rank, require_same_type, require_scalar, require_type

_ALGORITHMS: Final = {1: RandomAlgorithm.PHILOX, 2: RandomAlgorithm.THREE_FRY, 3: RandomAlgorithm.PHILOX}
_COUNTER_WORDS: Final = {RandomAlgorithm.PHILOX: 2, RandomAlgorithm.THREE_FRY: 1}
_STATE_WORDS: Final = 3
_COUNTS_PER_NUMBER: Final = 256
"""How far a generator's counter moves on for each number drawn, whatever the distribution uses of it."""
_SEED_KEY: Final = 0x02461E293EC8F720
"""The key under which TensorFlow makes a key and a counter of a seed."""


@dataclass(frozen=True, slots=True)
class _Distribution:
    """What can be drawn.

    Attributes:
        draw: Takes the numbers from a stream.
        types: Element types of the numbers.
        usual: The element type when none is given; None where it is that of the bounds.
        bounds: Names of further inputs.
    """

    draw: Draw
    types: frozenset[DType]
    usual: DType | None
    bounds: tuple[str, ...] = ()


_WORDS = frozenset({int32, int64, uint32, uint64})
_UNIFORM = _Distribution(lambda stream, dims, dtype, _: stream.uniform(dims, dtype), FLOATING_TYPES, float32)
_UNIFORM_INT = _Distribution(integers, _WORDS, None, ("minval", "maxval"))
_UNIFORM_FULL_INT = _Distribution(full_integers, _WORDS, uint64)
_NORMAL = _Distribution(in_working_type(Stream.normal), FLOATING_TYPES, float32)
_TRUNCATED_NORMAL = _Distribution(in_working_type(Stream.truncated), FLOATING_TYPES, float32)


def _output(op: Operation, kind: _Distribution, sizes: Tensor, bounds: Sequence[Tensor]) -> OutputType:
    for bound, what in zip(bounds, kind.bounds, strict=True):
        require_scalar(bound, what)
    dtype = require_same_type(bounds) if kind.usual is None else op.get_attr("dtype")
    if dtype not in kind.types:
        names = ", ".join(sorted(each.name for each in kind.types))
        raise ElementTypeError(f"numbers of element type {dtype.name}; expected one of {names}")
    require_type(sizes, INTEGER_TYPES, "shape")
    return dtype, constant_value_as_shape(sizes)


def _drawn(
    ctx: LoweringContext, op: Operation, kind: _Distribution, stream: Stream, bounds: tuple[Handle, ...]
) -> Handle:
    sizes = ctx.constant(op, "shape")
    if (sizes < 0).any():
        raise ShapeError(f"sizes must not be negative, found {sizes.tolist()}")
    return kind.draw(stream, tuple(map(int, sizes)), op.outputs[0].dtype.hlo, bounds)


def _algorithm(ctx: LoweringContext, op: Operation, name: str) -> RandomAlgorithm:
    number = ctx.constant(op, name)
    if number.ndim:
        raise InvalidArgumentError(None, op, f"algorithm must be of shape [], not {list(number.shape)}")
    found = _ALGORITHMS.get(int(number))
    if found is None:
        raise InvalidArgumentError(None, op, f"Unsupported algorithm id: {int(number)}")
    return found


# StatelessRandom*V2(shape, key, counter, alg).


def _declare_stateless(name: str, kind: _Distribution) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        sizes, key, counter, algorithm, *bounds = op.inputs
        for words, what in ((key, "key"), (counter, "counter")):
            require_type(words, {uint64}, what)
            require_rank(words, lambda rank: rank == 1, "a vector", what)
        if not key.shape.is_compatible_with([1]):
            raise ShapeError(f"key has shape {key.shape}; expected (1,)")
        require_type(algorithm, INTEGER_TYPES, "alg")
        return [_output(op, kind, sizes, bounds)]

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        algorithm = _algorithm(ctx, op, "alg")
        key, counter, *bounds = inputs
        used = _COUNTER_WORDS[algorithm]
        if counter.dims[0] < used:
            raise ShapeError(f"The size of the counter must be at least {used}; got {counter.dims[0]}")
        state = ctx.builder.concatenate((key, ctx.builder.slice(counter, [0], [used])), 0)
        return [_drawn(ctx, op, kind, Stream(ctx.builder, state, algorithm), tuple(bounds))]

    declare(
        name,
        ("shape", "key", "counter", "alg", *kind.bounds),
        infer,
        lower,
        None,
        None,
        attrs=() if kind.usual is None else ("dtype",),
        defaults={} if kind.usual is None else {"dtype": kind.usual},
        constant_inputs=("shape", "alg"),
    )


_declare_stateless("StatelessRandomUniformV2", _UNIFORM)
_declare_stateless("StatelessRandomUniformIntV2", _UNIFORM_INT)
_declare_stateless("StatelessRandomUniformFullIntV2", _UNIFORM_FULL_INT)
_declare_stateless("StatelessRandomNormalV2", _NORMAL)
_declare_stateless("StatelessTruncatedNormalV2", _TRUNCATED_NORMAL)


# StatelessRandomGetKeyCounter(seed), StatelessRandomGetAlg(), and both in one.


def _seed_infer(op: Operation) -> Sequence[OutputType]:
    (seed,) = op.inputs
    require_type(seed, {int32, int64}, "seed")
    if not seed.shape.is_compatible_with([2]):
        raise ShapeError(f"seed has shape {seed.shape}; expected (2,)")
    return [(uint64, TensorShape([1])), (uint64, TensorShape([2]))]


def _key_and_counter(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    state = b.concatenate((b.constant([_SEED_KEY], HloDType.U64), b.convert(inputs[0], HloDType.U64)), 0)
    words = Stream(b, state).bits((2,), 64)
    low = b.zeros(Shape.array(HloDType.U64, (1,)))
    return [b.slice(words, [0], [1]), b.concatenate((low, b.slice(words, [1], [2])), 0)]


def _philox(ctx: LoweringContext) -> Handle:
    return ctx.builder.constant(1, HloDType.S32)


declare_outputs("StatelessRandomGetKeyCounter", ("seed",), _seed_infer, _key_and_counter, None, None)
declare_outputs(
    "StatelessRandomGetKeyCounterAlg",
    ("seed",),
    lambda op: [*_seed_infer(op), (int32, TensorShape([]))],
    lambda ctx, op, inputs: [*_key_and_counter(ctx, op, inputs), _philox(ctx)],
    None,
    None,
)
declare(
    "StatelessRandomGetAlg", (), lambda op: [(int32, TensorShape([]))], lambda ctx, op, _: [_philox(ctx)], None, None
)


# Stateful*(resource, algorithm, shape), RngSkip and RngReadAndSkip(resource, algorithm, delta): the variable is the
# counter and behind it the key.


def _check_state(op: Operation) -> None:
    data = handle_data_of(op.inputs[0])
    if data.dtype is not int64:
        raise InvalidArgumentError(
            None, op, f"Type mismatch for read of variable {data.name}. Expected int64; got {data.dtype.name}"
        )
    if data.shape.rank not in (None, 1):
        raise InvalidArgumentError(None, op, f"RNG state must have one and only one dimension, not {data.shape.rank}")


def _advanced(b: Builder, counter: Handle, numbers: Handle) -> Handle:
    """The counter behind so many numbers."""
    step = b.reshape(numbers * _COUNTS_PER_NUMBER, [1])
    low = b.slice(counter, [0], [1])
    moved = low + step
    if counter.dims[0] == 1:
        return moved
    high = b.slice(counter, [1], [2])
    return b.concatenate((moved, high + b.convert(b.compare(moved, low, "LT"), HloDType.U64)), 0)


def _take_turn(ctx: LoweringContext, op: Operation, algorithm: RandomAlgorithm, numbers: Handle) -> Handle:
    """Moves the variable on by so many numbers; the state for `Stream` as it was before, the key first."""
    b, handle, used = ctx.builder, op.inputs[0], _COUNTER_WORDS[algorithm]
    state = ctx.read_variable(op, handle)
    if state.dims[0] < used + 1:
        raise InvalidArgumentError(None, op, f"The size of the state must be at least {used + 1}; got {state.dims[0]}")
    words = b.convert(state, HloDType.U64)
    counter, rest = b.slice(words, [0], [used]), b.slice(words, [used], [state.dims[0]])
    moved = b.concatenate((_advanced(b, counter, numbers), rest), 0)
    ctx.assign_variable(handle, b.convert(moved, HloDType.S64))
    return b.concatenate((b.slice(rest, [0], [1]), counter), 0)


def _declare_on_state(
    name: str,
    inputs: tuple[str, ...],
    infer: InferFunction,
    lower: LowerFunction,
    constants: tuple[str, ...],
    usual: DType | None = None,
) -> None:
    register(
        OpSpec(
            name,
            infer,
            inputs=("resource", *inputs),
            attrs=() if usual is None else ("dtype",),
            defaults={} if usual is None else {"dtype": usual},
            lower=lower,
            gradient=None,
            group=None,
            constant_inputs=constants,
            is_stateful=True,
            variable_access=VariableAccess.MODIFY,
        )
    )


def _declare_stateful(name: str, kind: _Distribution) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        _check_state(op)
        _, algorithm, sizes, *bounds = op.inputs
        require_type(algorithm, INTEGER_TYPES, "algorithm")
        return [_output(op, kind, sizes, bounds)]

    def lower(ctx: LoweringContext, op: Operation, bounds: tuple[Handle, ...]) -> Sequence[Handle]:
        algorithm = _algorithm(ctx, op, "algorithm")
        count = ctx.builder.constant(math.prod(map(int, ctx.constant(op, "shape"))), HloDType.U64)
        stream = Stream(ctx.builder, _take_turn(ctx, op, algorithm, count), algorithm)
        return [_drawn(ctx, op, kind, stream, bounds)]

    _declare_on_state(name, ("algorithm", "shape", *kind.bounds), infer, lower, ("algorithm", "shape"), kind.usual)


_declare_stateful("StatefulUniform", _UNIFORM)
_declare_stateful("StatefulUniformInt", _UNIFORM_INT)
_declare_stateful("StatefulUniformFullInt", _UNIFORM_FULL_INT)
_declare_stateful("StatefulStandardNormalV2", _NORMAL)
_declare_stateful("StatefulTruncatedNormal", _TRUNCATED_NORMAL)


def _skip_infer(op: Operation) -> Sequence[OutputType]:
    _check_state(op)
    _, algorithm, numbers = op.inputs
    require_type(algorithm, INTEGER_TYPES, "algorithm")
    require_type(numbers, INTEGER_TYPES, "delta")
    require_scalar(numbers, "delta")
    return []


def _skip(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    _take_turn(ctx, op, _algorithm(ctx, op, "algorithm"), ctx.builder.convert(inputs[0], HloDType.U64))
    return []


def _read_and_skip(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    """The state as it was, with zeros behind it up to the longest."""
    b = ctx.builder
    before = ctx.read_variable(op, op.inputs[0])
    _take_turn(ctx, op, _algorithm(ctx, op, "alg"), b.convert(inputs[0], HloDType.U64))
    return [b.pad(before, b.constant(0, HloDType.S64), [(0, _STATE_WORDS - before.dims[0], 0)])]


_declare_on_state("RngSkip", ("algorithm", "delta"), _skip_infer, _skip, ("algorithm",))
_declare_on_state(
    "RngReadAndSkip",
    ("alg", "delta"),
    lambda op: [*_skip_infer(op), (int64, TensorShape([_STATE_WORDS]))],
    _read_and_skip,
    ("alg",),
)
