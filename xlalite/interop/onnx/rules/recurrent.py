"""Recurrent layers: all products with the input at once, then a loop over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.hlo.building.builder import Builder, Handle, Handles
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.building.indexing import gather_along
from xlalite.hlo.ops import OPS
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.rules.activations import hard_sigmoid, softplus
from xlalite.interop.onnx.rules.loops import for_each, put_row, take_row

Activation = Callable[[Handle], Handle]
Step = Callable[["_Direction", Builder, Handle, "Handles", "Handles"], Sequence[Handle]]


def _unary(opcode: str) -> Callable[[Handle, float, float], Handle]:
    return lambda x, alpha, beta: x.builder.op(opcode, (x,))


def _below(x: Handle, bound: float, low: Handle) -> Handle:
    return x.builder.select(x.builder.compare(x, filled(bound, x), "LT"), low, x)


# Each activation with the values of alpha and beta that it has when none are stated; None where it takes none.
_ACTIVATIONS: dict[str, tuple[Callable[[Handle, float, float], Handle], float | None, float | None]] = {
    "affine": (lambda x, alpha, beta: x * filled(alpha, x) + filled(beta, x), 1.0, 0.0),
    "elu": (lambda x, a, _: _below(x, 0, x.builder.op("exponential-minus-one", (x,)) * filled(a, x)), 1.0, None),
    "hardsigmoid": (hard_sigmoid, 0.2, 0.5),
    "leakyrelu": (lambda x, alpha, _: _below(x, 0, x * filled(alpha, x)), 0.01, None),
    "relu": (lambda x, *_: x.builder.op("maximum", (x, filled(0, x))), None, None),
    "scaledtanh": (lambda x, a, b: x.builder.op("tanh", (x * filled(b, x),)) * filled(a, x), 1.0, 1.0),
    "sigmoid": (_unary("logistic"), None, None),
    "softplus": (lambda x, *_: softplus(x), None, None),
    "softsign": (lambda x, *_: x / (x.builder.op("abs", (x,)) + filled(1, x)), None, None),
    "tanh": (_unary("tanh"), None, None),
    "thresholdedrelu": (lambda x, alpha, _: _below(x, alpha, filled(0, x)), 1.0, None),
}


@dataclass(frozen=True, slots=True)
class _Direction:
    """One direction of a layer.

    Attributes:
        size: Number of hidden units.
        activations: What the gates go through.
        clip: How far what goes into activations may lie from 0; None for any distance.
    """

    size: int
    activations: Sequence[Activation]
    clip: float | None

    def active(self, number: int, x: Handle) -> Handle:
        """An activation of what may be held within bounds."""
        if self.clip is not None:
            x = x.builder.op("clamp", (filled(-self.clip, x), x, filled(self.clip, x)))
        return self.activations[number](x)

    def gate(self, x: Handle, number: int) -> Handle:
        """The columns of one gate."""
        start = number * self.size
        return x.builder.slice(x, [0, start], [x.dims[0], start + self.size])


def _product(b: Builder, x: Handle, weights: Handle) -> Handle:
    """Rows times the rows of weights."""
    attrs = OPS["dot"].attrs(lhs_contracting_dims=(len(x.dims) - 1,), rhs_contracting_dims=(1,))
    return b.op("dot", (x, weights), attrs)


@rule("RNN")
def _rnn(context: NodeContext) -> tuple[Handle, ...]:
    def step(at: _Direction, b: Builder, x: Handle, state: Handles, weights: Handles) -> Sequence[Handle]:
        return [at.active(0, x + _product(b, state[0], weights[0]))]

    return _layer(context, 1, ["Tanh"], step, states=1)


@rule("GRU")
def _gru(context: NodeContext) -> tuple[Handle, ...]:
    linear_first = context.integer("linear_before_reset", 0) != 0

    def step(at: _Direction, b: Builder, x: Handle, state: Handles, weights: Handles) -> Sequence[Handle]:
        (hidden,), (recurrent, bias) = state, weights
        size = at.size
        gates = b.slice(recurrent, [0, 0], [2 * size, size])
        rest = b.slice(recurrent, [2 * size, 0], [3 * size, size])
        own = broadcast_to(b, b.slice(bias, [2 * size], [3 * size]), hidden.dims)
        both = _product(b, hidden, gates)
        outer = broadcast_to(b, b.slice(bias, [0], [2 * size]), both.dims)
        both = both + outer
        update = at.active(0, at.gate(x, 0) + at.gate(both, 0))
        reset = at.active(0, at.gate(x, 1) + at.gate(both, 1))
        if linear_first:
            new = at.gate(x, 2) + reset * (_product(b, hidden, rest) + own)
        else:
            new = at.gate(x, 2) + _product(b, reset * hidden, rest) + own
        candidate = at.active(1, new)
        return [(filled(1, update) - update) * candidate + update * hidden]

    return _layer(context, 3, ["Sigmoid", "Tanh"], step, states=1, recurrent_bias=True)


@rule("LSTM")
def _lstm(context: NodeContext) -> tuple[Handle, ...]:
    coupled = context.integer("input_forget", 0) != 0

    def step(at: _Direction, b: Builder, x: Handle, state: Handles, weights: Handles) -> Sequence[Handle]:
        hidden, cell = state
        gates = x + _product(b, hidden, weights[0])
        entering, leaving, kept, new = (at.gate(gates, number) for number in range(4))
        if len(weights) > 1:
            peepholes = [
                broadcast_to(b, b.slice(weights[1], [i * at.size], [(i + 1) * at.size]), cell.dims) for i in range(3)
            ]
            entering, kept = entering + peepholes[0] * cell, kept + peepholes[2] * cell
        entering = at.active(0, entering)
        kept = filled(1, entering) - entering if coupled else at.active(0, kept)
        cell = kept * cell + entering * at.active(1, new)
        if len(weights) > 1:
            leaving = leaving + peepholes[1] * cell
        return [at.active(0, leaving) * at.activations[2](cell), cell]

    return _layer(context, 4, ["Sigmoid", "Tanh", "Tanh"], step, states=2)


def _layer(
    context: NodeContext, gates: int, activations: list[str], step: Step, *, states: int, recurrent_bias: bool = False
) -> tuple[Handle, ...]:
    """All directions of a layer: outputs, then the last of each state."""
    b, x = context.builder, context.operand(0)
    batch_first = context.integer("layout", 0) != 0
    if batch_first:
        x = b.transpose(x, (1, 0, 2))
    steps, batch, _ = x.dims
    size = context.integer("hidden_size", context.operand(2).dims[2])
    direction = context.text("direction", "forward")
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}.get(direction)
    if backwards is None:
        raise context.error(f"direction {direction!r} is none of forward, reverse, bidirectional")
    found_activations = _activations(context, activations, len(backwards))
    clip = context.number("clip") if "clip" in context.attributes else None
    lengths = context.optional(4)
    outputs, finals = [], []
    for number, turned in enumerate(backwards):
        at = _Direction(size, found_activations[number], clip)
        weights = [_row(context.operand(i), number) for i in (1, 2)]
        constants = [weights[1]]
        own = _turned(context, x, lengths) if turned else x
        projected = _product(b, own, weights[0])
        bias = _row(context.operand(3), number) if context.has(3) else b.full(0, x.dtype, (2 * gates * size,))
        first, second = (b.slice(bias, [i * gates * size], [(i + 1) * gates * size]) for i in (0, 1))
        if recurrent_bias:
            constants.append(second)
        else:
            first = first + second
        projected = projected + broadcast_to(b, first, projected.dims)
        starts = []
        for position in range(states):
            given = context.optional(5 + position)
            if given is not None:
                given = _row(b.transpose(given, (1, 0, 2)) if batch_first else given, number)
            starts.append(b.full(0, x.dtype, (batch, size)) if given is None else given)
        if states == 2 and context.has(7):
            constants.append(_row(context.operand(7), number))
        output, *last = _over_time(context, at, step, projected, starts, constants, lengths)
        outputs.append(_turned(context, output, lengths) if turned else output)
        finals.append(last)
    whole = b.concatenate([b.reshape(output, (steps, 1, batch, size)) for output in outputs], 1)
    lasts = [
        b.concatenate([b.reshape(last[position], (1, batch, size)) for last in finals], 0) for position in range(states)
    ]
    if batch_first:
        return (b.transpose(whole, (2, 0, 1, 3)), *(b.transpose(last, (1, 0, 2)) for last in lasts))
    return (whole, *lasts)


def _over_time(
    context: NodeContext,
    at: _Direction,
    step: Step,
    projected: Handle,
    starts: list[Handle],
    constants: list[Handle],
    lengths: Handle | None,
) -> list[Handle]:
    """The outputs of all steps and the last state; beyond an example's length outputs are 0 and its state stays."""
    b = context.builder
    steps, batch, _ = projected.dims
    count = len(starts)
    outputs = b.full(0, projected.dtype, (steps, batch, at.size))
    fixed = [projected, *constants, *([b.convert(lengths, DType.S64)] if lengths is not None else [])]

    def turn(inner: Builder, number: Handle, values: Handles) -> Sequence[Handle]:
        state, kept, (inputs, *rest) = values[:count], values[count], values[count + 1 :]
        weights = rest if lengths is None else rest[:-1]
        new = list(step(at, inner, take_row(inner, inputs, number), state, tuple(weights)))
        row = new[0]
        if lengths is not None:
            runs = inner.broadcast(inner.compare(rest[-1], inner.broadcast(number, (batch,)), "GT"), row.dims, [0])
            row = inner.select(runs, row, filled(0, row))
            new = [inner.select(runs, each, old) for each, old in zip(new, state, strict=True)]
        return [*new, put_row(inner, kept, row, number), inputs, *rest]

    found = for_each(context, steps, [*starts, outputs, *fixed], turn)
    return [found[count], *found[:count]]


