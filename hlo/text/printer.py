"""Writes modules as HLO text in XLA's spelling and order."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import callers, canonical_order
from xlalite.hlo.text.async_text import wrapped_instruction
from xlalite.hlo.text.header_text import format_header
from xlalite.hlo.text.instruction_printer import InstructionPrinter
from xlalite.hlo.text.print_options import PrintOptions, preset_options
from xlalite.hlo.types.quoting import quote
from xlalite.hlo.types.shape import ProgramShape


def print_module(module: HloModule, preset: str | PrintOptions = "default") -> str:
    """The module as HLO text: callees first, the entry last.

    Args:
        module: What to write.
        preset: `default`, `lossless`, `short_parsable`, `canonical` or `fingerprint`, or options of one's own.

    Raises:
        ValueError: There is no such preset.
    """
    options = preset_options(preset)
    printer = _Printer(options)
    config = module.config
    header = format_header(module.name if options.ids else "", config, _entry_layout(module))
    computations = _written_computations(module) if options.short_async else module.computations()
    texts = [printer.computation(computation, scheduled=config.is_scheduled) for computation in computations]
    if not options.ids:
        last = texts.pop()
        texts.sort()
        texts.append(last)
    tables = module.tables + "\n\n\n" if module.tables and options.metadata else ""
    return f"{header}\n\n{tables}" + "\n\n".join(texts) + "\n\n"


def print_computation(computation: HloComputation, preset: str | PrintOptions = "default") -> str:
    """The computation as HLO text, its name included.

    Raises:
        ValueError: There is no such preset.
    """
    module = computation.module
    scheduled = module is not None and module.config.is_scheduled
    return _Printer(preset_options(preset)).computation(computation, scheduled=scheduled)


def print_instruction(instruction: HloInstruction, preset: str | PrintOptions = "default") -> str:
    """The instruction as one line of HLO text, without `ROOT`.

    Raises:
        ValueError: There is no such preset.
    """
    return _Printer(preset_options(preset)).instructions.line(instruction, {}, 0, is_root=False)


class _Printer:
    """Writes computations with one set of options."""

    __slots__ = ("instructions", "options")

    def __init__(self, options: PrintOptions) -> None:
        self.options = options
        self.instructions = InstructionPrinter(options, self._body)

    def computation(self, computation: HloComputation, *, scheduled: bool) -> str:
        """A computation with its name and signature."""
        words = ["ENTRY"] if computation.is_entry else []
        if self.options.ids:
            words.append(self.instructions.written_name(computation.name))
        if self.options.program_shape:
            words.append(_signature(computation))
        thread = f", execution_thread={quote(computation.execution_thread)}" if computation.execution_thread else ""
        head = " ".join(words) + " {" if words else "{"
        order = computation.instructions if scheduled else self._order(computation)
        return f"{head}\n{self._lines(computation, order, 0)}\n}}{thread}"

    def _order(self, computation: HloComputation) -> tuple[HloInstruction, ...]:
        return canonical_order(computation) if self.options.canonical_names else computation.post_order()

    def _body(self, computation: HloComputation, depth: int) -> str:
        """A computation that stands in the place of its name."""
        indent = "  " * (depth + 1)
        thread = (
            f", execution_thread={quote(computation.execution_thread)}"
            if computation.execution_thread and self.options.ids
            else ""
        )
        lines = self._lines(computation, self._order(computation), depth + 1)
        return f"{indent}{{\n{lines}\n{indent}}}{thread}"

    def _lines(self, computation: HloComputation, order: tuple[HloInstruction, ...], depth: int) -> str:
        indent = "  " * (depth + 1)
        if self.options.canonical_names:
            names = {instruction: f"tmp_{i}" for i, instruction in enumerate(order)}
        else:
            names = {instruction: self.instructions.name_of(instruction) for instruction in order}
        root = computation.root
        line = self.instructions.line
        return "\n".join(indent + line(instruction, names, depth, is_root=instruction is root) for instruction in order)


def _written_computations(module: HloModule) -> Sequence[HloComputation]:
    """All computations but those that the short spelling of asynchronous operations makes superfluous."""
    return [
        computation
        for computation, calls in callers(module).items()
        if not calls or any(wrapped_instruction(call) is None for call in calls)
    ]


def _signature(computation: HloComputation) -> str:
    parameters = ", ".join(f"{parameter.name}: {parameter.shape.text()}" for parameter in computation.parameters)
    return f"({parameters}) -> {computation.root.shape.text()}"


def _entry_layout(module: HloModule) -> ProgramShape:
    return module.config.entry_layout or module.entry_computation.program_shape
