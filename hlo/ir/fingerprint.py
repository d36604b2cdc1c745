"""Structural equality: digests and keys that do not depend on names, metadata or the process.

Two computations have the same fingerprint when they hold the same operations with the same shapes, attributes and
annotations, wired in the same way. Sharing counts: `add(x, x)` differs from `add(x, y)` with an equal `y`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any

from xlalite.hlo.digest import blake2b
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Attrs
from xlalite.hlo.ir.traversal import callees, calls_itself, post_order, structural_order
from xlalite.hlo.spelling.attributes import NoAttrs, attribute_fields
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape

# Part of every digest: changed when the meaning of digests changes, since caches keep them on disk.
_VERSION = "xlalite hlo fingerprint 1"
_DIGEST_BYTES = 20


def fingerprint(subject: HloModule | HloComputation | HloInstruction) -> str:
    """The digest of a module, a computation, or one instruction with the shapes of its operands; hexadecimal.

    Equal digests mean equal structure for all purposes: BLAKE2b with 160 bits. Of a module counts also what its header
    says, and the order of instructions when it is scheduled.
    """
    fingerprints = Fingerprints()
    match subject:
        case HloModule():
            return module_fingerprint(subject)
        case HloComputation():
            return fingerprints.of_computation(subject)
        case HloInstruction():
            return fingerprints.of_instruction(subject)


def module_fingerprint(module: HloModule) -> str:
    """The digest of a module."""
    return Fingerprints().of_module(module)


def structurally_equal(one: HloModule | HloComputation, other: HloModule | HloComputation) -> bool:
    """Whether two modules or two computations differ in names and metadata only."""
    return type(one) is type(other) and fingerprint(one) == fingerprint(other)


def instruction_key(
    instruction: HloInstruction,
    operand_ids: Sequence[Hashable],
    *,
    ignore_annotations: bool = False,
    ignore_layout: bool = False,
    called_ids: Sequence[Hashable] | None = None,
) -> Hashable:
    """A key that two instructions share when they compute the same from the same operands.

    Args:
        instruction: What to describe. Whether two equal instructions may be merged is not asked here: the caller looks
            at side effects and chance.
        operand_ids: What stands for the operands: the operands themselves, or value numbers.
        ignore_annotations: Whether sharding, frontend attributes, backend configuration and unknown attributes count.
        ignore_layout: Whether shapes that differ in layout are the same.
        called_ids: What stands for the called computations; the computations themselves when absent.
    """
    called = tuple(called_ids) if called_ids is not None else instruction.called_computations
    return (
        instruction.op.name,
        instruction.shape.without_layout() if ignore_layout else instruction.shape,
        instruction.attrs,
        tuple(operand_ids),
        called,
        instruction.control_predecessors,
        () if ignore_annotations else annotations_of(instruction),
    )


def annotations_of(instruction: HloInstruction) -> tuple[Hashable, ...]:
    """What an instruction carries that may steer compilation; metadata is not among it. Empty when there is nothing."""
    if not (
        instruction.sharding
        or instruction.frontend_attributes
        or instruction.backend_config
        or instruction.extra_attributes
    ):
        return ()
    return (
        instruction.sharding,
        instruction.frontend_attributes,
        instruction.backend_config,
        instruction.extra_attributes,
    )


class Fingerprints:
    """Digests that are remembered for as long as nothing changes; make a new one after a change."""

    __slots__ = ("_computations", "_literals", "_shapes")

    def __init__(self) -> None:
        self._computations: dict[HloComputation, str] = {}
        self._shapes: dict[Shape, str] = {}
        # The objects are kept so that their ids stay theirs.
        self._literals: dict[int, tuple[Literal, str]] = {}

    def of_module(self, module: HloModule) -> str:
        """The digest of a module."""
        config = module.config
        entry = module.entry_computation
        layout = config.entry_layout or entry.program_shape
        header = (
            config.is_scheduled,
            tuple(str(shape.with_default_layout()) for shape in (*layout.parameters, layout.result)),
            tuple(map(repr, config.input_output_alias)),
            config.buffer_donors,
            config.replica_count,
            config.num_partitions,
            config.frontend_attributes,
            config.extra,
        )
        computations = module.computations()
        parts = [repr(header), self.of_computation(entry)]
        parts.extend(sorted(map(self.of_computation, computations)))
        if config.is_scheduled:
            # Digests of computations do not know the order in which instructions were put; a schedule is just that.
            parts.extend(sorted(map(self._schedule, computations)))
        return _digest("module", parts)

    def of_computation(self, computation: HloComputation) -> str:
        """The digest of a computation, called computations included."""
        if computation not in self._computations:
            for one in post_order([computation], self._unknown_callees, calls_itself):
                self._computations[one] = self._digest_computation(one)
        return self._computations[computation]

    def _unknown_callees(self, computation: HloComputation) -> list[HloComputation]:
        return [callee for callee in callees(computation) if callee not in self._computations]

    def of_instruction(self, instruction: HloInstruction) -> str:
        """The digest of one instruction: its operands count by shape and by which of them are the same."""
        numbers: dict[HloInstruction, int] = {}
        for operand in instruction.operands:
            numbers.setdefault(operand, len(numbers))
        shapes = [self._shape(operand.shape) for operand in numbers]
        return _digest("instruction", [*shapes, self._describe(instruction, numbers, with_control=False)])

    def _digest_computation(self, computation: HloComputation) -> str:
        order = structural_order(computation)
        numbers = {instruction: number for number, instruction in enumerate(order)}
        parts = [self._describe(instruction, numbers, with_control=True) for instruction in order]
        return _digest("computation", [str(numbers[computation.root]), computation.execution_thread, *parts])

    def _schedule(self, computation: HloComputation) -> str:
        numbers = {instruction: number for number, instruction in enumerate(structural_order(computation))}
        order = [numbers[instruction] for instruction in computation.instructions]
        return _digest("schedule", [self.of_computation(computation), repr(order)])

    def _describe(
        self, instruction: HloInstruction, numbers: Mapping[HloInstruction, int], *, with_control: bool
    ) -> str:
        return repr(
            (
                instruction.op.name,
                self._shape(instruction.shape),
                self._attrs(instruction.attrs),
                [numbers[operand] for operand in instruction.operands],
                [self.of_computation(called) for called in instruction.called_computations],
                sorted([numbers[one] for one in instruction.control_predecessors]) if with_control else (),
                annotations_of(instruction),
            )
        )

    def _shape(self, shape: Shape) -> str:
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = str(shape)
        return known

    def _attrs(self, attrs: Attrs) -> tuple[str, ...]:
        if isinstance(attrs, NoAttrs):
            return ()
        texts: list[str] = []
        for name, spell in _plan(attrs.__class__):
            value = getattr(attrs, name)
            if spell is None:
                texts.append(self._literal(value) if isinstance(value, Literal) else repr(value))
            else:  # None is an attribute that is not there; a codec knows only values
                texts.append("" if value is None else spell(value))
        return tuple(texts)

    def _literal(self, literal: Literal) -> str:
        known = self._literals.get(id(literal))
        if known is None:
            known = self._literals[id(literal)] = (literal, _literal_digest(literal))
        return known[1]


def _literal_digest(literal: Literal) -> str:
    if literal.shape.is_tuple:
        return _digest("tuple", [_literal_digest(element) for element in literal.elements])
    hasher = blake2b(digest_size=_DIGEST_BYTES)
    hasher.update(literal.shape.text().encode())
    hasher.update(b"elided" if literal.is_elided else literal.value.tobytes())
    return hasher.hexdigest()


def _digest(kind: str, parts: Sequence[str]) -> str:
    hasher = blake2b(f"{_VERSION}: {kind}\n".encode(), digest_size=_DIGEST_BYTES)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(b"%d:" % len(data))
        hasher.update(data)
    return hasher.hexdigest()


@cache
def _plan(attrs_class: type) -> tuple[tuple[str, Callable[[Any], str] | None], ...]:
    """The fields that have a text of their own, with what spells it, and behind them those that have not."""
    coded = {one.field: one.codec.format for one in attribute_fields(attrs_class)}
    plain = [(one.name, None) for one in dataclasses.fields(attrs_class) if one.name not in coded]
    return (*coded.items(), *plain)
