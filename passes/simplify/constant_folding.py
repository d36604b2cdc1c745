"""Constant folding: what depends on constants only is computed now, by the evaluator."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from xlalite.hlo.building.construct import binary, compare, constant, iota, splat, splat_like
from xlalite.hlo.building.replacement import remove_dead, replace
from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.evaluation.evaluator import Evaluator
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Memory, Trait
from xlalite.hlo.ops.comparison import Direction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Literal
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.patterns import splat_literal
from xlalite.passes.rewriting.rewrite import changes_bitcast

# The first two are smaller than their value and no work for who reads them; the third is there to be left alone.
_LEFT_AS_THEY_ARE = frozenset({"broadcast", "iota", "opt-barrier"})
_WITHOUT_PARAMETERS = frozenset({"constant", "broadcast", "iota"})
_LARGE_MASK = 4096
"""Elements beyond which positions are compared wherever they are needed instead."""

_OF_OTHERS = Trait.CONTROL_FLOW | Trait.OF_DEVICE


@dataclass(frozen=True, slots=True)
class ConstantFolding(HloPass):
    """Replaces instructions whose operands are constants by their value.

    Broadcasts and iotas stay, and so does whatever would make the module larger than `max_growth_bytes` beyond its
    operands, costs more than `max_operations`, is not pure or runs other parts of the program. Elementwise
    operations on broadcast scalars are folded as scalars. Each refusal for size or cost is recorded.

    Attributes:
        max_growth_bytes: How many bytes a result may be larger than the constants it is made from.
        max_operations: Estimated arithmetic operations of one folded instruction; a transcendental function counts as
            16, eight moved elements as one.
        max_total_operations: The same for the whole run.
        max_implicit_elements: A broadcast or iota of constants counts as a constant operand up to this size.
    """

    name: ClassVar[str] = "constant-folding"
    opcodes: ClassVar[frozenset[str]] = frozenset({"constant", "iota"})
    counts_changes: ClassVar[bool] = True

    max_growth_bytes: int = 4096
    max_operations: int = 10_000_000
    max_total_operations: int = 50_000_000
    max_implicit_elements: int = 1024

    def run(self, module: HloModule) -> bool:
        """Folds in every computation; says whether anything was folded."""
        evaluator = Evaluator()
        spent = 0
        changed = False
        for computation in module.computations():
            for instruction in computation.post_order():
                if instruction.parent is not computation or not _is_suitable(instruction):
                    continue
                folded = _fold_splats(instruction, evaluator)
                if folded is None:
                    values = self._constant_operands(instruction, evaluator)
                    if values is None:
                        continue
                    work = _work(instruction)
                    if not self._is_worthwhile(module, instruction, values, work, spent):
                        continue
                    spent += work
                    folded = _fold(instruction, values, evaluator)
                if folded is None:
                    continue
                if changes_bitcast(instruction, folded) or not self.may_change():
                    remove_dead(folded)
                    continue
                replace(instruction, folded)
                changed = True
        return changed

    def _constant_operands(self, instruction: HloInstruction, evaluator: Evaluator) -> list[Array] | None:
        values = []
        for operand in instruction.operands:
            value = self._constant_value(operand, evaluator)
            if value is None:
                return None
            values.append(value)
        return values if values else None

    def _constant_value(self, operand: HloInstruction, evaluator: Evaluator) -> Array | None:
        if operand.opcode == "constant" and operand.shape.is_array:
            literal: Literal = operand.attrs.literal
            return None if literal.is_elided else literal.value
        if operand.shape.element_count > self.max_implicit_elements or operand.opcode not in ("broadcast", "iota"):
            return None
        inner = [self._constant_value(source, evaluator) for source in operand.operands]
        known = [value for value in inner if value is not None]
        return _evaluate(operand, known, evaluator) if len(known) == len(inner) else None

    def _is_worthwhile(
        self, module: HloModule, instruction: HloInstruction, values: list[Array], work: int, spent: int
    ) -> bool:
        growth = instruction.shape.size_bytes - sum(value.nbytes for value in values)
        if growth > self.max_growth_bytes:
            figures = {"bytes": instruction.shape.size_bytes, "growth": growth, "limit": self.max_growth_bytes}
            module.record(self.name, (instruction.name,), "not folded", "the result is too large", figures)
            return False
        if work > self.max_operations or spent + work > self.max_total_operations:
            module.record(self.name, (instruction.name,), "not folded", "too much work", {"operations": work})
            return False
        return True


@dataclass(frozen=True, slots=True)
class SplatConstants(HloPass):
    """constant({c, c, ..., c}) -> broadcast(c), which takes no memory and which rules recognise.

    So with large triangular masks, such as causal ones: constant({{1,0,...},{1,1,...},...}) -> iota + k >= iota.
    """

    name: ClassVar[str] = "splat-constants"
    opcodes: ClassVar[frozenset[str]] = frozenset({"constant"})
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Rewrites constants in every computation; says whether there were any."""
        changed = False
        for instruction in module.instructions():
            if instruction.opcode != "constant" or not instruction.shape.is_array or not instruction.shape.rank:
                continue
            literal: Literal = instruction.attrs.literal
            if instruction.is_controlled or literal.is_elided:
                continue
            value = literal.value
            new = splat(value.reshape(-1)[0], literal.shape) if is_uniform(value) else _triangle(value)
            if new is None:
                continue
            if changes_bitcast(instruction, new) or not self.may_change():
                remove_dead(new)
                continue
            replace(instruction, new)
            changed = True
        return changed


