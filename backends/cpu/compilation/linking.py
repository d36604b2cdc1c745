"""Finds or makes the machine code of a module, and links it with its constants.

The code's side record holds what a call needs, and the constants that passes made lie beside it, so that on a cache hit
no pass runs and no IR is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from xlalite.backends.cpu.compilation.compiled_module import CompiledModule
from xlalite.backends.cpu.compilation.evaluator_calls import EvaluatorCall, bind_evaluator_calls
from xlalite.backends.cpu.emission.constant_pool import bytes_of, keep_alive, pooled, symbol_of
from xlalite.backends.cpu.emission.emitted_module import EmittedModule
from xlalite.backends.cpu.native.aligned_memory import ByteArray
from xlalite.backends.cpu.native.jit import LinkedModule, compile_ir, link
from xlalite.backends.cpu.native.object_cache import default_cache
from xlalite.backends.cpu.native.object_code import CodeSummary, IrSource, JsonValue, ObjectCode
from xlalite.backends.cpu.native.thread_pool import runtime_imports
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.literal import Literal
from xlalite.passes.memory.buffers import ALIGNMENT_BYTES, BufferAssignment

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What a call needs to know about the code.

    Attributes:
        arena_bytes: Size of the scratch memory.
        donations: (input, output) pairs that share memory.
        has_loops: Whether the program has loops, so that its time does not follow from its arrays.
        code_bytes: Size of the object code.
        evaluator_calls: HLO text of what the evaluator computes, by the name that the code calls.
        given_constants: Sizes of the constants that the code takes from the module as given, by name.
    """

    arena_bytes: int
    donations: tuple[tuple[int, int], ...]
    has_loops: bool
    code_bytes: int
    evaluator_calls: Mapping[str, str]
    given_constants: Mapping[str, int]

    @staticmethod
    def from_json(code: ObjectCode) -> CallRecord:
        """The record that `_source` put beside the code.

        Raises:
            KeyError: Something is missing.
            TypeError: Something is of another type.
            ValueError: A pair is none.
        """
        record: Any = code.record
        return CallRecord(
            _typed(record["arena_bytes"], int),
            tuple((_typed(source, int), _typed(target, int)) for source, target in record["donations"]),
            _typed(record["has_loops"], bool),
            len(code.image),
            {name: _typed(text, str) for name, text in _typed(record["evaluator_calls"], dict).items()},
            {name: _typed(size, int) for name, size in _typed(record["given_constants"], dict).items()},
        )


@dataclass(frozen=True, slots=True)
class LinkedCode:
    """Machine code ready to be called.

    Attributes:
        module: The code.
        record: What a call needs to know.
        failures: What the code's nonzero results mean, that of 1 first.
    """

    module: LinkedModule
    record: CallRecord
    failures: tuple[EvaluatorCall, ...]


def link_module(compiled: CompiledModule) -> LinkedCode:
    """The linked code of a module, out of the cache unless each step is to be seen.

    Raises:
        PassError: A pass failed.
        CodegenError: No code could be made.
    """
    if compiled.options.use_cache and compiled.dumper is None:
        return default_cache().use_or_compile(
            compiled.cache_key,
            lambda: _source(compiled),
            lambda code: _linked(code, compiled.given),
            compiled.jit_options,
        )
    with compiled.recording():
        code = compile_ir(_source(compiled), compiled.jit_options)
        compiled.dump_code(code.image)
    return _linked(code, compiled.given)


def _linked(code: ObjectCode, given: HloModule) -> LinkedCode:
    """The code in memory, with the constants and callbacks that it names."""
    record = CallRecord.from_json(code)
    constants = pooled({**code.constants, **_given_constants(record.given_constants, given)})
    evaluator_calls = bind_evaluator_calls(record.evaluator_calls)
    imports = dict(runtime_imports())
    imports |= {name: constant.address for name, constant in constants.items()}
    imports |= {name: call.address for name, call in evaluator_calls.items()}
    linked = link([code], imports)
    keep_alive(linked, (*constants.values(), *evaluator_calls.values()))
    return LinkedCode(linked, record, tuple(evaluator_calls.values()))


def _given_constants(sizes: Mapping[str, int], given: HloModule) -> dict[str, ByteArray]:
    """The bytes of constants that the module as given has, by name; only those of the right sizes are looked at.

    Raises:
        KeyError: It has not all of them.
    """
    found = {symbol_of(literal): literal for literal in _literals(given, frozenset(sizes.values()))}
    return {name: bytes_of(found[name]) for name in sizes}


def _source(compiled: CompiledModule) -> IrSource:
    """The code, with the constants that passes made; those of the module as given need not be kept twice."""
    emitted, assignment = compiled.emitted, compiled.assignment
    wanted = {symbol_of(literal): bytes_of(literal) for literal in emitted.constants}
    sizes = frozenset(data.size for data in wanted.values())
    given = {symbol_of(literal) for literal in _literals(compiled.given, sizes)}
    record: dict[str, JsonValue] = {
        "arena_bytes": _arena_bytes(emitted, assignment),
        "donations": [[donation.parameter, donation.output] for donation in assignment.donations],
        "has_loops": any(instruction.opcode == "while" for instruction in compiled.optimized.instructions()),
        "evaluator_calls": dict(emitted.evaluator_calls),
        "given_constants": {name: data.size for name, data in wanted.items() if name in given},
    }
    compiled.note_step("machine code")
    made = {name: data for name, data in wanted.items() if name not in given}
    return IrSource(emitted.text, record, made, CodeSummary(compiled.given.name, emitted.kernel_count))


def _arena_bytes(emitted: EmittedModule, assignment: BufferAssignment) -> int:
    """The arena and the kernels' scratch memory behind it."""
    if not emitted.scratch_bytes:
        return assignment.arena_bytes
    return -(-assignment.arena_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES + emitted.scratch_bytes


def _literals(module: HloModule, sizes: frozenset[int]) -> Iterator[Literal]:
    """The arrays among the module's constants that have one of these sizes."""
    if not sizes:
        return
    for instruction in module.instructions():
        if instruction.opcode == "constant" and instruction.shape.is_array:
            literal = instruction.attrs.literal
            if literal.value.nbytes in sizes:
                yield literal


def _typed(value: object, kind: type[_Kind]) -> _Kind:
    if not isinstance(value, kind):
        raise TypeError(f"found {type(value).__name__}, expected {kind.__name__}")
    return value
