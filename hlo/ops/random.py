"""Random numbers: rng, rng-bit-generator, rng-get-and-update-state, and stochastic-convert, which consumes them."""

from __future__ import annotations

import enum
import threading
from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext, Trait
from xlalite.hlo.numerics.rounding import AnyArray
from xlalite.hlo.ops.evaluation.lifting import arrays_of
from xlalite.hlo.ops.rules.elementwise_rules import is_float, is_real_number, require_type
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT, enum_codec
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape

_STATEFUL = Trait.SIDE_EFFECT | Trait.NON_DETERMINISTIC


class _ProcessState:
    """The 128-bit counter of the process that rng and rng-get-and-update-state draw from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counter = 0x7012395

    def advance(self, delta: int) -> int:
        """The counter as it was; it moves on by `delta`."""
        with self._lock:
            before = self._counter
            self._counter = (before + delta) % 2**128
        return before


_process_state = _ProcessState()


# rng


class Distribution(enum.Enum):
    """Where the numbers of `rng` come from."""

    UNIFORM = "rng_uniform"
    """Evenly from [a, b)."""
    NORMAL = "rng_normal"
    """Normal with mean a and standard deviation b."""


@dataclass(frozen=True, slots=True)
class RngAttrs:
    """The distribution."""

    distribution: Distribution = attribute(enum_codec(Distribution, what="distribution"))


def _rng_shape(context: ShapeContext) -> Shape:
    declared = context.declared_array()
    context.require(len(context.operands) in (2, 3), f"takes 2 or 3 operands, found {len(context.operands)}")
    test = is_float if context.attrs.distribution is Distribution.NORMAL else is_real_number
    for position in range(2):
        parameter = require_type(context, position, test)
        context.require(
            parameter.is_scalar and parameter.dtype is declared.dtype,
            f"operand {position} must be a scalar of the result's element type {declared.dtype.value}",
        )
    return declared


def _rng(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.numerics.conversion import convert, wrap

    a, b = arrays_of(operands[:2])
    shape = instruction.shape
    dims, dtype = shape.dims, shape.dtype
    first = _random_words(dims)
    with np.errstate(all="ignore"):
        if dtype.is_integral:
            start, span = np.uint64(int(a) % 2**64), np.uint64(max(int(b) - int(a), 1))
            return wrap(start + first % span, dtype)
        u = _unit_interval(first)
        low, high = a.astype(np.float64), b.astype(np.float64)
        if instruction.attrs.distribution is Distribution.UNIFORM:
            numbers = convert(np.asarray(low + (high - low) * u), dtype)
            return np.where(numbers.astype(np.float64) < high, numbers, a)
        angle = 2 * np.pi * _unit_interval(_random_words(dims))
        return convert(np.asarray(low + high * np.sqrt(-2 * np.log1p(-u)) * np.cos(angle)), dtype)


def _random_words(dims: tuple[int, ...]) -> AnyArray:
    from xlalite.hlo.numerics.random_bits import philox_bits

    count = int(np.prod(dims))
    words, _ = philox_bits(0, _process_state.advance(count), dims, 64)
    return words


def _unit_interval(words: AnyArray) -> AnyArray:
    """Numbers in [0, 1) from 53 of the 64 bits."""
    return np.ldexp((words >> np.uint64(11)).astype(np.float64), -53)


# rng-bit-generator


class RandomAlgorithm(enum.Enum):
    """How `rng-bit-generator` makes bits."""

    DEFAULT = "rng_default"
    """Philox, as XLA's CPU compiler takes it."""
    THREE_FRY = "rng_three_fry"
    PHILOX = "rng_philox"


@dataclass(frozen=True, slots=True)
class RngBitGeneratorAttrs:
    """The algorithm."""

    algorithm: RandomAlgorithm = attribute(enum_codec(RandomAlgorithm, what="algorithm"))


