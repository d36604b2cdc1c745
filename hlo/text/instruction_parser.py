"""Reads one instruction: name, shape, operation, operands, attributes.

What an operation is called, which attributes it has and which computations it calls comes from its declaration. Only
parameters, constants and tuple elements are known here, because the grammar itself needs them.
"""

from __future__ import annotations

from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from xlalite.hlo.errors import ParseError, ShapeError, XlaliteError
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.op import OpDef
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ConstantAttrs, ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import AttributeField, attribute_fields
from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.spelling.shape_text import at_shape
from xlalite.hlo.text.async_text import CONTINUATIONS, START, split_async_opcode, start_of, wrap
from xlalite.hlo.text.parse_scope import Scope
from xlalite.hlo.types.names import is_writable_name
from xlalite.hlo.types.shape import ProgramShape, Shape
from xlalite.hlo.wording import did_you_mean

if TYPE_CHECKING:
    from xlalite.hlo.ir.computation import HloComputation
    from xlalite.hlo.ops.asynchronous import AsyncStartAttrs
    from xlalite.hlo.spelling.cursor import TokenCursor
    from xlalite.hlo.text.annotation_text import FrontendAttributes


@dataclass(slots=True)
class Annotations:
    """What stood behind the operands besides the operation's own attributes."""

    values: dict[str, Any] = field(default_factory=dict)
    called: dict[str, tuple[HloComputation, ...]] = field(default_factory=dict)
    metadata: Metadata = field(default_factory=Metadata)
    sharding: str = ""
    frontend_attributes: FrontendAttributes = ()
    backend_config: str = ""
    control_predecessors: tuple[HloInstruction, ...] = ()
    extra: list[tuple[str, str]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class AttributePlan:
    """What the attribute names of an operation mean."""

    fields: dict[str, AttributeField]
    required: tuple[AttributeField, ...]
    calls: frozenset[str]


class Bodies(Protocol):
    """Where computations without a name in the text go."""

    def read_body(self, wanted_name: str) -> HloComputation:
        """Consumes a computation's body that stands in the place of its name."""

    def add_body(self, computation: HloComputation) -> None:
        """Takes in a computation that the text does not spell out."""


class InstructionParser:
    """Reads instructions into a scope.

    Attributes:
        cursor: Where the text stands.
        computations: The module's computations by name, as far as they were read.
        bodies: Where computations without a name in the text go.
    """

    __slots__ = ("_metadata", "_signatures", "bodies", "computations", "cursor")

    def __init__(
        self,
        cursor: TokenCursor,
        computations: dict[str, HloComputation],
        bodies: Bodies,
    ) -> None:
        """Reads with the given cursor; the computations may grow while it works."""
        self.cursor = cursor
        self.computations = computations
        self.bodies = bodies
        self._signatures: dict[HloComputation, ProgramShape] = {}
        self._metadata: dict[str, Metadata] = {}

    def read(self, scope: Scope) -> tuple[HloInstruction, bool]:
        """Consumes `[ROOT] name = [shape] opcode(...), ...`; says also whether it was marked as the root."""
        cursor = self.cursor
        is_root = cursor.accept("ROOT")
        first = cursor.index
        token = cursor.tokens[first]
        if token.endswith("=") and len(token) > 1:
            name = token[:-1]
            cursor.index += 1
        else:
            name = read_name(cursor, "the name of an instruction")
            cursor.expect("=")
        if name in scope.instructions:
            raise cursor.error_at(first, f"there is already an instruction {name!r} in this computation")
        return self.read_operation(scope, name), is_root

    def read_operation(self, scope: Scope, name: str) -> HloInstruction:
        """Consumes `[shape] opcode(operands), attributes` and adds the instruction; "" asks for a made-up name."""
        cursor = self.cursor
        shape = cursor.shape() if at_shape(cursor) else None
        start = cursor.index
        word = cursor.peek()
        op = OPS.get(word)
        wrapped: OpDef | None = None
        if op is None:
            pair = split_async_opcode(word)
            if pair is None:
                raise self._unknown_operation()
            op = pair[0]
            wrapped = pair[1] if op.name == START else None
        cursor.index += 1
        cursor.expect("(")
        attrs: Any = None
        operands: list[HloInstruction] = []
        if op.attrs is ParameterAttrs:
            attrs = ParameterAttrs(cursor.integer())
            cursor.expect(")")
        elif op.attrs is ConstantAttrs:
            if shape is None:
                raise cursor.error("a constant needs its shape before the word constant")
            attrs = ConstantAttrs(self._literal(shape))
            cursor.expect(")")
        else:
            operands = self._operands(scope)
        goes_on = op.name in CONTINUATIONS
        plan = async_plan(wrapped or op) if wrapped is not None or goes_on else attribute_plan(op)
        annotations = self._annotations(scope, plan, name or word)
        if goes_on:
            self._check_continuation(operands, annotations, start)
        try:
            called: tuple[HloComputation, ...]
            if wrapped is not None:
                attrs, called = self._wrap(wrapped, operands, shape, annotations, start)
            else:
                if attrs is None:
                    attrs = self._attrs(op, annotations, start)
                called = self._called(op, annotations, start)
            return self._add(scope, name, op, shape, operands, attrs, called, annotations)
        except ParseError:
            raise
        except XlaliteError as error:
            raise cursor.error_at(start, error) from error

    def _wrap(
        self,
        wrapped: OpDef,
        operands: list[HloInstruction],
        declared: Shape | None,
        annotations: Annotations,
        start: int,
    ) -> tuple[AsyncStartAttrs, tuple[HloComputation, ...]]:
        """Attributes and computation of the async-start that `add-start(...)` stands for."""
        from xlalite.hlo.ops.asynchronous import AsyncStartAttrs

        thread = annotations.values.pop("async_execution_thread", AsyncStartAttrs().async_execution_thread)
        attrs = AsyncStartAttrs(thread)
        if "calls" in annotations.called and "calls" not in attribute_plan(wrapped).calls:
            return attrs, annotations.called["calls"]
        wrapped_attrs = self._attrs(wrapped, annotations, start)
        called = self._called(wrapped, annotations, start)
        computation = wrap(f"{wrapped.name}.async", operands, wrapped, wrapped_attrs, called, declared, thread)
        self.bodies.add_body(computation)
        return attrs, (computation,)

    def _check_continuation(self, operands: list[HloInstruction], annotations: Annotations, start: int) -> None:
        """What an async-update or async-done says of the computation, its start has said already."""
        called = annotations.called.pop("calls", None)
        thread = annotations.values.pop("async_execution_thread", None)
        begun = start_of(operands[0]) if operands else None
        if begun is None:
            return
        if called is not None and called != begun.called_computations:
            raise self.cursor.error_at(start, f"calls= names another computation than that of {begun.name!r}")
        if thread is not None and thread != begun.attrs.async_execution_thread:
            raise self.cursor.error_at(
                start, f"async_execution_thread= names another thread than that of {begun.name!r}"
            )

    def _literal(self, shape: Shape) -> Any:
        """The literal of a constant; errors of the value are errors of the text."""
        start = self.cursor.index
        try:
            return self.cursor.literal(shape)
        except ParseError:
            raise
        except XlaliteError as error:
            raise self.cursor.error_at(start, error) from error

    def _add(
        self,
        scope: Scope,
        name: str,
        op: OpDef,
        declared: Shape | None,
        operands: list[HloInstruction],
        attrs: Any,
        called: tuple[HloComputation, ...],
        annotations: Annotations,
    ) -> HloInstruction:
        signatures = tuple(map(self._signature, called)) if called else ()
        if declared is None and op.explicit_shape:
            raise XlaliteError(f"{op.name}: the result shape must be written, it does not follow from the operands")
        inferred = op.infer_shape([operand.shape for operand in operands], attrs, signatures, declared)
        if declared is not None and inferred is not declared and not inferred.compatible(declared):
            raise XlaliteError(f"{op.name}: found result shape {declared.text()}, expected {inferred.text()}")
        instruction = HloInstruction(
            op, declared if declared is not None else inferred, operands, attrs, called, name, annotations.metadata
        )
        instruction.sharding = annotations.sharding
        instruction.frontend_attributes = annotations.frontend_attributes
        instruction.backend_config = annotations.backend_config
        instruction.extra_attributes = tuple(annotations.extra)
        for predecessor in annotations.control_predecessors:
            instruction.add_control_predecessor(predecessor)
        return scope.add(instruction, name)

    def _signature(self, computation: HloComputation) -> ProgramShape:
        signature = self._signatures.get(computation)
        if signature is None:
            signature = self._signatures[computation] = computation.program_shape
        return signature

    def _operands(self, scope: Scope) -> list[HloInstruction]:
        cursor = self.cursor
        tokens, instructions = cursor.tokens, scope.instructions
        operands: list[HloInstruction] = []
        while True:
            token = tokens[cursor.index]
            known = instructions.get(token[1:] if token[:1] == "%" else token)
            if known is not None and tokens[cursor.index + 1] in (",", ")"):
                operands.append(known)
                cursor.index += 1
            elif token == ")" and not operands:
                cursor.index += 1
                return operands
            else:
                operands.append(self._operand(scope))
            following = tokens[cursor.index]
            cursor.index += 1
            if following == ")":
                return operands
            if following != ",":
                cursor.index -= 1
                raise cursor.unexpected("',' or ')' after an operand")

    def _operand(self, scope: Scope) -> HloInstruction:
        """An operand in any spelling: `x`, `f32[2] x`, `x#1#0`, `f32[2] add(x, y)`."""
        cursor = self.cursor
        start = cursor.index
        shape = cursor.shape() if at_shape(cursor) else None
        if cursor.tokens[cursor.index + 1] == "(":
            cursor.index = start
            cursor.enter()
            nested = self.read_operation(scope, "")
            cursor.leave()
            return nested
        if scope.free_operands and shape is not None and cursor.peek() in (",", ")"):
            return scope.free_parameter(shape, "")
        position = cursor.index
        name = read_name(cursor, "an operand")
        operand = scope.instructions.get(name)
        if operand is None:
            if scope.free_operands and shape is not None:
                return scope.free_parameter(shape, name)
            raise cursor.error_at(position, f"there is no instruction {name!r} above in this computation")
        while cursor.accept("#"):
            try:
                operand = scope.element(operand, cursor.integer())
            except ShapeError as error:
                raise cursor.error_at(position, error) from error
        if shape is not None and not shape.compatible(operand.shape):
            raise cursor.error_at(
                start, f"operand {name!r}: found shape {shape.text()}, it is declared as {operand.shape.text()}"
            )
        return operand

    def _annotations(self, scope: Scope, plan: AttributePlan, name: str) -> Annotations:
        """Everything that follows the operands."""
        cursor = self.cursor
        tokens = cursor.tokens
        found = Annotations()
        while tokens[cursor.index] == ",":
            token = tokens[cursor.index + 1]
            if token[:10] == "metadata={":
                cursor.index += 2
                self._once(found, "metadata")
                found.metadata = self._read_metadata(token[9:], cursor.index - 1)
                continue
            if token[-1:] != "=" or len(token) < 2:
                # A nested instruction's attributes end where the next operand starts.
                if cursor.depth:
                    return found
                cursor.index += 1
                raise cursor.unexpected("an attribute like name=value")
            cursor.index += 2
            attribute = token[:-1]
            self._once(found, attribute)
            declared = plan.fields.get(attribute)
            if declared is not None:
                found.values[declared.field] = declared.codec.parse(cursor)
            elif attribute in plan.calls:
                found.called[attribute] = self._read_called(name, attribute)
            else:
                self._read_common(scope, found, attribute)
        return found

    def _once(self, found: Annotations, attribute: str) -> None:
        if attribute in found.seen:
            raise self.cursor.error_at(self.cursor.index - 1, f"the attribute {attribute} is given twice")
        found.seen.add(attribute)

    def _read_common(self, scope: Scope, found: Annotations, attribute: str) -> None:
        cursor = self.cursor
        if attribute == "metadata":
            start = cursor.index
            found.metadata = self._read_metadata(cursor.balanced(), start)
        elif attribute == "sharding":
            found.sharding = cursor.verbatim()
        elif attribute == "frontend_attributes":
            from xlalite.hlo.text.annotation_text import read_frontend_attributes

            found.frontend_attributes = read_frontend_attributes(cursor)
        elif attribute == "backend_config":
            found.backend_config = cursor.balanced() if cursor.at("{") else cursor.string()
        elif attribute == "control-predecessors":
            found.control_predecessors = self._read_predecessors(scope)
        else:
            found.extra.append((attribute, cursor.verbatim()))

    def _read_metadata(self, text: str, index: int) -> Metadata:
        known = self._metadata.get(text)
        if known is None:
            try:
                from xlalite.hlo.text.annotation_text import parse_metadata

                known = self._metadata[text] = parse_metadata(text)
            except ValueError as error:
                raise self.cursor.error_at(index, str(error)) from None
        return known

    def _read_predecessors(self, scope: Scope) -> tuple[HloInstruction, ...]:
        cursor = self.cursor
        cursor.expect("{")
        predecessors: list[HloInstruction] = []
        for _ in separated(cursor, "}"):
            position = cursor.index
            name = read_name(cursor, "the name of an instruction")
            if name not in scope.instructions:
                raise cursor.error_at(position, f"there is no instruction {name!r} above in this computation")
            predecessors.append(scope.instructions[name])
        return tuple(predecessors)

    def _read_called(self, name: str, attribute: str) -> tuple[HloComputation, ...]:
        """One computation or a list of them, each as a name or as its body."""
        cursor = self.cursor
        tokens, index = cursor.tokens, cursor.index
        is_list = tokens[index] == "{" and (tokens[index + 1] in ("{", "}") or tokens[index + 2] in (",", "}"))
        if not is_list:
            return (self._read_one_called(f"{name}.{attribute}"),)
        cursor.expect("{")
        computations: list[HloComputation] = []
        for _ in separated(cursor, "}"):
            computations.append(self._read_one_called(f"{name}.{attribute}"))
        return tuple(computations)

    def _read_one_called(self, name: str) -> HloComputation:
        cursor = self.cursor
        if cursor.at("{"):
            cursor.enter()
            body = self.bodies.read_body(name)
            cursor.leave()
            return body
        position = cursor.index
        wanted = read_name(cursor, "the name of a computation or its body")
        computation = self.computations.get(wanted)
        if computation is None:
            raise cursor.error_at(position, f"there is no computation {wanted!r} above")
        return computation

    def _attrs(self, op: OpDef, annotations: Annotations, start: int) -> Any:
        values = annotations.values
        for required in attribute_plan(op).required:
            if required.field not in values:
                raise self.cursor.error_at(start, f"{op.name}: the attribute {required.text_name}= is missing")
        return op.attrs(**values)

    def _called(self, op: OpDef, annotations: Annotations, start: int) -> tuple[HloComputation, ...]:
        called, calls = annotations.called, op.calls
        if not calls.names and calls.list_name is None:
            return ()
        if calls.list_name is not None and calls.list_name in called:
            if len(called) > 1:
                raise self.cursor.error_at(start, f"{op.name}: {calls.list_name} stands for all called computations")
            return called[calls.list_name]
        if not called and calls.optional:
            return ()
        for name in calls.names:
            if name not in called:
                raise self.cursor.error_at(start, f"{op.name}: the attribute {name}= is missing")
        if len(calls.names) == 1:
            return called[calls.names[0]]
        for name in calls.names:
            if len(called[name]) != 1:
                raise self.cursor.error_at(start, f"{op.name}: {name}= takes one computation")
        return tuple(called[name][0] for name in calls.names)

    def _unknown_operation(self) -> ParseError:
        word = self.cursor.peek()
        if not word or not (word[0].isalpha() or word[0] == "_"):
            return self.cursor.unexpected("an operation")
        return self.cursor.error(f"unknown operation {word[:60]!r}{did_you_mean(word[:60], OPS)}")


@cache
def attribute_plan(op: OpDef) -> AttributePlan:
    """What the attribute names of an operation mean."""
    fields = attribute_fields(op.attrs)
    calls = set(op.calls.names)
    if op.calls.list_name is not None:
        calls.add(op.calls.list_name)
    return AttributePlan(
        {one.text_name: one for one in fields}, tuple(one for one in fields if one.required), frozenset(calls)
    )


@cache
def async_plan(wrapped: OpDef) -> AttributePlan:
    """What the attribute names of `add-start` mean: those of the add, and the thread of execution."""
    plan, start = attribute_plan(wrapped), attribute_plan(OPS[START])
    return AttributePlan(plan.fields | start.fields, plan.required, plan.calls | start.calls)


def read_name(cursor: TokenCursor, expected: str) -> str:
    """Consumes a name, with or without `%`, and returns it without."""
    token = cursor.tokens[cursor.index]
    name = token[1:] if token[:1] == "%" else token
    if not is_writable_name(name) or (name is token and not (token[:1].isalpha() or token[:1] == "_")):
        raise cursor.unexpected(expected)
    cursor.index += 1
    return name
