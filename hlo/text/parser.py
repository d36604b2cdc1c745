"""Reads HLO text into modules.

The grammar is `docs/hlo_text.md`; which operations, attributes and called computations exist comes from the
declarations. Whatever the input is, the only error is `ParseError`, with the place.
"""

from __future__ import annotations

from dataclasses import replace

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.spelling.cursor import TokenCursor
from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.text.header_text import Header, read_header
from xlalite.hlo.text.instruction_parser import InstructionParser, read_name
from xlalite.hlo.text.parse_scope import Scope
from xlalite.hlo.types.limits import DEFAULT_LIMITS, ParseLimits
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import ProgramShape, Shape


def parse(text: str | bytes, name: str | None = None, *, limits: ParseLimits = DEFAULT_LIMITS) -> HloModule:
    """The module that a text spells: a whole module, some computations, or a single instruction.

    Args:
        text: HLO text; bytes are taken as UTF-8.
        name: Name of the module when the text gives none.
        limits: What the text may ask for.

    Raises:
        ParseError: The text is no HLO; says where.
    """
    return _ModuleParser(TokenCursor(text, limits)).read(name)


def parse_shape(text: str | bytes) -> Shape:
    """The shape that a text spells.

    Raises:
        ParseError: The text is no shape.
    """
    cursor = TokenCursor(text)
    shape = cursor.shape()
    _expect_end(cursor)
    return shape


def parse_literal(text: str | bytes, shape: Shape | None = None) -> Literal:
    """The literal that a text spells.

    Args:
        text: A literal; `f32[2] {1, 2}` when `shape` is absent, else without the shape.
        shape: The literal's shape.

    Raises:
        ParseError: The text is no literal of the shape.
    """
    cursor = TokenCursor(text)
    literal = cursor.literal(shape if shape is not None else cursor.shape())
    _expect_end(cursor)
    return literal


def _expect_end(cursor: TokenCursor) -> None:
    if not cursor.at(""):
        raise cursor.unexpected("the end of the text")


