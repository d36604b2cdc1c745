"""From StableHLO, text or bytecode, to an HLO module: orders the functions, fills the header."""

from __future__ import annotations

from dataclasses import replace

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.module import HloModule, InputOutputAlias, ModuleConfig
from xlalite.hlo.ir.traversal import post_order
from xlalite.hlo.stablehlo.bytecode.reader import read_bytecode
from xlalite.hlo.stablehlo.lowering import FunctionTable, hlo_name, text_attributes
from xlalite.hlo.stablehlo.reading.lexer import MlirCursor
from xlalite.hlo.stablehlo.reading.locations import Locations
from xlalite.hlo.stablehlo.reading.reader import read_program
from xlalite.hlo.stablehlo.reading.recognition import is_bytecode
from xlalite.hlo.stablehlo.reading.syntax import Function, Program, Source
from xlalite.hlo.stablehlo.rules.control_rules import called_functions
from xlalite.hlo.stablehlo.rules.sharding_rules import MESHES_IN_HLO
from xlalite.hlo.stablehlo.rules.table import RULES
from xlalite.hlo.types.limits import DEFAULT_LIMITS, ParseLimits


def parse_stablehlo(text: str | bytes, name: str | None = None, *, limits: ParseLimits = DEFAULT_LIMITS) -> HloModule:
    """The HLO module that StableHLO means.

    Args:
        text: What `jax.jit(f).lower(x).as_text()` or an exported module prints; bytes are MLIR bytecode, by itself or
            in a file of `jax.export`, or else taken as UTF-8.
        name: Name of the module when the text gives none.
        limits: What the text may ask for.

    Raises:
        ParseError: It is no StableHLO, or has no counterpart in HLO; says where.
    """
    return module_of(*_read(text, limits), name)


def module_of(program: Program, source: Source, name: str | None = None) -> HloModule:
    """The HLO module that operations mean, as they were read from a source.

    Raises:
        ParseError: They have no counterpart in HLO; says where.
    """
    module = HloModule(hlo_name(program.name or name or "module", "module"), _counts(program))
    table = FunctionTable(module, source, RULES, Locations(program.locations))
    entry = _entry(program, source)
    for function in _callees_first(program, entry, source):
        computation = table.add(function, entry=function is entry)
    module.config = _config(entry, computation, module.config)
    return module


def _read(text: str | bytes, limits: ParseLimits) -> tuple[Program, Source]:
    if isinstance(text, bytes) and is_bytecode(text):
        return read_bytecode(text, limits)
    cursor = MlirCursor(text, limits)
    return read_program(cursor), cursor


def _entry(program: Program, source: Source) -> Function:
    functions = list(program.functions.values())
    entry = program.functions.get("main", functions[0] if len(functions) == 1 else None)
    if entry is None:
        raise source.error_at(functions[0].token, "there are several functions and none is @main")
    return entry


def _callees_first(program: Program, entry: Function, source: Source) -> tuple[Function, ...]:
    """The functions that the entry needs, each behind those that it calls."""
    return post_order(
        [entry],
        lambda function: _callees(program, function),
        lambda function: source.error_at(function.token, f"@{function.name} calls itself"),
    )


def _callees(program: Program, function: Function) -> list[Function]:
    names = dict.fromkeys(name for operation in function.body.walk() for name in called_functions(operation))
    return [program.functions[name] for name in names if name in program.functions]


def _counts(program: Program) -> ModuleConfig:
    """Numbers of devices and their meshes."""
    frontend = text_attributes(program.attributes)
    if program.meshes:
        meshes = ", ".join(f"{name} = {mesh}" for name, mesh in program.meshes.items())
        frontend = (*frontend, (MESHES_IN_HLO, f"{{{meshes}}}"))
    return ModuleConfig(
        replica_count=_count(program, "mhlo.num_replicas"),
        num_partitions=_count(program, "mhlo.num_partitions"),
        frontend_attributes=frontend,
    )


def _config(entry: Function, computation: HloComputation, counts: ModuleConfig) -> ModuleConfig:
    """Outputs in the memory of parameters, parameters whose memory is free."""
    aliases: list[InputOutputAlias] = []
    donors: list[tuple[int, tuple[int, ...]]] = []
    for number, argument in enumerate(entry.body.arguments):
        output = argument.attributes.get("tf.aliasing_output")
        if isinstance(output, int) and not isinstance(output, bool):
            index = (output,) if computation.root.shape.is_tuple else ()
            aliases.append(InputOutputAlias(index, number))
        if argument.attributes.get("jax.buffer_donor") is True:
            donors.append((number, ()))
    return replace(counts, input_output_alias=tuple(aliases), buffer_donors=tuple(donors))


def _count(program: Program, key: str) -> int:
    value = program.attributes.get(key, 1)
    return value if isinstance(value, int) and value > 0 else 1
