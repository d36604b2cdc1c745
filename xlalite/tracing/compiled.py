"""One program of a jit function, and how its results become what the function returns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from xlalite.backends.base import Executable
from xlalite.framework.meaning.host import Array
from xlalite.framework.structure import LEAF, rebuilder
from xlalite.hlo.records import dataclass
from xlalite.tracing.donation import Donation, writing


@dataclass(frozen=True, slots=True)
class Compiled:
    """One signature of a function.

    Attributes:
        executable: Its program: the leaves of the arguments in, those of the result out.
        donation: What lies in the memory of arguments.
        assemble: The result's structure, given its leaves.
        function: Its quickest callable.
    """

    executable: Executable
    donation: Donation
    assemble: Callable[[Sequence[Any]], Any]
    function: Callable[..., Any]

    @staticmethod
    def of(executable: Executable, donation: Donation, assemble: Callable[[Sequence[Any]], Any]) -> Compiled:
        """The record of a program."""
        return Compiled(executable, donation, assemble, writing(executable.function, donation))

    def clocked(self) -> Compiled:
        """The same with clocks."""
        return Compiled.of(self.executable.clocked(), self.donation, self.assemble)


def assembler(structure: Hashable) -> Callable[[Sequence[Array]], Any]:
    """What makes a result of this structure of its leaves."""
    if structure == LEAF:
        return lambda values: _as_result(values[0])
    build = rebuilder(structure)
    return lambda values: build([_as_result(value) for value in values])


def _as_result(value: Array) -> Any:
    return value if value.shape else value[()]
