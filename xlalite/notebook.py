"""Magics of notebooks: `%load_ext xlalite`, then `%%hlo`, `%xlalite_explain` and `%xlalite_dump`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xlalite.backends.base import Executable
from xlalite.client.compilation import compile
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify


def load_ipython_extension(shell: Any) -> None:
    """Adds the magics to a shell of IPython; `%load_ext xlalite` calls it."""

    def hlo(line: str, cell: str) -> HloModule:
        """`%%hlo [NAME]`: the module in the cell, which is HLO or StableHLO text; a NAME keeps it as a variable."""
        module = parse(cell)
        verify(module)
        if line.strip():
            shell.user_ns[line.strip()] = module
        return module

    def xlalite_explain(line: str) -> None:
        """`%xlalite_explain PROGRAM [INSTRUCTION]`: what was decided about a module or an executable, and why."""
        name, _, instruction = line.strip().partition(" ")
        print(explanation(shell.user_ns, name, instruction.strip()))

    def xlalite_dump(line: str) -> Page:
        """`%xlalite_dump PROGRAM`: the page about the compilation of a module or an executable."""
        return Page(executable_of(shell.user_ns, line.strip()).report())

    shell.register_magic_function(xlalite_dump, "line", "xlalite_dump")
    shell.register_magic_function(hlo, "cell", "hlo")
    shell.register_magic_function(xlalite_explain, "line", "xlalite_explain")


class Page(str):
    """A page for a browser, which notebooks show in a frame."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from html import escape

        return f'<iframe srcdoc="{escape(self)}" style="width:100%;height:40em;border:0"></iframe>'


def executable_of(variables: Mapping[str, Any], name: str) -> Executable:
    """The program that a variable holds, compiled if it was not.

    Raises:
        XlaliteError: The variable holds none.
    """
    program = variables.get(name)
    if isinstance(program, HloModule):
        program = compile(program)
    if not isinstance(program, Executable):
        raise XlaliteError(f"{name!r} is no variable that holds a module or an executable")
    return program


def explanation(variables: Mapping[str, Any], name: str, instruction: str = "") -> str:
    """The decisions about a program that a variable holds, one a line.

    Raises:
        XlaliteError: The variable holds none.
    """
    program = executable_of(variables, name)
    wanted = instruction.removeprefix("%")
    decisions = [str(one) for one in program.decisions() if not wanted or wanted in one.subject]
    return "\n".join(decisions) or "nothing was decided about it"
