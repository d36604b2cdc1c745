"""Random numbers from the counters of Philox (Salmon et al. 2011): a stream for each operation and session.

What an operation keeps is the state of its stream, so compiled or not it draws the same numbers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import INTEGER_TYPES
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.op_spec import OperationState, OpSpec, OutputType, VariableAccess, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value_as_shape
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.random import RandomAlgorithm
from xlalite.hlo.records import dataclass
from xlalite.hlo.stablehlo.special_functions.error_functions import erf_inv
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.ops.helpers.random_stream import WHY_HOST, stream_for
from xlalite.ops.helpers.shape_rules import require_same_type, require_scalar, require_type

Draw = Callable[["Stream", tuple[int, ...], DType, tuple[Handle, ...]], Handle]
_STATE_WORDS = 3
_SEED_MASK = 2**64 - 1


@dataclass(slots=True)
class Stream:
    """The stream of one operation while it is lowered.

    Attributes:
        builder: Builds the HLO.
        state: The key and the words of the counter: u64[3], for `THREE_FRY` u64[2].
        algorithm: How bits are made of them.
    """

    builder: Builder
    state: Handle
    algorithm: RandomAlgorithm = RandomAlgorithm.PHILOX

    def bits(self, dims: Sequence[int], width: int) -> Handle:
        """The next unsigned numbers of so many bits."""
        numbers = Shape.array(DType.from_name(f"u{width}"), dims)
        attributes = OPS["rng-bit-generator"].attrs(self.algorithm)
        shape = Shape.tuple([self.state.shape, numbers])
        generated = self.builder.op("rng-bit-generator", (self.state,), attributes, shape=shape)
        self.state = generated[0]
        return generated[1]

    def uniform(self, dims: Sequence[int], dtype: DType) -> Handle:
        """Numbers in [0, 1), evenly spaced, as many as the type tells apart near 1."""
        digits = int(ml_dtypes.finfo(dtype.numpy).nmant) + 1  # type: ignore[no-untyped-call]
        width = max(dtype.bits, 32)
        kept = self.builder.op("shift-right-logical", self.builder.match(self.bits(dims, width), width - digits))
        return self.builder.convert(kept, dtype) * 2.0**-digits

    def normal(self, dims: Sequence[int], dtype: DType) -> Handle:
        """Normal numbers, in pairs (Box and Muller 1958)."""
        b, count = self.builder, math.prod(dims)
        pairs = -(-count // 2)
        radius, angle = (b.reshape(part, [pairs]) for part in self._halves(self.uniform([2, pairs], dtype)))
        radius = b.op("sqrt", (b.op("log", (1.0 - radius,)) * -2.0,))
        angle = angle * (2 * math.pi)
        both = b.concatenate((radius * b.op("cosine", (angle,)), radius * b.op("sine", (angle,))), 0)
        return b.reshape(b.slice(both, [0], [count]), dims)

    def truncated(self, dims: Sequence[int], dtype: DType) -> Handle:
        """Normal numbers no further than 2 from 0, by the inverse of their distribution."""
        b = self.builder
        place = (self.uniform(dims, dtype) * 2.0 - 1.0) * math.erf(math.sqrt(2))
        drawn = erf_inv(place) * math.sqrt(2)
        limits = [b.full(limit, dtype, dims) for limit in (-2.0, 2.0)]
        return b.op("clamp", (limits[0], drawn, limits[1]))

    def _halves(self, pair: Handle) -> tuple[Handle, Handle]:
        pairs = pair.dims[1]
        return self.builder.slice(pair, [0, 0], [1, pairs]), self.builder.slice(pair, [1, 0], [2, pairs])


def _stream_of(op: Operation) -> OperationState:
    """The state of an operation's stream: where its seeds begin, or anywhere without seeds."""
    seed, seed2 = op.get_attr("seed"), op.get_attr("seed2")

    def first() -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        if seed == 0 and seed2 == 0:
            return np.frombuffer(os.urandom(8 * _STATE_WORDS), np.uint64).copy()
        return np.array([seed & _SEED_MASK, 0, seed2 & _SEED_MASK], np.uint64)

    return OperationState(HandleData(dtypes.uint64, TensorShape([_STATE_WORDS]), _name_of_state(op), True), first)