def _triangle(mask: Array) -> HloInstruction | None:
    """A comparison of positions in the last two dimensions, the only ones, that gives a large mask."""
    if mask.dtype != np.bool_ or mask.size < _LARGE_MASK or mask.ndim < 2 or max(mask.shape[:-2], default=1) > 1:
        return None
    height, width = mask.shape[-2:]
    rows = mask.reshape(height, width)
    counts = np.count_nonzero(rows, axis=1)
    (partly,) = np.nonzero((counts > 0) & (counts < width))
    if not partly.size:
        return None
    row = int(partly[0])
    is_lower = bool(rows[row, 0])
    last = int(counts[row] if is_lower else width - counts[row]) - 1 - row
    if not np.array_equal(rows, np.tri(height, width, last, dtype=bool) == is_lower):
        return None
    places = [iota(DType.S32, mask.shape, mask.ndim - axis) for axis in (2, 1)]
    ends = binary("add", places[0], splat_like(last, places[0]))
    return compare(ends, places[1], Direction.GE if is_lower else Direction.LT)


def is_uniform(array: Array) -> bool:
    """Whether there is an element and all have the same bits."""
    if array.size == 0:
        return False
    flat = np.ascontiguousarray(array).reshape(-1)
    patterns = flat.view(np.uint8).reshape(flat.size, -1)
    return bool((patterns[0] == patterns[-1]).all() and (patterns == patterns[0]).all())


def _is_suitable(instruction: HloInstruction) -> bool:
    if not all(operand.opcode in _WITHOUT_PARAMETERS for operand in instruction.operands):
        return False
    if instruction.op.memory is Memory.GIVEN or instruction.opcode in _LEFT_AS_THEY_ARE:
        return False
    if not instruction.shape.is_array or instruction.shape.is_dynamic:
        return False
    return not instruction.is_controlled and _may_run_here(instruction) and instruction.is_pure


def _may_run_here(instruction: HloInstruction) -> bool:
    """Whether shapes tell its running time - no part of it is a loop, a branch or a call - and any device gives it."""
    return not instruction.op.traits.meets(_OF_OTHERS) and all(
        _may_run_here(inner) for callee in instruction.called_computations for inner in callee.instructions
    )


def _fold_splats(instruction: HloInstruction, evaluator: Evaluator) -> HloInstruction | None:
    """The elementwise operation on broadcast scalar constants, as a broadcast scalar."""
    if not instruction.op.is_elementwise or not instruction.operands:
        return None
    literals = [splat_literal(operand) for operand in instruction.operands]
    scalars = [literal.value for literal in literals if literal is not None]
    if len(scalars) != len(literals):
        return None
    value = _evaluate(instruction, scalars, evaluator)
    return None if value is None else splat(value, instruction.shape)


def _fold(instruction: HloInstruction, values: list[Array], evaluator: Evaluator) -> HloInstruction | None:
    value = _evaluate(instruction, values, evaluator)
    if value is None:
        return None
    if value.ndim and is_uniform(value):
        return splat(value.reshape(-1)[0], instruction.shape)
    return constant(value)


def _evaluate(instruction: HloInstruction, values: list[Array], evaluator: Evaluator) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            value = instruction.op.evaluate(instruction, values, evaluator.call)
    except (EvaluationError, MemoryError):
        return None
    return value if isinstance(value, np.ndarray) else None


def _work(instruction: HloInstruction) -> int:
    """How long evaluation takes, in arithmetic operations; from shapes alone, so that machines agree."""
    counted = instruction.op.flops(instruction) if instruction.op.flops is not None else 0
    elements = instruction.shape.element_count + sum(o.shape.element_count for o in instruction.operands)
    if instruction.op.has(Trait.DATA_MOVEMENT):
        return elements // 8
    return counted + elements * (16 if instruction.op.has(Trait.TRANSCENDENTAL) else 1)