def _rng_bit_generator_shape(context: ShapeContext) -> Shape:
    state, declared = context.array(0, "state"), context.declared
    sizes = ((2,),) if context.attrs.algorithm is RandomAlgorithm.THREE_FRY else ((2,), (3,))
    context.require(
        state.dtype is DType.U64 and state.dims in sizes,
        f"the state of {context.attrs.algorithm.value} must be {' or '.join(f'u64[{size[0]}]' for size in sizes)}",
    )
    if declared is None or not declared.is_tuple or len(declared.elements) != 2:
        raise context.error("the result shape must be given and be (state, bits)")
    new_state, bits = declared.elements
    context.require(new_state.compatible(state), f"the new state must have shape {state.text()}")
    context.require(
        bits.is_array and bits.dtype.is_integral and bits.dtype.bits >= 8,
        f"the bits must be integers of at least 8 bits, declared is {bits.text()}",
    )
    return declared


def _rng_bit_generator(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.numerics.random_bits import philox_bits, threefry_bits

    (state,) = arrays_of(operands)
    result = instruction.shape.elements[1]
    key, low, *rest = (int(word) for word in state)
    with np.errstate(all="ignore"):
        if instruction.attrs.algorithm is RandomAlgorithm.THREE_FRY:
            words, counter = threefry_bits(key, low, result.dims, result.dtype.bits)
        else:
            # A state of two words leaves the upper half of the counter to the key.
            high = rest[0] if rest else key
            words, counter = philox_bits(key, low | (high << 64), result.dims, result.dtype.bits)
    after = [key, counter % 2**64, counter >> 64][: len(state)]
    return np.array(after, np.uint64), words.view(result.dtype.numpy)


# rng-get-and-update-state


@dataclass(frozen=True, slots=True)
class RngGetAndUpdateStateAttrs:
    """How far the state moves on."""

    delta: int = attribute(INT)


def _state_shape(context: ShapeContext) -> Shape:
    declared = context.declared_array()
    context.require(
        declared.dtype is DType.U64 and declared.dims == (2,), f"the state is u64[2], declared is {declared.text()}"
    )
    return declared


def _get_and_update_state(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    counter = _process_state.advance(instruction.attrs.delta)
    return np.array([counter % 2**64, counter >> 64], np.uint64)


# stochastic-convert


def _stochastic_convert_shape(context: ShapeContext) -> Shape:
    operand, random, declared = require_type(context, 0, is_float), context.array(1), context.declared_array()
    context.require(
        random.dtype.is_unsigned and random.dtype.bits == operand.dtype.bits,
        f"the random numbers must be u{operand.dtype.bits}, found {random.dtype.value}",
    )
    context.require(
        operand.dims == random.dims == declared.dims,
        f"operand, random numbers and result must have the same sizes, declared is {declared.text()}",
    )
    context.require(is_real_number(declared.dtype), f"cannot convert to {declared.dtype.value}")
    return declared


def _stochastic_convert(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    from xlalite.hlo.numerics.stochastic import stochastic_convert

    values, random = arrays_of(operands)
    with np.errstate(all="ignore"):
        return stochastic_convert(values, random, instruction.shape.dtype)


OPS = (
    OpDef(
        "rng",
        "numbers from a distribution with parameters a and b, others each time; a third operand says the shape again",
        None,
        _rng_shape,
        _rng,
        attrs=RngAttrs,
        traits=_STATEFUL,
        explicit_shape=True,
    ),
    OpDef(
        "rng-bit-generator",
        "(the state moved on, random bits) of a counter-based generator; equal states give equal bits",
        1,
        _rng_bit_generator_shape,
        _rng_bit_generator,
        attrs=RngBitGeneratorAttrs,
        explicit_shape=True,
    ),
    OpDef(
        "rng-get-and-update-state",
        "the counter of the process, which then moves on by delta",
        0,
        _state_shape,
        _get_and_update_state,
        attrs=RngGetAndUpdateStateAttrs,
        traits=_STATEFUL,
        explicit_shape=True,
    ),
    OpDef(
        "stochastic-convert",
        "x rounded to one of its two neighbours, the nearer the likelier, by random bits",
        2,
        _stochastic_convert_shape,
        _stochastic_convert,
        traits=Trait.ELEMENTWISE,
        explicit_shape=True,
    ),
)
