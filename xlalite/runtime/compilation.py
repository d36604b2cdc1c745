"""Makes machine code of one signature of a cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData, Tensor
from xlalite.framework.meaning.lowering import Argument, LoweredOperations, VariableArgument, lower_operations
from xlalite.hlo.ir.module import InputOutputAlias
from xlalite.hlo.types.decision import Decision
from xlalite.runtime.compilation_cache import CompiledCluster
from xlalite.runtime.options import RuntimeOptions


def compile_operations(
    name: str,
    operations: Sequence[Operation],
    arguments: Sequence[Argument],
    outputs: Sequence[Tensor],
    options: RuntimeOptions,
    reason: Decision,
) -> CompiledCluster:
    """The program of some operations; a variable's new value takes the memory of the old one where sizes allow it.

    Args:
        name: Name of the module.
        operations: In an order in which producers and control inputs come first.
        arguments: Array inputs, known values and variables, in any order.
        outputs: Tensors whose values are wanted.
        options: Which backend, and how.
        reason: Why it is compiled; the first of the program's decisions.

    Raises:
        UninitializedError: A variable is read that has no value.
        LoweringError: An operation cannot be expressed in HLO, or needs a value that is not known.
        InvalidArgumentError: The sizes do not fit together.
        CodegenError: The backend cannot make code of it.
    """
    backend = get_backend(options.backend)
    start = time.perf_counter()
    lowered = lower_operations(operations, arguments, outputs, name)
    lowered.module.decisions.insert(0, reason)
    aliased = _alias_variables(lowered)
    compile_options = CompileOptions(num_threads=options.num_threads, donate_arguments=True, debug=options.debug)
    executable = backend.compile(lowered.module, compile_options)
    names = [argument.data.name for argument in arguments if isinstance(argument, VariableArgument)]
    compiled = CompiledCluster(
        executable,
        variables=tuple(names.index(p.data.name) for p in lowered.parameters if isinstance(p, VariableArgument)),
        updates=tuple(names.index(update.data.name) for update in lowered.updates),
        donated=tuple(names.index(data.name) for data in aliased),
        output_count=lowered.output_count,
    )
    compiled.compile_seconds = time.perf_counter() - start
    return compiled


def _alias_variables(lowered: LoweredOperations) -> list[HandleData]:
    """Says in the module which results take the memory of parameters; gives the variables they belong to."""
    shapes = lowered.module.entry_computation.program_shape
    aliases: list[InputOutputAlias] = []
    variables: list[HandleData] = []
    for update in lowered.updates:
        number = update.parameter_number
        if number is None or not shapes.parameters[number].compatible(shapes.result.subshape((update.output_index,))):
            continue
        aliases.append(InputOutputAlias((update.output_index,), number, (), "must-alias"))
        variables.append(update.data)
    lowered.module.update_config(input_output_alias=tuple(aliases))
    return variables
