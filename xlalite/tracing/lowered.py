"""What a function is compiled to for one kind of arguments, to look at."""

from __future__ import annotations

from xlalite.backends.base import Executable


class Lowered:
    """A function as a program; it is compiled already, for that is how it comes to its texts and figures."""

    def __init__(self, executable: Executable) -> None:
        """Shows an executable."""
        self._executable = executable

    def compile(self) -> Executable:
        """The program that runs: it takes the leaves of the arguments and gives those of the result."""
        return self._executable

    def as_text(self, stage: str = "hlo-before-optimizations") -> str:
        """The program at a stage, as HLO, LLVM IR or assembly; by default what was traced.

        Raises:
            ValueError: There is no such stage.
        """
        return self._executable.as_text(stage)

    def explain(self) -> str:
        """What the compiler decided, and why, a line each; the first one says why it was compiled."""
        return "\n".join(map(str, self._executable.decisions()))

    def __repr__(self) -> str:
        """The program's name and its shape."""
        return f"<lowered {self._executable.name}: {self._executable.program_shape}>"
