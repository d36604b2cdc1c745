"""Random control flow and structure: computations within computations, tuples, tokens, asynchronous pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from random_modules.grower import Grower
from xlalite.hlo.building.builder import Builder, Handle, Handles
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ops.control_flow import FusionAttrs, FusionKind
from xlalite.hlo.ops.random import RandomAlgorithm, RngBitGeneratorAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.replica_groups import ReplicaGroups
from xlalite.hlo.types.shape import Shape

Grow = Callable[[Grower, int], None]


class Control:
    """Makers that need others for what the computations they call do."""

    def __init__(self, grow_more: Grow, elementwise: Sequence[str]) -> None:
        self.grow_more = grow_more
        self.elementwise = elementwise

    def body(
        self, grow: Grower, name: str, parameters: Sequence[Shape], wanted: Sequence[Shape], tupled: bool
    ) -> HloComputation:
        """A computation of random operations with results of the wanted shapes."""

        def build(b: Builder, p: Handles) -> Handle:
            inner = Grower(grow.chance, b, grow.depth + 1)
            for value in p:
                inner.keep(value)
            self.grow_more(inner, grow.chance.randint(1, 3))
            results = [inner.of(shape.dtype, shape.dims) for shape in wanted]
            return b.tuple(results) if tupled else results[0]

        return grow.builder.subcomputation(name, parameters, build)

    def operands(self, grow: Grower) -> list[Handle]:
        return [grow.any() for _ in range(grow.chance.randint(1, 3))]

    def results(self, grow: Grower, operands: Sequence[Handle]) -> tuple[list[Shape], bool]:
        """Shapes of results, mostly those of operands, and whether they form a tuple."""
        count = grow.chance.choice((1, 1, 2, 3))
        shapes = [grow.chance.choice(operands).shape.without_layout() for _ in range(count)]
        return shapes, count > 1 or grow.chance.random() < 0.2

    def call(self, grow: Grower) -> Handle:
        operands = self.operands(grow)
        wanted, tupled = self.results(grow, operands)
        function = self.body(grow, "callee", [value.shape for value in operands], wanted, tupled)
        return grow.op("call", operands, None, (function,))

    def fusion(self, grow: Grower) -> Handle:
        operands = self.operands(grow)
        wanted, tupled = self.results(grow, operands)
        function = self.body(grow, "fused", [value.shape for value in operands], wanted, tupled)
        kind = grow.chance.choice((FusionKind.LOOP, FusionKind.INPUT, FusionKind.OUTPUT))
        return grow.op("fusion", operands, FusionAttrs(kind), (function,))

    def async_pair(self, grow: Grower) -> Handle:
        operands = self.operands(grow)
        wanted, tupled = self.results(grow, operands)
        function = self.body(grow, "async", [value.shape for value in operands], wanted, tupled)
        start = grow.op("async-start", operands, None, (function,))
        if grow.chance.random() < 0.3:
            start = grow.op("async-update", (start,))
        return grow.op("async-done", (start,))

    def conditional(self, grow: Grower) -> Handle:
        by_index = grow.chance.random() < 0.5
        selector = grow.of(DType.S32 if by_index else DType.PRED, ())
        branches = grow.chance.randint(1, 3) if by_index else 2
        operands = [grow.any() for _ in range(branches)]
        if grow.chance.random() < 0.3:
            operands = [grow.builder.tuple([value, grow.any()]) for value in operands]
        wanted, tupled = self.results(grow, [grow.any()])
        functions = [self.body(grow, "branch", [value.shape], wanted, tupled) for value in operands]
        return grow.op("conditional", (selector, *operands), None, functions)

    def loop(self, grow: Grower) -> Handle:
        """i = 0; while i < limit (and perhaps more): state = body(state); i += 1."""
        b = grow.builder
        dtype = grow.chance.choice((DType.S32, DType.S32, DType.S64, DType.U8))
        limit = grow.chance.randint(0, 4)
        state = [b.constant(0, dtype), *self.operands(grow)]
        shapes = [value.shape.without_layout() for value in state]
        wrapped = b.tuple(state)
        early = grow.chance.random() < 0.2

        def goes_on(inner: Builder, p: Handles) -> Handle:
            more = inner.compare(p[0][0], limit, "LT")
            flag = next((i for i, shape in enumerate(shapes) if shape == Shape.array(DType.PRED)), None)
            return more if flag is None or not early else inner.op("and", (more, p[0][flag]))

        def body(inner: Builder, p: Handles) -> Handle:
            grower = Grower(grow.chance, inner, grow.depth + 1)
            elements = [p[0][index] for index in range(len(state))]
            for value in elements:
                grower.keep(value)
            self.grow_more(grower, grow.chance.randint(1, 3))
            results = [
                value if grow.chance.random() < 0.3 else grower.of(value.dtype, value.dims) for value in elements[1:]
            ]
            return inner.tuple([elements[0] + 1, *results])

        functions = [
            b.subcomputation("condition", (wrapped.shape,), goes_on),
            b.subcomputation("body", (wrapped.shape,), body),
        ]
        return grow.op("while", (wrapped,), None, functions)

    def map(self, grow: Grower) -> Handle:
        value = grow.any()
        operands = [value, *(grow.of(grow.any().dtype, value.dims) for _ in range(grow.chance.randint(0, 2)))]
        wanted = Shape.array(grow.chance.choice(operands).dtype)
        scalars = [Shape.array(operand.dtype) for operand in operands]

        def build(b: Builder, p: Handles) -> Handle:
            inner = Grower(grow.chance, b, grow.depth + 1)
            for parameter in p:
                inner.keep(parameter)
            self.grow_more(inner, grow.chance.randint(1, 3), self.elementwise)
            scalar = [v for v in inner.values if v.shape.is_scalar and v.dtype is wanted.dtype]
            return scalar[-1] if scalar else inner.of(wanted.dtype, ())

        function = grow.builder.subcomputation("mapped", scalars, build)
        return grow.op("map", operands, grow.attrs("map", tuple(range(value.shape.rank))), (function,))

    def scan(self, grow: Grower) -> Handle:
        """Outputs and carries of random operations, slice after slice."""
        array = grow.any(rank=1)
        along = grow.chance.randrange(array.shape.rank)
        carry = grow.any()
        dims = (*array.dims[:along], *array.dims[along + 1 :])
        part = Shape.array(array.dtype, dims)
        state = carry.shape.without_layout()
        function = self.body(grow, "step", [part, state], [part, state], True)
        attrs = grow.attrs("scan", (along,), num_carries=1, is_reverse=grow.chance.random() < 0.3)
        return grow.op("scan", (array, carry), attrs, (function,))

    def makers(self) -> dict[str, Callable[[Grower], Handle]]:
        return {
            "call": self.call,
            "fusion": self.fusion,
            "async-start": self.async_pair,
            "conditional": self.conditional,
            "while": self.loop,
            "map": self.map,
            "scan": self.scan,
        }


def tuple_(grow: Grower) -> Handle:
    parts = [grow.any() for _ in range(grow.chance.randint(1, 3))]
    nested = grow.builder.tuple([grow.builder.tuple(parts), grow.any()])
    return grow.op("opt-barrier", (nested,)) if grow.chance.random() < 0.3 else nested


def opt_barrier(grow: Grower) -> Handle:
    return grow.op("opt-barrier", (grow.any(),))


def add_dependency(grow: Grower) -> Handle:
    token = grow.op("after-all", ())
    if grow.chance.random() < 0.5:
        token = grow.op("after-all", (token, grow.op("after-all", ())))
    return grow.op("add-dependency", (grow.any(), token))


def copy_pair(grow: Grower) -> Handle:
    return grow.op("copy-done", (grow.op("copy-start", (grow.any(),)),))


def domain(grow: Grower) -> Handle:
    return grow.op("domain", (grow.any(),))


def rng_bit_generator(grow: Grower) -> Handle:
    algorithm = grow.chance.choice(tuple(RandomAlgorithm))
    words = 2 if algorithm is RandomAlgorithm.THREE_FRY else grow.chance.choice((2, 3))
    bits = Shape.array(grow.chance.choice((DType.U32, DType.U64, DType.U8, DType.U16, DType.S32)), grow.dims())
    state = grow.of(DType.U64, (words,))
    shape = Shape.tuple([state.shape, bits])
    return grow.op("rng-bit-generator", (state,), RngBitGeneratorAttrs(algorithm), shape=shape)


def device_number(opcode: str, grow: Grower) -> Handle:
    return grow.op(opcode, ())


def collective(opcode: str, grow: Grower) -> Handle:
    """What one device says to itself, perhaps with a start and an end."""
    value = grow.any(rank=1)
    fields: dict[str, object] = {}
    called = []
    if opcode == "collective-permute":
        fields["source_target_pairs"] = grow.chance.choice((((0, 0),), ()))
    else:
        fields["replica_groups"] = grow.chance.choice((ReplicaGroups(), ReplicaGroups(((0,),))))
    if opcode in ("all-gather", "reduce-scatter", "all-to-all"):
        fields["dimensions"] = (grow.chance.randrange(value.shape.rank),)
    if opcode in ("all-reduce", "reduce-scatter"):
        called.append(grow.builder.scalar_function("add", value.dtype))
    attrs = grow.attrs(opcode, **fields)
    if opcode in ("all-reduce", "all-gather", "collective-permute") and grow.chance.random() < 0.4:
        start = grow.op(f"{opcode}-start", (value,), attrs, called)
        return grow.op(f"{opcode}-done", (start,))
    return grow.op(opcode, (value,), attrs, called)


_COLLECTIVES = (
    "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "reduce-scatter",
)  # fmt: skip
MAKERS = {
    **{opcode: partial(collective, opcode) for opcode in _COLLECTIVES},
    "partition-id": partial(device_number, "partition-id"),
    "replica-id": partial(device_number, "replica-id"),
    "tuple": tuple_,
    "opt-barrier": opt_barrier,
    "add-dependency": add_dependency,
    "copy-start": copy_pair,
    "domain": domain,
    "rng-bit-generator": rng_bit_generator,
}
