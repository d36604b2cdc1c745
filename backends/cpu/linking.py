"""Finds or makes the machine code of a module, and links it with its constants.

The code's side record holds what a call needs, so that on a cache hit no pass runs and no IR is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from xlalite.backends.cpu.compiled_module import CompiledModule
from xlalite.backends.cpu.constant_pool import keep_alive, pooled, symbol_of
from xlalite.backends.cpu.emitted_module import EmittedModule
from xlalite.backends.cpu.host_calls import HostFailures, bind_host_calls
from xlalite.backends.cpu.native.jit import IrSource, JsonValue, LinkedModule, ObjectCode, compile_ir, link
from xlalite.backends.cpu.native.object_cache import default_cache
from xlalite.backends.cpu.native.thread_pool import runtime_imports
from xlalite.hlo.literal import Literal
from xlalite.hlo.module import HloModule
from xlalite.passes.buffers import ALIGNMENT_BYTES, BufferAssignment


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What a call needs to know about the code.

    Attributes:
        arena_bytes: Size of the scratch memory.
        donations: (input, output) pairs that share memory.
        has_loops: Whether the program has loops, so that its time does not follow from its arrays.
        code_bytes: Size of the object code.
        host_calls: HLO text of what the evaluator computes, by the name that the code calls.
    """

    arena_bytes: int
    donations: tuple[tuple[int, int], ...]
    has_loops: bool
    code_bytes: int
    host_calls: Mapping[str, str]

    @staticmethod
    def from_json(code: ObjectCode) -> CallRecord:
        """The record that `_source` put beside the code."""
        record: Any = code.record
        donations = tuple((source, target) for source, target in record["donations"])
        return CallRecord(record["arena_bytes"], donations, record["has_loops"], len(code.image), record["host_calls"])


@dataclass(frozen=True, slots=True)
class LinkedCode:
    """Machine code ready to be called.

    Attributes:
        module: The code.
        record: What a call needs to know.
        failures: Texts for the code's nonzero results.
    """

    module: LinkedModule
    record: CallRecord
    failures: HostFailures


def link_module(compiled: CompiledModule) -> LinkedCode:
    """The linked code of a module.

    Raises:
        PassError: A pass failed.
        CodegenError: No code could be made.
    """
    code = _object_code(compiled)
    constants = pooled(_constants(code, compiled))
    record = CallRecord.from_json(code)
    host_calls = bind_host_calls(record.host_calls)
    imports = dict(runtime_imports())
    imports |= {name: constant.address for name, constant in constants.items()}
    imports |= {name: call.address for name, call in host_calls.items()}
    linked = link([code], imports)
    keep_alive(linked, (*constants.values(), *host_calls.values()))
    return LinkedCode(linked, record, HostFailures(tuple(host_calls.values())))


def _object_code(compiled: CompiledModule) -> ObjectCode:
    """The code, out of the cache unless each step is to be seen."""
    if compiled.options.use_cache and compiled.dumper is None:
        return default_cache().get_or_compile_object(
            compiled.cache_key, lambda: _source(compiled), compiled.jit_options
        )
    with compiled.recording():
        code = compile_ir(_source(compiled), compiled.jit_options)
        compiled.dump_code(code.image)
    return code


def _source(compiled: CompiledModule) -> IrSource:
    emitted, assignment = compiled.emitted, compiled.assignment
    record: dict[str, JsonValue] = {
        "arena_bytes": _arena_bytes(emitted, assignment),
        "donations": [[donation.parameter, donation.output] for donation in assignment.donations],
        "has_loops": any(i.opcode == "while" for c in compiled.optimized.computations() for i in c.instructions),
        "host_calls": dict(emitted.host_calls),
        "constants": [symbol_of(literal) for literal in emitted.constants],
    }
    return IrSource(emitted.text, record)


def _arena_bytes(emitted: EmittedModule, assignment: BufferAssignment) -> int:
    """The arena and the kernels' scratch memory behind it."""
    if not emitted.scratch_bytes:
        return assignment.arena_bytes
    return -(-assignment.arena_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES + emitted.scratch_bytes


def _constants(code: ObjectCode, compiled: CompiledModule) -> list[Literal]:
    """The constants that the code names: those of the module as given, else those the passes made."""
    names: Any = code.record["constants"]
    wanted: set[str] = set(names)
    if not wanted:
        return []
    found = {symbol_of(literal): literal for literal in _large_literals(compiled.given)}
    if not wanted <= found.keys():
        found |= {symbol_of(literal): literal for literal in compiled.emitted.constants}
    return [found[name] for name in sorted(wanted)]


def _large_literals(module: HloModule) -> Iterator[Literal]:
    for computation in module.computations():
        for instruction in computation.instructions:
            if instruction.opcode == "constant" and instruction.shape.is_array:
                yield instruction.attrs.literal