def _name_of_state(op: Operation) -> str:
    name, graph = op.name, op.graph
    while isinstance(graph, FunctionGraph):
        name, graph = f"{graph.name}/{name}", graph.outer_graph
    return f"~{name}"


def _declare(name: str, draw: Draw, bounds: tuple[str, ...] = ()) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        shape, *rest = op.inputs
        require_type(shape, INTEGER_TYPES, "shape")
        if rest:
            require_same_type(rest)
            for tensor, what in zip(rest, bounds, strict=True):
                require_scalar(tensor, what)
        return [(op.get_attr("dtype"), constant_value_as_shape(shape))]

    def lower(ctx: LoweringContext, op: Operation, _: tuple[Handle, ...]) -> Sequence[Handle]:
        sizes = ctx.constant(op, "shape")
        if (sizes < 0).any():
            raise InvalidArgumentError(None, op, f"sizes must not be negative, found {sizes.tolist()}")
        if bounds:
            _require_order(ctx, op)
        stream = Stream(ctx.builder, ctx.state(op))
        rest = tuple(ctx.handle(tensor) for tensor in op.inputs[1:])
        drawn = draw(stream, tuple(map(int, sizes)), op.outputs[0].dtype.hlo, rest)
        ctx.keep(op, stream.state)
        return [drawn]

    register(
        OpSpec(
            name,
            infer,
            inputs=("shape", *bounds),
            attrs=("dtype", "seed", "seed2"),
            lower=lower,
            gradient=None,
            group=None,
            constant_inputs=("shape",),
            preferred_constant_inputs=bounds,
            is_stateful=True,
            variable_access=VariableAccess.MODIFY,
            state=_stream_of,
        )
    )


def _require_order(ctx: LoweringContext, op: Operation) -> None:
    low, high = (ctx.constant_or_none(tensor) for tensor in op.inputs[1:])
    if low is not None and high is not None and low >= high:
        raise ShapeError(f"random integers: minval {low} must be less than maxval {high}")


def in_working_type(draw: Callable[[Stream, Sequence[int], DType], Handle]) -> Draw:
    """Draws narrow numbers in f32."""

    def drawn(stream: Stream, dims: tuple[int, ...], dtype: DType, _: tuple[Handle, ...]) -> Handle:
        working = DType.F64 if dtype is DType.F64 else DType.F32
        return stream.builder.convert(draw(stream, dims, working), dtype)

    return drawn


def integers(stream: Stream, dims: tuple[int, ...], dtype: DType, rest: tuple[Handle, ...]) -> Handle:
    """Random bits modulo the length of the interval."""
    b = stream.builder
    bits = stream.bits(dims, dtype.bits)
    low, high = (b.broadcast(b.convert(bound, bits.dtype), dims) for bound in rest)
    return b.convert(b.op("remainder", (bits, high - low)) + low, dtype)


def full_integers(stream: Stream, dims: tuple[int, ...], dtype: DType, _: tuple[Handle, ...]) -> Handle:
    """Integers of which every one that the type has is as likely."""
    return stream.builder.convert(stream.bits(dims, dtype.bits), dtype)


_declare("RandomUniform", lambda stream, dims, dtype, _: stream.uniform(dims, dtype))
_declare("RandomStandardNormal", in_working_type(Stream.normal))
_declare("TruncatedNormal", in_working_type(Stream.truncated))
_declare("RandomUniformInt", integers, ("minval", "maxval"))


# RandomShuffle(value): its rows in random order, by NumPy's generator on the host.


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