class _ModuleParser:
    """Reads one module."""

    __slots__ = ("bodies", "computations", "cursor", "instructions", "module")

    def __init__(self, cursor: TokenCursor) -> None:
        self.cursor = cursor
        self.module = HloModule("module")
        self.computations: dict[str, HloComputation] = {}
        self.bodies: dict[str, HloComputation] = {}
        self.instructions = InstructionParser(cursor, self.computations, self)

    def read(self, name: str | None) -> HloModule:
        cursor = self.cursor
        if cursor.at(""):
            raise cursor.error("the text is empty, expected HLO")
        header = read_header(cursor)
        self.module.name = header.name or name or "module"
        self.module.config = header.config
        self.module.tables = header.tables
        if header.seen or header.name or self._at_computation():
            self._read_computations()
        else:
            self._read_single_instruction(name)
        self._check_header(header)
        return self.module

    def read_body(self, wanted_name: str) -> HloComputation:
        """Reads `{ instructions }` that stands in the place of a computation's name."""
        computation = HloComputation(wanted_name)
        self._read_instructions(computation)
        self.add_body(computation)
        return computation

    def add_body(self, computation: HloComputation) -> None:
        """Takes in a computation that has no name in the text; it gives way to one that has its name."""
        self.module.add(computation)
        self.bodies[computation.name] = computation

    def _at_computation(self) -> bool:
        """Whether the text goes on with a computation rather than with a single instruction."""
        cursor = self.cursor
        if cursor.peek() in ("ENTRY", "{"):
            return True
        following = cursor.tokens[cursor.index + 1]
        if following == "{":
            return True
        if following != "(":
            return False
        start = cursor.index
        cursor.index += 1
        cursor.skip_balanced()
        is_signature = cursor.at("->") or cursor.at("{")
        cursor.index = start
        return is_signature

    def _read_computations(self) -> None:
        cursor = self.cursor
        last: HloComputation | None = None
        entry: HloComputation | None = None
        while not cursor.at(""):
            is_entry = cursor.at("ENTRY")
            if is_entry and entry is not None:
                raise cursor.error("there is already a computation marked ENTRY")
            cursor.index += is_entry
            last = self._read_computation()
            if is_entry:
                entry = last
        if last is None:
            raise cursor.error("the module has no computation")
        self.module.set_entry(entry if entry is not None else last)

    def _read_computation(self) -> HloComputation:
        cursor = self.cursor
        start = cursor.index
        name = "computation" if cursor.peek() in ("{", "(") else read_name(cursor, "the name of a computation")
        if name in self.computations:
            raise cursor.error_at(start, f"there is already a computation {name!r}")
        computation = HloComputation(name)
        declared = self._read_signature() if cursor.at("(") else None
        self._read_instructions(computation)
        if declared is not None and not declared.result.compatible(computation.root.shape):
            raise cursor.error_at(
                start,
                f"computation {name!r}: found result {declared.result.text()}, "
                f"its root has shape {computation.root.shape.text()}",
            )
        if cursor.at(",") and cursor.tokens[cursor.index + 1] == "execution_thread=":
            cursor.index += 2
            computation.execution_thread = cursor.string()
        self._make_room(name)
        self.module.add(computation)
        self.computations[name] = computation
        return computation

    def _make_room(self, name: str) -> None:
        """Renames a computation that has no name in the text if the name it got is taken now."""
        other = self.bodies.pop(name, None)
        if other is None:
            return
        self.module.remove(other)
        other.name = f"{name}.generated"
        self.module.add(other)
        self.bodies[other.name] = other

    def _read_signature(self) -> ProgramShape:
        """Consumes `(name: shape, ...) -> shape`."""
        cursor = self.cursor
        cursor.expect("(")
        parameters: list[Shape] = []
        for _ in separated(cursor, ")"):
            read_name(cursor, "the name of a parameter")
            cursor.expect(":")
            parameters.append(cursor.shape())
        cursor.expect("->")
        return ProgramShape(tuple(parameters), cursor.shape())

    def _read_instructions(self, computation: HloComputation) -> None:
        """Consumes `{ instructions }`."""
        cursor = self.cursor
        opening = cursor.index
        cursor.expect("{")
        scope = Scope(computation)
        root: HloInstruction | None = None
        last: HloInstruction | None = None
        while not cursor.accept("}"):
            start = cursor.index
            last, is_root = self.instructions.read(scope)
            if is_root:
                if root is not None:
                    raise cursor.error_at(start, "there is already an instruction marked ROOT in this computation")
                root = last
        if last is None:
            raise cursor.error_at(opening, "the computation has no instruction")
        computation.set_root(root if root is not None else last)
        self._check_parameters(computation, opening)

    def _check_parameters(self, computation: HloComputation, opening: int) -> None:
        numbers = [parameter.attrs.number for parameter in computation.parameters]
        if numbers != list(range(len(numbers))):
            raise self.cursor.error_at(
                opening, f"the parameters are numbered {numbers[:10]}, expected 0, 1, ... without gaps"
            )

    def _read_single_instruction(self, name: str | None) -> None:
        cursor = self.cursor
        computation = HloComputation("main")
        scope = Scope(computation, free_operands=True)
        is_named = cursor.tokens[cursor.index + 1] == "=" or cursor.at("ROOT") or cursor.peek().endswith("=")
        root = self.instructions.read(scope)[0] if is_named else self.instructions.read_operation(scope, "")
        _expect_end(cursor)
        computation.set_root(root)
        self._check_parameters(computation, 0)
        self.module.name = name or root.name
        self.module.add(computation, entry=True)

    def _check_header(self, header: Header) -> None:
        """Compares the entry's layout with the entry; one that says nothing new is dropped."""
        config, entry = self.module.config, self.module.entry_computation
        layout = config.entry_layout
        if layout is None:
            return
        signature = entry.program_shape
        index = header.seen["entry_computation_layout"]
        if len(layout.parameters) != len(signature.parameters):
            raise self.cursor.error_at(
                index,
                f"entry_computation_layout: found {len(layout.parameters)} parameters, "
                f"the entry computation has {len(signature.parameters)}",
            )
        pairs = [*zip(layout.parameters, signature.parameters, strict=True), (layout.result, signature.result)]
        for found, expected in pairs:
            if not found.compatible(expected):
                raise self.cursor.error_at(
                    index, f"entry_computation_layout: found {found.text()}, expected {expected.text()}"
                )
        if all(found.with_default_layout() == expected.with_default_layout() for found, expected in pairs):
            self.module.config = replace(config, entry_layout=None)
