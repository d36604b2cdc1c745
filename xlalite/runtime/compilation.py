"""Makes machine code of one signature of a cluster, and keeps it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData, Tensor
from xlalite.framework.meaning.lowering import Argument, LoweredOperations, VariableArgument, lower_operations
from xlalite.framework.meaning.signatures import SignatureCache
from xlalite.hlo.garbage import few_collections
from xlalite.hlo.ir.module import HloModule, InputOutputAlias
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.runtime.options import RuntimeOptions

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


@dataclass(frozen=True, slots=True)
class CompiledCluster:
    """One signature of a cluster as machine code.

    Attributes:
        executable: The program: array inputs, then variables, in; outputs, then new values of variables, out.
        function: Its quickest callable.
        variables: Positions, among the cluster's variables, of those that have a parameter.
        updates: (number among the results, position of the variable) of each new value.
        donated: Positions of the variables whose memory the new value takes.
    """

    executable: Executable
    function: Callable[..., object]
    variables: tuple[int, ...]
    updates: tuple[tuple[int, int], ...]
    donated: tuple[int, ...]

    def clocked(self) -> CompiledCluster:
        """The same with code that takes the times of its kernels."""
        executable = self.executable.clocked()
        return replace(self, executable=executable, function=executable.function)


class CompilationCache(SignatureCache[CompiledCluster]):
    """Compiled signatures of all clusters of a session."""

    def __init__(self, limit_bytes: int | None = None) -> None:
        """An empty cache, perhaps with a limit for the bytes of code."""
        super().__init__(
            limit_bytes=limit_bytes or sys.maxsize,
            size_of=lambda each: each.executable.code_size_bytes,
            clocked=CompiledCluster.clocked,
        )
        self._background: ThreadPoolExecutor | None = None
        self._background_lock = threading.Lock()

    def run_in_background(self, compile_one: Callable[[], None]) -> None:
        """Runs what compiles something in a thread of the cache's own, one after another."""
        with self._background_lock:
            if self._background is None:
                from concurrent.futures import ThreadPoolExecutor  # seldom wanted, and slow to load

                self._background = ThreadPoolExecutor(1, "xlalite-compilation")
            self._background.submit(compile_one)

    def close(self) -> None:
        """Drops all entries and whatever waits to be made."""
        with self._background_lock:
            background, self._background = self._background, None
        if background is not None:
            background.shutdown(wait=False, cancel_futures=True)
        self.clear()

    def executables(self) -> tuple[Executable, ...]:
        """The compiled programs, in the order of their compilation."""
        return tuple(each.executable for each in self.made())


@few_collections
def compile_operations(
    name: str,
    operations: Sequence[Operation],
    arguments: Sequence[Argument],
    outputs: Sequence[Tensor],
    options: RuntimeOptions,
    reason: Decision,
    donated: Sequence[InputOutputAlias] = (),
) -> CompiledCluster:
    """The program of some operations; a variable's new value takes the memory of the old one where sizes allow it.

    Args:
        name: Name of the module.
        operations: In an order in which producers and control inputs come first.
        arguments: Array inputs, known values and variables, in any order.
        outputs: Tensors whose values are wanted.
        options: Which backend, and how.
        reason: Why it is compiled; the first of the program's decisions.
        donated: Outputs that take the memory of array inputs.

    Raises:
        UninitializedError: A variable is read that has no value.
        LoweringError: An operation cannot be expressed in HLO, or needs a value that is not known.
        InvalidArgumentError: The sizes do not fit together.
        CodegenError: The backend cannot make code of it.
    """
    lowered = lower_operations(operations, arguments, outputs, name)
    lowered.module.decisions.insert(0, reason)
    aliased = _alias_variables(lowered, donated)
    executable = compile_module(lowered.module, options)
    names = [argument.data.name for argument in arguments if isinstance(argument, VariableArgument)]
    updates = [names.index(update.data.name) for update in lowered.updates]
    return CompiledCluster(
        executable,
        executable.function,
        variables=tuple(names.index(p.data.name) for p in lowered.parameters if isinstance(p, VariableArgument)),
        updates=tuple(enumerate(updates, lowered.output_count)),
        donated=tuple(names.index(data.name) for data in aliased),
    )


def compile_module(module: HloModule, options: RuntimeOptions) -> Executable:
    """The program of a module, whose results may lie in the memory of arguments.

    Raises:
        CodegenError: The backend cannot make code of it.
    """
    compile_options = CompileOptions(
        num_threads=options.num_threads,
        optimize=options.optimize,
        donate_arguments=True,
        debug=options.debug,
        extra_passes=options.extra_passes,
    )
    return get_backend(options.backend).compile(module, compile_options)


def _alias_variables(lowered: LoweredOperations, donated: Sequence[InputOutputAlias]) -> list[HandleData]:
    """Says in the module which results take the memory of parameters; gives the variables they belong to."""
    shapes = lowered.module.entry_computation.program_shape
    aliases = [*donated]
    variables: list[HandleData] = []
    for update in lowered.updates:
        number = update.parameter_number
        if number is None or not shapes.parameters[number].compatible(shapes.result.subshape((update.output_index,))):
            continue
        aliases.append(InputOutputAlias((update.output_index,), number, (), "must-alias"))
        variables.append(update.data)
    lowered.module.update_config(input_output_alias=tuple(aliases))
    return variables
