"""Padded forms of control flow: arrays and their sizes are handed over side by side, with whether all sizes fit."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType
from xlalite.passes.normalization.padded_arrays import Padded, PaddedForm, Padder


def _call(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    return padder.compute(one.called_computations[0], operands)


def _conditional(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    selector, *given = operands
    packed = [padder.builder.tuple(padder.packed(operand)) for operand in given]

    def branch(computation: HloComputation, operand: Handle) -> HloComputation:
        def build(builder: Builder, parameters: tuple[Handle, ...]) -> Handle:
            inner = padder.inside(builder)
            shape = computation.parameters[0].shape
            result = inner.compute(computation, [inner.unpacked(shape, iter(_elements(builder, parameters[0])))])
            return builder.tuple([*inner.packed(result), inner.fits()])

        return padder.builder.subcomputation(f"{computation.name}.padded", (operand.shape,), build)

    branches = list(map(branch, one.called_computations, packed))
    result = padder.builder.op("conditional", (selector.whole, *packed), called=branches)
    return _unpacked(padder, one, result)


def _while(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    """A loop ends as soon as a size does not fit."""
    condition, body = one.called_computations
    start = padder.builder.tuple([*padder.packed(operands[0]), padder.builder.constant(True, DType.PRED)])

    def goes_on(builder: Builder, parameter: Handle) -> Handle:
        inner, state, fits = _state(padder, one, builder, parameter)
        return inner.compute(condition, [state]).whole & fits & inner.fits()

    def step(builder: Builder, parameter: Handle) -> Handle:
        inner, state, fits = _state(padder, one, builder, parameter)
        result = inner.compute(body, [state])
        return builder.tuple([*inner.packed(result), fits & inner.fits()])

    functions = [
        padder.builder.subcomputation(f"{condition.name}.padded", (start.shape,), lambda b, p: goes_on(b, p[0])),
        padder.builder.subcomputation(f"{body.name}.padded", (start.shape,), lambda b, p: step(b, p[0])),
    ]
    return _unpacked(padder, one, padder.builder.op("while", (start,), called=functions))


def _state(padder: Padder, one: HloInstruction, builder: Builder, parameter: Handle) -> tuple[Padder, Padded, Handle]:
    inner = padder.inside(builder)
    *handles, fits = _elements(builder, parameter)
    return inner, inner.unpacked(one.shape, iter(handles)), fits


def _unpacked(padder: Padder, one: HloInstruction, result: Handle) -> Padded:
    """The value out of the results of control flow, the last of which says whether sizes fit."""
    *handles, fits = _elements(padder.builder, result)
    padder.conditions.append(fits)
    return padder.unpacked(one.shape, iter(handles))


def _elements(builder: Builder, value: Handle) -> Sequence[Handle]:
    return [builder.element(value, number) for number in range(len(value.shape.elements))]


CONTROL_FORMS: dict[str, PaddedForm] = {"call": _call, "conditional": _conditional, "while": _while}
