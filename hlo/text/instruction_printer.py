"""Writes one instruction; the operation's declaration says which attributes stand in which order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.op import OpDef
from xlalite.hlo.ops.structural import ConstantAttrs, ParameterAttrs
from xlalite.hlo.spelling.attributes import AttributeField, attribute_fields
from xlalite.hlo.spelling.literal_text import format_literal
from xlalite.hlo.text.annotation_text import format_frontend_attributes, format_frontend_value, format_metadata
from xlalite.hlo.text.async_text import START, short_opcode, wrapped_instruction
from xlalite.hlo.text.print_options import PrintOptions
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.names import needs_percent
from xlalite.hlo.types.shape import Shape

# Attributes that stand just before the metadata; all others that xlalite does not know follow the operation's own.
_LATE = frozenset({"statistics", "result_accuracy", "origin"})
_SMALL_CONSTANT = 10
_NO_METADATA = Metadata()

PrintBody = Callable[[HloComputation, int], str]


class InstructionPrinter:
    """Writes instructions with one set of options.

    Attributes:
        options: What is written.
        print_body: Writes a computation without its name, at a depth: (computation, depth) -> text.
    """

    __slots__ = ("_metadata", "_shapes", "options", "print_body")

    def __init__(self, options: PrintOptions, print_body: PrintBody) -> None:
        self.options = options
        self.print_body = print_body
        # Shapes are shared by many instructions; the value keeps the key's object alive.
        self._shapes: dict[int, tuple[Shape, str]] = {}
        self._metadata: dict[int, tuple[Metadata, str]] = {}

    def line(self, instruction: HloInstruction, names: dict[HloInstruction, str], depth: int, *, is_root: bool) -> str:
        """The instruction without indentation.

        Args:
            instruction: What to write.
            names: Names of the computation's instructions, with `%` where wanted.
            depth: How many computations stand around it, for nested bodies.
            is_root: Whether to mark it as the root.
        """
        marker = "ROOT " if is_root else ""
        name = names.get(instruction)
        if name is None:
            name = self.name_of(instruction)
        wrapped = self._wrapped(instruction)
        opcode = instruction.op.name if wrapped is None else short_opcode(instruction, wrapped)
        return (
            f"{marker}{name} = {self._shape(instruction.shape)} {opcode}"
            f"({self._operands(instruction, names)}){self._attributes(instruction, names, depth)}"
        )

    def _wrapped(self, instruction: HloInstruction) -> HloInstruction | None:
        return wrapped_instruction(instruction) if self.options.short_async else None

    def name_of(self, instruction: HloInstruction) -> str:
        """The instruction's own name as the options want it."""
        return self.written_name(instruction.name)

    def written_name(self, name: str) -> str:
        """A name as the options want it; `%` stays where the name would be read as something else."""
        return "%" + name if self.options.percent or needs_percent(name) else name

    def _shape(self, shape: Shape) -> str:
        known = self._shapes.get(id(shape))
        if known is None:
            known = self._shapes[id(shape)] = (shape, str(shape))
        return known[1]

    def _operands(self, instruction: HloInstruction, names: dict[HloInstruction, str]) -> str:
        attrs_class = instruction.op.attrs
        if attrs_class is ParameterAttrs:
            return str(instruction.attrs.number)
        if attrs_class is ConstantAttrs:
            return self._constant(instruction.attrs.literal)
        words = [names.get(operand) or self.name_of(operand) for operand in instruction.operands]
        if self.options.operand_shape:
            words = [
                f"{self._shape(operand.shape)} {word}"
                for operand, word in zip(instruction.operands, words, strict=True)
            ]
        if self.options.index_comments and len(words) > 5:
            words = [f"/*index={i}*/{word}" if i and i % 5 == 0 else word for i, word in enumerate(words)]
        return ", ".join(words)

    def _constant(self, literal: Literal) -> str:
        shape = literal.shape
        if self.options.essential_constants:
            if shape.is_array and (shape.element_count == 0 or literal.is_all(0)):
                return "0"
            if shape.is_array and literal.is_all(1):
                return "1"
            return format_literal(literal) if shape.dtype.is_integral else "{...}"
        small = shape.is_array and shape.element_count <= _SMALL_CONSTANT
        return format_literal(literal) if small or self.options.large_constants else "{...}"

    def _attributes(self, instruction: HloInstruction, names: dict[HloInstruction, str], depth: int) -> str:
        parts = own_attributes(instruction, after_calls=False)
        wrapped = self._wrapped(instruction) if instruction.opcode == START else None
        if wrapped is not None:
            parts.extend(own_attributes(wrapped, after_calls=False))
            if wrapped.called_computations:
                parts.append(self._called(wrapped, depth))
            parts.extend(own_attributes(wrapped, after_calls=True))
        if instruction.called_computations and (wrapped is None or self.options.full_bodies):
            parts.append(self._called(instruction, depth))
        parts.extend(own_attributes(instruction, after_calls=True))
        extra = instruction.extra_attributes
        parts.extend(f"{key}={text}" for key, text in extra if key not in _LATE)
        if instruction.sharding:
            parts.append(f"sharding={instruction.sharding}")
        if instruction.frontend_attributes:
            parts.append("frontend_attributes=" + format_frontend_attributes(instruction.frontend_attributes))
        if self.options.control_dependencies and instruction.control_predecessors:
            before = ", ".join(names.get(one) or self.name_of(one) for one in instruction.control_predecessors)
            parts.append("control-predecessors={" + before + "}")
        parts.extend(f"{key}={text}" for key, text in extra if key in _LATE)
        if self.options.metadata and instruction.metadata is not _NO_METADATA:
            metadata = self._metadata_text(instruction.metadata)
            if metadata != "{}":
                parts.append("metadata=" + metadata)
        if self.options.backend_config and instruction.backend_config:
            parts.append("backend_config=" + format_frontend_value(instruction.backend_config))
        return ", " + ", ".join(parts) if parts else ""

    def _metadata_text(self, metadata: Metadata) -> str:
        known = self._metadata.get(id(metadata))
        if known is None:
            known = self._metadata[id(metadata)] = (metadata, format_metadata(metadata))
        return known[1]

    def _called(self, instruction: HloInstruction, depth: int) -> str:
        called = instruction.called_computations
        attributes = called_names(instruction)
        if attributes is None:
            list_name = instruction.op.calls.list_name or instruction.op.calls.names[0]
            if self.options.full_bodies:
                return list_name + "={\n" + ",\n".join(self.print_body(one, depth) for one in called) + "\n}"
            return list_name + "={" + ", ".join(self.written_name(one.name) for one in called) + "}"
        return ", ".join(
            f"{name}=\n{self.print_body(one, depth)}"
            if self.options.full_bodies
            else f"{name}={self.written_name(one.name)}"
            for name, one in zip(attributes, called, strict=True)
        )


def own_attributes(instruction: HloInstruction, *, after_calls: bool) -> list[str]:
    """The attributes that the operation declares for before or behind its called computations."""
    parts: list[str] = []
    attrs = instruction.attrs
    for field in _fields(instruction.op, after_calls):
        value = getattr(attrs, field.field)
        if field.required or field.print_default or value != field.default:
            parts.append(f"{field.text_name}={field.codec.format(value)}")
    return parts


def called_names(instruction: HloInstruction) -> tuple[str, ...] | None:
    """The attribute name of each called computation, or None when they stand in one list.

    An operation that has both forms is written with names when it chooses by a pred, as XLA does.
    """
    calls, called = instruction.op.calls, instruction.called_computations
    if len(calls.names) != len(called):
        return None
    if calls.list_name is None:
        return calls.names
    by_pred = len(called) > 1 and instruction.operands[0].shape.dtype is DType.PRED
    return calls.names if by_pred else None


@cache
def _fields(op: OpDef, after_calls: bool) -> tuple[AttributeField, ...]:
    return tuple(field for field in attribute_fields(op.attrs) if field.after_calls == after_calls)
