"""The text of one LLVM module, and the builders of its functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

from xlalite.backends.codegen.llvm.control_flow import ControlFlow
from xlalite.backends.codegen.llvm.emitter import AS_WRITTEN, BRIEF
from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.memory import Memory
from xlalite.backends.codegen.llvm.module_symbols import ModuleSymbols
from xlalite.backends.codegen.llvm.substitutes import Substitutes
from xlalite.backends.codegen.llvm.target import TargetInfo
from xlalite.backends.codegen.llvm.types import VOID, Type
from xlalite.backends.codegen.llvm.value import Function, Value, escaped_bytes
from xlalite.hlo.digest import blake2b

_SYMBOL = re.compile(r'@(?:"[^"]*"|[\w.$-]+)')
_NUMBERED = re.compile(r"[!#]\d+")
_SHARED = "xlalite.shared"
_SHARED_TEXTS: dict[tuple[Hashable, str, TargetInfo, bool, bool], tuple[str, str]] = {}
"""Names and texts of shared functions that this process has written."""
_MOST_SHARED_TEXTS = 512
_FEWEST_LINES = 100
"""Of a module that is cut for several threads: some work is done for each piece."""
_LINES_WORTH_A_CALL = 30
"""Of an internal function: shorter ones stand in every piece that calls them."""
_LINES_WORTH_A_PIECE = 256
_FEW_BRIEF_LINES = 256
"""Of brief functions in one piece: a line of them is a quarter of the work of another."""
_MANY_PIECES = 32
_FEW_EARLY_PIECES = 16
"""A piece that is cut early has one part in so many of all lines so far."""
_LINES_WORTH_A_START = 16
"""Of the first piece that is cut early: a thread that has nothing to do yet begins with it."""


class FunctionBuilder(ControlFlow, Memory, Substitutes):
    """Writes one function of a module; made by `ModuleBuilder.function`, positioned in the entry block.

    Its methods are in `emitter` (blocks, phi, alloca), `control_flow`, `arithmetic`, `memory`, `intrinsics`,
    `substitutes` and `vectors`.

    Attributes:
        module: the module the function belongs to.
    """

    def __init__(self, module: ModuleBuilder, function: Function, header: str, contract: bool) -> None:
        """Starts in the entry block; `header` is the text before the opening brace."""
        super().__init__(module, function, header, contract)
        self.module: ModuleBuilder = module

    def apart(
        self,
        stem: str,
        held: Sequence[Value],
        emit: Callable[[FunctionBuilder, Sequence[Value]], Value | None],
        return_type: Type = VOID,
        key: Hashable = None,
    ) -> Value:
        """The result of a part of much code in a function of its own, which another thread may compile.

        Args:
            stem: Beginning of the function's name.
            held: What the part needs of this function; `emit` gets it as parameters.
            emit: Writes the part and gives its result.
            return_type: The type of the result.
            key: What the part is made from, besides its stem, if there are several of the same.
        """

        def define() -> Function:
            types = tuple(value.type for value in held)
            name = self.module.unique_name(stem)
            inner = self.module.function(name, return_type, types, linkage="internal", contract=self.contract)
            inner.ret(emit(inner, inner.parameters))
            return inner.function

        function = define() if key is None else self.module.define_once((stem, key, self.contract), define)
        return self.call(function, *held)


class ModuleBuilder(ModuleSymbols):
    """Collects the parts of a module and prints them with `text()`.

    Attributes:
        on_shared_text: is told each of the `shared_texts` when it is there, if there is one.
    """

    def __init__(
        self, name: str, target: TargetInfo | None = None, *, contract: bool = True, excess_precision: bool = False
    ) -> None:
        """An empty module, for this machine unless a target is given."""
        super().__init__(name, target, contract=contract, excess_precision=excess_precision)
        self.on_shared_text: Callable[[str], None] | None = None
        self._functions: list[FunctionBuilder] = []
        self._shared_texts: dict[str, str] = {}
        self._complete: dict[bool, list[FunctionBuilder]] = {True: [], False: []}
        self._early_lines = 0
        self._early: dict[FunctionBuilder, None] = {}
        self._early_texts: list[str] = []
        self._is_brief = False

    def function(
        self,
        name: str,
        return_type: Type,
        parameter_types: Sequence[Type] = (),
        *,
        parameter_attributes: Sequence[str] = (),
        attributes: Sequence[str] = ("nounwind",),
        linkage: str = "",
        contract: bool | None = None,
    ) -> FunctionBuilder:
        """Starts the definition of a function and returns its builder, positioned in the entry block.

        Args:
            name: symbol name; must be new in this module (see `unique_name`).
            return_type: VOID or any first-class type.
            parameter_types: the values are `builder.parameters`.
            parameter_attributes: one string per parameter (`"noalias readonly align 64"`), or none at all.
            attributes: function attributes (`'"key"="value"'`, `alwaysinline`, ...), shared as groups.
            linkage: `""` for external, `"internal"`, `"private"`, `"linkonce_odr"`, with a calling convention or
                visibility after it if wanted.
            contract: whether fadd, fsub and fmul carry `contract` by default; the module's default if None, but not in
                a brief function.
        """
        handle = self._register(name, return_type, tuple(parameter_types))
        if parameter_attributes and len(parameter_attributes) != len(handle.parameter_types):
            raise LLVMBuildError(
                f"function {name}: {len(parameter_attributes)} parameter attributes "
                f"for {len(handle.parameter_types)} parameters"
            )
        spelled = [
            f"{type_.text} {attribute + ' ' if attribute else ''}%{index}"
            for index, (type_, attribute) in enumerate(
                zip(handle.parameter_types, parameter_attributes or [""] * len(handle.parameter_types), strict=True)
            )
        ]
        header = f"define {linkage + ' ' if linkage else ''}{return_type.text} {handle.text}({', '.join(spelled)})"
        header += self.attribute_reference(attributes)
        if contract is None:
            contract = self.contract and not self._is_brief
        builder = FunctionBuilder(self, handle, header, contract)
        self._functions.append(builder)
        return builder

    def shared_function(
        self,
        key: Hashable,
        stem: str,
        return_type: Type,
        parameter_types: Sequence[Type],
        parameter_attributes: Sequence[str],
        build: Callable[[FunctionBuilder], None],
    ) -> Function:
        """A function that stands in a module of its own, the same in all programs that have it; see `shared_texts`.

        Args:
            key: What the function is made from; None if only its text says whether there is one already.
            stem: Beginning of its name; the rest is a digest of its text.
            return_type: VOID or any first-class type.
            parameter_types: Types of the parameters.
            parameter_attributes: One string for each parameter.
            build: Writes the body.
        """

        def written() -> tuple[str, str]:
            own = ModuleBuilder(_SHARED, self.target, contract=self.contract, excess_precision=self.excess_precision)
            fb = own.function(
                _SHARED,
                return_type,
                parameter_types,
                parameter_attributes=parameter_attributes,
                attributes=("nounwind", "noinline"),
                linkage="hidden",
            )
            build(fb)
            (text,) = own.texts(most_lines=1)
            name = f"{stem}.{blake2b(text.encode(), digest_size=8).hexdigest()}"
            return name, text.replace(fb.function.text, f'@"{name}"')

        def declared(name: str, text: str) -> Function:
            if self.on_shared_text is not None and name not in self._shared_texts:
                self.on_shared_text(text)
            self._shared_texts[name] = text
            return self.declare(name, return_type, parameter_types)

        if key is None:
            return declared(*written())

        def make() -> Function:
            whole = key, stem, self.target, self.contract, self.excess_precision
            found = _SHARED_TEXTS.get(whole)
            if found is None:
                if len(_SHARED_TEXTS) >= _MOST_SHARED_TEXTS:
                    _SHARED_TEXTS.clear()
                found = _SHARED_TEXTS[whole] = written()
            return declared(*found)

        return self.define_once(key, make)

    @property
    def shared_texts(self) -> tuple[str, ...]:
        """Modules to be linked with this one, each of one function that others may have, too."""
        return tuple(self._shared_texts.values())

    @property
    def function_count(self) -> int:
        """How many functions were begun."""
        return len(self._functions)

    @contextmanager
    def brief(self) -> Iterator[None]:
        """Functions that are begun inside have little to do.

        Whether LLVM improves them depends on what is compiled with them and by how many threads, and so would whether
        it makes one operation of a multiplication and an addition, which changes bits: in brief functions it may not.
        """
        first, self._is_brief = len(self._functions), True
        yield
        self._is_brief = False
        for function in self._functions[first:]:
            function.is_brief = not function.is_internal

    def cut(self, first: int, most_lines: int) -> list[str]:
        """Pieces of `texts` that are ready before all functions are written, callers behind callees; mostly none yet.

        Functions that are as written call no others of the module that are not.

        Args:
            first: Number of a function; this one and all that were begun later are complete, and call no others that
                are not.
            most_lines: A piece has hardly more.
        """
        complete = self._functions[first:]
        for function in complete:
            if function.line_count >= _LINES_WORTH_A_CALL:
                function.share()
        pieces: list[list[FunctionBuilder]] = []
        for function in _callees_first(complete) if len(complete) > 1 else complete:
            if function.is_brief or function.is_internal:
                continue
            waiting = self._complete[function.is_as_written]
            waiting.append(function)
            lines = sum(one.line_count for one in waiting)
            part = (lines + self._early_lines) // _FEW_EARLY_PIECES
            fewest = max(_LINES_WORTH_A_PIECE, 1 << part.bit_length()) if self._early_lines else _LINES_WORTH_A_START
            if lines >= min(most_lines, fewest):
                # What is not as written may call what is.
                ready = [self._complete[True]] if function.is_as_written else [*self._complete.values()]
                pieces += filter(None, map(list, ready))
                self._early_lines += sum(one.line_count for one in chain.from_iterable(ready))
                for each in ready:
                    each.clear()
        texts = self._piece_texts(pieces) if pieces else []
        for piece in pieces:
            self._early.update(dict.fromkeys(piece))
        self._early_texts += texts
        return texts

    def text(self) -> str:
        """The module as LLVM IR text."""
        bodies = [function.text() for function in self._functions]
        return self._module_text(self.name, bodies, (*self._globals, *self._declarations))

    def texts(self, most_lines: int, threads: int = 1) -> list[str]:
        """The module as one LLVM module, or as several of about so many lines each that are to be linked together.

        Constants and short internal functions stand in every piece that names them. Functions that LLVM's passes leave
        as they are, and others, are apart: those passes may choose which multiplications and additions become one
        operation, and what is compiled together depends on the threads. Brief functions are apart from both, but few
        calls beside one other piece are less work than a module.
        Where several threads are to have some of the others, pieces are shorter, and such as other modules may have,
        too: what everybody may call, as the entry, is apart, and where a piece ends depends on the functions around
        more than on all before.
        """
        pieces = self._pieces(most_lines, threads)
        brief = pieces[0] if [piece[0].is_brief for piece in pieces if piece] == [True, False] else []
        if brief and not self._early and sum(function.line_count for function in brief) < _FEWEST_LINES:
            del pieces[0]
        if len(pieces) == 1 and not self._early:
            return [_mark(pieces[0], self._functions) + self.text()]
        return [*self._piece_texts(pieces), *self._early_texts]

    def _pieces(self, most_lines: int, threads: int) -> list[list[FunctionBuilder]]:
        if threads > 1:
            line_count = sum(function.line_count for function in self._functions if not function.is_brief)
            most_lines = min(most_lines, _lines_of_piece(line_count, threads))
            for function in self._functions:
                if function.line_count >= _LINES_WORTH_A_CALL:
                    function.share()
        pieces: list[list[FunctionBuilder]] = [[]]
        ordered = sorted(self._functions, key=lambda function: (not function.is_brief, not function.is_as_written))
        most_brief_lines = max(most_lines, _FEW_BRIEF_LINES)
        room = most_brief_lines if ordered[0].is_brief else most_lines
        for function in ordered:
            if function.is_internal or function in self._early:
                continue
            last = pieces[-1][-1] if pieces[-1] else function
            ends_early = last.is_exported or (room < most_lines // 2 and last.line_count % 2)
            if last is not function and (
                room < function.line_count
                or last.is_brief is not function.is_brief
                or (last.is_as_written is not function.is_as_written and not function.is_brief)
                or (threads > 1 and ends_early and not function.is_brief)
            ):
                pieces.append([])
                room = most_brief_lines if function.is_brief else most_lines
            pieces[-1].append(function)
            room -= function.line_count
        return pieces

    def _piece_texts(self, pieces: Sequence[Sequence[FunctionBuilder]]) -> list[str]:
        builders = {builder.function.text: builder for builder in self._functions}
        outside = {_SYMBOL.findall(line)[0]: line for line in (*self._globals, *self._declarations)}
        return [self._piece_text(piece, builders, outside) for piece in pieces]

    def _piece_text(
        self, functions: Sequence[FunctionBuilder], builders: Mapping[str, FunctionBuilder], outside: Mapping[str, str]
    ) -> str:
        inside = dict.fromkeys(function.function.text for function in functions)
        bodies: list[str] = []
        named: dict[str, None] = {}
        waiting = list(reversed(inside))
        while waiting:
            bodies.append(builders[waiting.pop()].text())
            for name in _SYMBOL.findall(bodies[-1]):
                named[name] = None
                if name in builders and name not in inside and builders[name].is_internal:
                    inside[name] = None
                    waiting.append(name)
        needed = [outside[name] for name in named if name in outside]
        needed += [builders[name].declaration for name in named if name in builders and name not in inside]
        name = self.name if functions[0].is_exported else _SHARED
        return _mark(functions, functions) + self._module_text(name, bodies, needed)

    def _module_text(self, name: str, functions: Sequence[str], outside: Iterable[str]) -> str:
        """A module of functions, and of the lines that say what else they name."""
        parts = [f'source_filename = "{escaped_bytes(name.encode())}"']
        if self.target.data_layout:
            parts.append(f'target datalayout = "{self.target.data_layout}"')
        if self.target.triple:
            parts.append(f'target triple = "{self.target.triple}"')
        parts += ("", *outside)
        for function in functions:
            parts += ("", function)
        parts.append("")
        named = set(_NUMBERED.findall("\n".join(parts)))
        groups = {group: f"attributes {group} = {{ {content} }}" for content, group in self._attribute_groups.items()}
        nodes = {node: f"{node} = {content}" for content, node in self._metadata.items()}
        parts += (line for number, line in (*groups.items(), *nodes.items()) if number in named)
        return "\n".join(parts) + "\n"


def _lines_of_piece(line_count: int, threads: int) -> int:
    """Enough pieces for threads to share; of much code many, as far as the work for each is little beside its own."""
    fewest = min(line_count // (2 * threads), _LINES_WORTH_A_PIECE)
    return max(_FEWEST_LINES, fewest, 1 << (line_count // _MANY_PIECES).bit_length())


def _callees_first(functions: Sequence[FunctionBuilder]) -> list[FunctionBuilder]:
    named = {function.function.text: function for function in functions}
    order: dict[FunctionBuilder, None] = {}

    def visit(function: FunctionBuilder) -> None:
        for name in dict.fromkeys(_SYMBOL.findall(function.text())):
            callee = named.pop(name, None)
            if callee is not None:
                visit(callee)
        order[function] = None

    while named:
        visit(named.pop(next(iter(named))))
    return list(order)


def _mark(piece: Sequence[FunctionBuilder], functions: Iterable[FunctionBuilder]) -> str:
    """What stands at the head of a module: of a piece, with which all functions stand that are not in another one."""
    if piece and piece[0].is_brief:
        return BRIEF
    callable_ones = [function for function in functions if not function.is_internal]
    is_as_written = all(function.is_as_written or function.is_brief for function in callable_ones)
    return AS_WRITTEN if callable_ones and is_as_written else ""
