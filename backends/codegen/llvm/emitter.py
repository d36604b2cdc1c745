"""The lowest layer of a function builder: lines of text, fresh SSA numbers, blocks and the checks of operands."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.module_symbols import ModuleSymbols
from xlalite.backends.codegen.llvm.types import I32, PTR, Type
from xlalite.backends.codegen.llvm.value import Function, Operand, Value, constant

AS_WRITTEN = "; Every function is as passes over IR leave it.\n"
"""Stands in the text of modules on which such passes would be wasted."""

BRIEF = "; Every function is brief.\n"
"""Stands in the text of modules whose code takes longer to improve than that ever gains."""


class Block:
    """A basic block. Its instructions are written in one go, after `position_at(block)`."""

    __slots__ = ("firsts", "found", "is_terminated", "label", "start", "steps")

    def __init__(self, label: str) -> None:
        """A block not yet written."""
        self.label = label
        self.start = -1
        self.is_terminated = False
        self.found: dict[str, Value] = {}
        self.firsts: dict[Hashable, dict[str, tuple[Value, int]]] = {}
        self.steps: dict[Hashable, dict[int, Value]] = {}

    def __repr__(self) -> str:
        return f"label %{self.label}"


class Phi(Value):
    """A phi node; incoming values may be added until the function is printed."""

    __slots__ = ("incoming",)

    def __init__(self, type_: Type, text: str) -> None:
        """A phi without incoming values."""
        super().__init__(type_, text)
        self.incoming: list[tuple[Value, Block]] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        """Adds the value that the phi takes when control comes from `block`."""
        if value.type is not self.type:
            raise LLVMBuildError(f"phi: incoming {value!r} for a phi of {self.type}")
        self.incoming.append((value, block))

    def line(self) -> str:
        """The instruction."""
        pairs = ", ".join(f"[ {value.text}, %{block.label} ]" for value, block in self.incoming)
        return f"  {self.text} = phi {self.type.text} {pairs}"


class LoopScope:
    """A loop that is being written: where lines go that come before it, and what they compute.

    Attributes:
        first: Number of the first value inside.
        lines: Lines before the loop.
        found: The values of the lines, by text.
    """

    __slots__ = ("first", "found", "lines")

    def __init__(self, first: int) -> None:
        """Nothing comes before the loop yet."""
        self.first = first
        self.lines: list[str] = []
        self.found: dict[str, Value] = {}


class Emitter:
    """Writes the lines of one function.

    SSA values are plain numbers, which LLVM parses fastest; LLVM wants them to rise in text order, hence a block is
    written in one go and blocks appear in the order they are positioned at.

    Attributes:
        module: what all functions of the module share.
        function: the function's handle, to call it or take its address.
        parameters: the function's parameters.
        block: the block being written.
        origins: values that others were made of, by whatever their maker finds them with again.
        is_brief: whether the function has little to do, but for what it calls, and LLVM would gain nothing by
            optimising it.
        is_as_written: whether LLVM's passes over IR would find nothing to improve in the function.
        has_loops: whether a loop was written.
        is_strength_reduced: whether LLVM may see how places move in all loops; worth its time where there are more
            places than registers, or where loops inside of loops have few iterations.
    """

    def __init__(self, module: ModuleSymbols, function: Function, header: str, contract: bool) -> None:
        """Starts in the entry block; `header` is the text before the opening brace."""
        self.module = module
        self.function = function
        self.contract = contract
        self._header = header
        self.parameters = tuple(Value(type_, f"%{i}") for i, type_ in enumerate(function.parameter_types))
        self._next = len(self.parameters)
        self._lines: list[str] = []
        self._append = self._lines.append
        self._phis: list[tuple[int, Phi]] = []
        self._entry_lines: list[str] = []
        self._slots = 0
        self._labels: dict[str, int] = {}
        self._pending_blocks: list[Block] = []
        self._scopes: list[LoopScope] = []
        self._lines_before_loops: list[tuple[int, list[str]]] = []
        self._born: dict[str, int] = {}
        # The default flags of fadd, fsub and fmul, with the blank in front.
        self._contract_flags = " contract" if contract else ""
        self.origins: dict[Hashable, Value] = {}
        self.is_brief = False
        self.is_as_written = False
        self.has_loops = False
        self.is_strength_reduced = False
        self.block = Block("entry")
        self.block.start = 0
        self._labels["entry"] = 1
        self._phi_end = 0

    # Blocks

    def new_block(self, stem: str = "block") -> Block:
        """A new block, to be written after `position_at`; its label is the stem, numbered when needed."""
        count = self._labels.get(stem, 0)
        self._labels[stem] = count + 1
        block = Block(f"{stem}.{count}" if count else stem)
        self._pending_blocks.append(block)
        return block

    def position_at(self, block: Block) -> None:
        """Starts writing a block; the one before must have its terminator, and a block is written only once."""
        if block.start >= 0:
            raise LLVMBuildError(f"position_at: block {block.label} was written before; blocks are written in one go")
        if not self.block.is_terminated:
            raise LLVMBuildError(f"position_at: block {self.block.label} has no terminator yet")
        self._lines.append(f"{block.label}:")
        block.start = self._phi_end = len(self._lines)
        self.block = block
        self._append = self._lines.append

    @property
    def is_terminated(self) -> bool:
        """Whether the block being written has its terminator already."""
        return self.block.is_terminated

    def phi(self, type_: Type, incoming: Sequence[tuple[Value, Block]] = ()) -> Phi:
        """A phi node at the start of the current block."""
        if len(self._lines) != self._phi_end or self.block.is_terminated:
            raise LLVMBuildError(f"phi: block {self.block.label} has other instructions already")
        result = Phi(type_, self._fresh())
        self._phis.append((len(self._lines), result))
        self._lines.append("")
        self._phi_end += 1
        for value, block in incoming:
            result.add_incoming(value, block)
        return result

    def alloca(self, type_: Type, count: int = 1, *, align: int = 0) -> Value:
        """A pointer to stack memory for `count` values, allocated in the entry block wherever this is called."""
        text = f"%slot{self._slots}"
        self._slots += 1
        number = f", i64 {count}" if count != 1 else ""
        aligned = f", align {align}" if align else ""
        self._entry_lines.append(f"  {text} = alloca {type_.text}{number}{aligned}")
        return Value(PTR, text)

    def stack_array(self, type_: Type, count: Value) -> Value:
        """A pointer to stack memory for a number of values known at run time; each call takes some more."""
        return self._emit(PTR, f"alloca {type_.text}, {count!r}")

    def held(self, type_: Type, table: Value, number: int) -> Value:
        """An entry of a parameter that points to some, loaded in the entry block wherever this is called."""
        text = f"%held{self._slots}"
        self._slots += 1
        self._entry_lines.append(f"  {text}.at = getelementptr inbounds {type_.text}, ptr {table.text}, i64 {number}")
        self._entry_lines.append(f"  {text} = load {type_.text}, ptr {text}.at, align 8")
        return Value(type_, text)

    @contextmanager
    def contraction(self, allowed: bool) -> Iterator[None]:
        """Switches the default `contract` flag of fadd, fsub and fmul inside a `with` block."""
        before = self._contract_flags
        self._contract_flags = " contract" if allowed else ""
        yield
        self._contract_flags = before

    def born(self, value: Value) -> int:
        """The number of the last value that one depends on by its place; -1 for what is there from the beginning."""
        text = value.text
        if text[0] != "%":
            return -1
        return int(text[1:]) if text[1].isdigit() else self._born.get(text, -1)

    @property
    def innermost(self) -> int:
        """The number of the first value inside the loop being written; 0 outside of loops."""
        return self._scopes[-1].first if self._scopes else 0

    def placed(self, type_: Type, text: str, *operands: Value) -> Value:
        """The value of an instruction that cannot fail and touches no memory, before the loops it does not change in.

        An instruction written twice is there once, if the first one is before a loop or in the same block. What is
        before the loop being written dominates it, for the loop has one entrance.
        """
        last = max(map(self.born, operands), default=-1) if self._scopes else 0
        for scope in self._scopes:
            if last < scope.first:
                found = scope.found.get(text)
                if found is None:
                    found = scope.found[text] = Value(type_, f"%before{len(self._born)}")
                    self._born[found.text] = scope.first - 1
                    scope.lines.append(f"  {found.text} = {text}")
                return found
        known = self.block.found
        found = known.get(text)
        if found is None:
            found = known[text] = self._emit(type_, text)
        return found

    # Constants

    def constant(self, type_: Type, number: int | float) -> Value:
        """A constant of a type; every lane of a vector type holds it."""
        return constant(type_, number)

    def int32(self, number: int) -> Value:
        """An i32 constant."""
        return constant(I32, number)

    # Text

    def only_calls(self) -> None:
        """Says that LLVM should not optimise the function: it calls what takes long, and does nothing else.

        A function that computes with vectors must not say so: among others, LLVM 22 aborts on some of their constants.
        """
        self.is_brief = self.is_strength_reduced = True  # which would be an optimisation
        self._header += self.module.attribute_reference(("noinline", "optnone"))

    def text(self) -> str:
        """The function's text."""
        if not self.block.is_terminated:
            raise LLVMBuildError(f"function {self.function.name}: block {self.block.label} has no terminator")
        unwritten = [block.label for block in self._pending_blocks if block.start < 0]
        if unwritten:
            raise LLVMBuildError(f"function {self.function.name}: blocks never written: {', '.join(unwritten)}")
        for index, phi in self._phis:
            self._lines[index] = phi.line()
        for index, lines in self._lines_before_loops:
            self._lines[index] = "\n".join(lines)
        body = "\n".join((*self._entry_lines, *filter(None, self._lines)))
        return f"{self._header} {{\nentry:\n{body}\n}}"

    @property
    def is_internal(self) -> bool:
        """Whether no other module can call the function."""
        return self._header.startswith("define internal ")

    @property
    def is_exported(self) -> bool:
        """Whether it is for others than the modules that this one is linked with."""
        return not self._header.startswith(("define internal ", "define hidden "))

    def share(self) -> None:
        """Lets the modules that this one is linked with call the function."""
        self._header = self._header.replace("define internal ", "define hidden ", 1)

    @property
    def declaration(self) -> str:
        """The line by which another module knows the function."""
        types = ", ".join(type_.text for type_ in self.function.parameter_types)
        return f"declare {self.function.return_type.text} {self.function.text}({types})"

    @property
    def line_count(self) -> int:
        """Lines written so far."""
        return len(self._entry_lines) + len(self._lines)

    # For the layers above

    def comment(self, text: str) -> None:
        """A comment line, to read dumps by."""
        for line in text.splitlines():
            self._lines.append(f"  ; {line}")
        if self._phi_end == self.block.start:
            self._phi_end = len(self._lines)

    def _open_scope(self) -> None:
        """Lines may be written here, before the loop that comes next, until it is closed."""
        scope = LoopScope(self._next)
        self._scopes.append(scope)
        self._lines_before_loops.append((len(self._lines), scope.lines))
        self._append("")

    def _close_scope(self) -> None:
        self._scopes.pop()

    def _fresh(self) -> str:
        number = self._next
        self._next = number + 1
        return f"%{number}"

    def _emit(self, type_: Type, text: str) -> Value:
        """Appends `%n = text`."""
        number = self._next
        self._next = number + 1
        name = f"%{number}"
        self._append(f"  {name} = {text}")
        return Value(type_, name)

    def _terminate(self, text: str) -> None:
        self._append(text)
        self.block.is_terminated = True
        self._append = self._refuse_after_terminator

    def _refuse_after_terminator(self, text: str) -> NoReturn:
        raise LLVMBuildError(f"block {self.block.label} has its terminator already; cannot add:{text}")

    def _mismatch(self, what: str, *operands: Operand) -> NoReturn:
        raise LLVMBuildError(f"{what}: operand types do not fit: {', '.join(map(repr, operands))}")
