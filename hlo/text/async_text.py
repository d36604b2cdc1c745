"""The short spelling of asynchronous operations: `add-start(x, y)` for an `async-start` that calls nothing but an add.

`add-start`, `add-update` and `add-done` stand for `async-start`, `async-update` and `async-done` of a computation whose
root applies `add` to its parameters in order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.op import Attrs, OpDef
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.spelling.attributes import attribute_fields
from xlalite.hlo.types.shape import Shape

START = "async-start"
CONTINUATIONS = frozenset({"async-update", "async-done"})
_SUFFIXES = ("start", "update", "done")
# Updates between start and done; beyond that the long spelling is used, so that writing takes linear time.
_LONGEST_CHAIN = 16


def split_async_opcode(word: str) -> tuple[OpDef, OpDef] | None:
    """The asynchronous operation and the wrapped one that a word like `add-start` stands for."""
    base, _, suffix = word.rpartition("-")
    if suffix not in _SUFFIXES or base not in OPS or not _has_short_spelling(OPS[base]):
        return None
    return OPS[f"async-{suffix}"], OPS[base]


def wrap(
    name: str,
    operands: Sequence[HloInstruction],
    op: OpDef,
    attrs: Attrs,
    called: Sequence[HloComputation],
    declared: Shape | None,
    thread: str,
) -> HloComputation:
    """A loose computation that applies an operation to its parameters.

    Args:
        name: The computation's name.
        operands: What the async-start is applied to; the parameters have their shapes.
        op: The wrapped operation.
        attrs: Its attributes.
        called: The computations it calls.
        declared: The written shape of the async-start, which holds the result's shape.
        thread: The thread of execution.

    Raises:
        ShapeError: The operation does not fit the operands.
    """
    from xlalite.hlo.ops.asynchronous import AsyncStartAttrs

    result = declared.elements[1] if declared is not None and len(declared.elements) > 1 else None
    shape = op.infer_shape(
        [operand.shape for operand in operands], attrs, [computation.program_shape for computation in called], result
    )
    computation = HloComputation(name)
    computation.execution_thread = "" if thread == AsyncStartAttrs().async_execution_thread else thread
    parameters = [
        computation.add(HloInstruction(OPS["parameter"], operand.shape, (), ParameterAttrs(number), name="param"))
        for number, operand in enumerate(operands)
    ]
    computation.set_root(computation.add(HloInstruction(op, result or shape, parameters, attrs, called)))
    return computation


def wrapped_instruction(instruction: HloInstruction) -> HloInstruction | None:
    """The instruction that an asynchronous one wraps, when the short spelling says everything about it."""
    start = start_of(instruction)
    if start is None:
        return None
    computation = start.called_computations[0]
    root = computation.root
    if root.operands != computation.parameters or len(computation) != len(computation.parameters) + 1:
        return None
    if f"{root.opcode}-start" in OPS or f"{root.opcode}-done" in OPS or not _has_short_spelling(root.op):
        return None
    # The reader takes the shapes from the operands and from the result of the start.
    pairs = zip((*computation.parameters, root), (*start.operands, None), strict=True)
    if any(inner.shape != (outer.shape if outer is not None else start.shape.elements[1]) for inner, outer in pairs):
        return None
    bare = root.metadata == Metadata() and not (
        root.sharding
        or root.frontend_attributes
        or root.backend_config
        or root.extra_attributes
        or root.control_predecessors
    )
    from xlalite.hlo.ops.asynchronous import AsyncStartAttrs

    expected = "" if start.attrs == AsyncStartAttrs() else start.attrs.async_execution_thread
    return root if bare and computation.execution_thread == expected else None


def start_of(instruction: HloInstruction) -> HloInstruction | None:
    """The async-start that an instruction is or goes on with; None when there is none or a long way off."""
    start = instruction
    for _ in range(_LONGEST_CHAIN):
        if start.opcode not in CONTINUATIONS or not start.operands:
            break
        start = start.operands[0]
    return start if start.opcode == START else None


def _has_short_spelling(op: OpDef) -> bool:
    """Whether all attributes have names; the number of a parameter and the value of a constant stand elsewhere."""
    return len(attribute_fields(op.attrs)) == len(dataclasses.fields(op.attrs))


def short_opcode(instruction: HloInstruction, wrapped: HloInstruction) -> str:
    """`add-start` and the like."""
    return wrapped.opcode + instruction.opcode.removeprefix("async")