def _turned(context: NodeContext, x: Handle, lengths: Handle | None) -> Handle:
    """Time backwards, for each example within its length."""
    b = context.builder
    if lengths is None:
        return b.reverse(x, [0])
    place = b.iota(DType.S64, x.dims, 0)
    length = b.broadcast(b.convert(lengths, DType.S64), x.dims, [1])
    return gather_along(x, b.select(b.compare(place, length, "LT"), length - place - 1, place), 0)


def _row(x: Handle, number: int) -> Handle:
    b = x.builder
    starts = [number, *[0] * (len(x.dims) - 1)]
    return b.reshape(b.slice(x, starts, [number + 1, *x.dims[1:]]), x.dims[1:])


def _activations(context: NodeContext, defaults: list[str], directions: int) -> list[list[Activation]]:
    """The activations of each direction; values of alpha and beta are stated in the order of those that take one."""
    names = [name.lower() for name in context.texts("activations", defaults * directions)]
    if len(names) != len(defaults) * directions:
        raise context.error(f"{len(names)} activations, expected {len(defaults) * directions}")
    alphas, betas = iter(context.numbers("activation_alpha", ())), iter(context.numbers("activation_beta", ()))
    found: list[Activation] = []
    for name in names:
        if name not in _ACTIVATIONS:
            raise context.error(f"there is no activation {name!r}")
        function, alpha, beta = _ACTIVATIONS[name]
        first = next(alphas, alpha) if alpha is not None else 0.0
        second = next(betas, beta) if beta is not None else 0.0
        found.append(_applied(function, first, second))
    count = len(defaults)
    return [found[i * count : (i + 1) * count] for i in range(directions)]


def _applied(function: Callable[[Handle, float, float], Handle], alpha: float, beta: float) -> Activation:
    return lambda x: function(x, alpha, beta)
