"""Executables: compiled from StableHLO bytecode, asked for what they are, kept and loaded again."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from xlalite.backends.base import get_backend
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.executable import CpuExecutable
from xlalite.backends.cpu.native.call.dispatch import native_call, run_address
from xlalite.backends.cpu.native.call.python_call import raise_status
from xlalite.backends.cpu.native.pjrt.abi import ARGUMENTS, ELEMENT_TYPES, ErrorCode
from xlalite.backends.cpu.native.pjrt.native import native
from xlalite.backends.cpu.native.pjrt.records import Loaded, OutputSpec
from xlalite.hlo.building.builder import Builder
from xlalite.hlo.errors import SerializationError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.custom import CustomCallAttrs
from xlalite.hlo.stablehlo.bytecode.reader import read_bytecode
from xlalite.hlo.stablehlo.importer import module_of
from xlalite.hlo.text import parse
from xlalite.hlo.types.limits import DEFAULT_LIMITS
from xlalite.interop.jax.answers import (
    Refusal,
    Text,
    clear_after,
    lasting_text,
    named_values,
    put_bytes,
    put_list,
    put_text,
)
from xlalite.interop.jax.callbacks import TARGET
from xlalite.interop.jax.entry import (
    layout_not_offered,
    memory_kinds,
    program_of_one_device,
    tokens_as_arrays,
)
from xlalite.interop.jax.manual_parts import expand_manual_parts
from xlalite.interop.jax.messages import ProgramOptions, module_with_config, read_options
from xlalite.interop.jax.platform import MEMORY_KINDS, platform, pointer_array
from xlalite.interop.jax.registry import function
from xlalite.interop.jax.shardings import Cut, entry_cuts, manual_cuts, put_shardings

_MLIR = b"mlir"
_OUTLINE = "xlalite_program"
# Taken; but for `ProgramOptions.compile_options` they are not obeyed: what they say is about XLA's own code.
_XLA_OPTIONS = ("xla_", "exec_time_optimization_effort", "memory_fitting_", "optimization_level")
_SAVED = b"xlalite program 2\n"


class LoadedProgram:
    """A compiled program and the record that stands for it in the C API.

    Attributes:
        options: What was asked of it.
        code: The program as it was given.
        executable: The compiled program.
        cuts: How arguments and results lie on the devices of a program that takes and gives whole arrays.
        is_mixed: Whether parts of such a program say what each device does: they all run it. Others run once.
        address: The record's address: the handle.
    """

    def __init__(self, code: bytes, options: ProgramOptions, raw_options: bytes, serialized: bytes = b"") -> None:
        """Compiles a program, unless the executable is there, serialized by this version on such a machine."""
        self.code, self.options, self.raw_options = code, options, raw_options
        self.cuts = _cuts(code, options)
        self.is_mixed = self.cuts is not None and _has_manual_parts(code)
        if self.cuts is not None:
            options = replace(options, donates=False)
        self.executable = executable = _loaded(code, options, serialized) or _compiled(code, options)
        self.name = executable.name
        self.call = native_call(executable.call)
        self.fingerprint = hashlib.blake2b(code + raw_options, digest_size=16).hexdigest()
        self.outputs = list(self.call.signature.outputs)
        if self.cuts is not None:
            self.outputs = [cut.part(shape) for cut, shape in zip(self.cuts[1], self.outputs, strict=True)]
        self.types = [ELEMENT_TYPES.index(shape.dtype.value) for shape in self.outputs]
        self.memory_kinds = _memory_kinds(code, len(self.outputs))
        self._kept: list[object] = []
        devices = [platform().devices[number] for number in options.device_numbers]
        self.device_list = pointer_array(devices)
        self.record = Loaded(
            call=self.call.record_address,
            num_inputs=len(self.call.signature.inputs),
            num_outputs=len(self.outputs),
            num_replicas=options.replica_count,
            num_partitions=options.num_partitions,
            specs=self._specs(),
            input_bytes=self._keep(_numbers([shape.size_bytes for shape in self.call.signature.inputs])),
            is_donated=self._donated(),
        )
        self.address = ctypes.addressof(self.record)

    @functools.cached_property
    def texts(self) -> tuple[Text, Text]:
        """Name and fingerprint as texts for C."""
        return ctypes.create_string_buffer(self.name.encode()), ctypes.create_string_buffer(self.fingerprint.encode())

    @functools.cached_property
    def output_kinds(self) -> tuple[ctypes.Array[Any], ctypes.Array[Any], ctypes.Array[Any]]:
        """Types of elements, kinds of memory and the lengths of their names, for each result."""
        kinds = [ctypes.addressof(lasting_text(kind)) for kind in self.memory_kinds]
        types = (ctypes.c_int32 * max(1, len(kinds)))(*self.types)
        return types, pointer_array(kinds), _numbers(list(map(len, self.memory_kinds)))

    @functools.cached_property
    def output_sizes(self) -> tuple[ctypes.Array[Any], ctypes.Array[Any]]:
        """Sizes of all results, one behind the other, and their ranks."""
        sizes = _numbers([size for shape in self.outputs for size in shape.dims])
        return sizes, _numbers([shape.rank for shape in self.outputs])

    @functools.cached_property
    def costs(self) -> ctypes.Array[Any]:
        """The work of a run as attributes."""
        return named_values({name: float(value) for name, value in self.executable.cost_analysis().items()})

    @functools.cached_property
    def outline(self) -> bytes:
        """The program as a single call, for those who want to know what it takes and gives."""
        module = HloModule(self.name)
        builder, shape = Builder("main", module), self.executable.program_shape
        parameters = [builder.parameter(each, f"p{i}") for i, each in enumerate(shape.parameters)]
        attrs = CustomCallAttrs(custom_call_target=_OUTLINE)
        builder.build(builder.op("custom-call", parameters, attrs, shape=shape.result), entry=True)
        return module_with_config(module)

    @functools.cached_property
    def optimized(self) -> bytes:
        """The optimised program, as jaxlib wants it."""
        module = parse(self.executable.as_text("optimized_hlo"))
        if self.options.num_partitions == 1:
            return module_with_config(module)
        cuts = self.cuts or manual_cuts(read_bytecode(self.code, DEFAULT_LIMITS)[0])
        return module_with_config(module, functools.partial(put_shardings, cuts) if cuts else None)

    def _keep(self, memory: ctypes.Array[Any]) -> int:
        """The address of memory that lives as long as the program."""
        self._kept.append(memory)
        return ctypes.addressof(memory)

    def _specs(self) -> int:
        sources = {target: source for source, target in self.call.signature.donations}
        specs = (OutputSpec * max(1, len(self.outputs)))()
        memories = platform().memories[self.options.device_numbers[0]]
        for number, (shape, kind) in enumerate(zip(self.outputs, self.types, strict=True)):
            dims, memory = self._keep(_numbers(shape.dims)), memories[self.memory_kinds[number]]
            specs[number] = OutputSpec(kind, sources.get(number, -1), shape.size_bytes, shape.rank, dims, memory)
        return self._keep(specs)

    def _donated(self) -> int | None:
        donations = self.call.signature.donations
        if not donations:
            return None
        flags = (ctypes.c_int32 * len(self.call.signature.inputs))()
        for source, _ in donations:
            flags[source] = 1
        return self._keep(flags)


def _compiled(code: bytes, options: ProgramOptions) -> CpuExecutable:
    executable = get_backend("cpu").compile(_module(code, options), options.compile_options)
    assert isinstance(executable, CpuExecutable)
    return executable


def _loaded(code: bytes, options: ProgramOptions, serialized: bytes) -> CpuExecutable | None:
    """The executable in the bytes, if there is one that runs here."""
    if not serialized:
        return None
    try:
        return CpuExecutable.loaded(
            serialized, lambda: CompileRequest.of(_module(code, options), options.compile_options)
        )
    except SerializationError:
        return None


def _module(code: bytes, options: ProgramOptions) -> HloModule:
    """The program of one device, with tokens of its signature as the arrays that jax passes for them."""
    program, source = read_bytecode(code, DEFAULT_LIMITS)
    wanted = layout_not_offered(program)
    if wanted:
        raise Refusal(
            ErrorCode.UNIMPLEMENTED,
            f"{program.name}: xlalite keeps arrays in row-major order, and this asks for {wanted}",
        )
    is_manual = program_of_one_device(program)
    is_mixed = not is_manual and _has_manual_parts(code)
    tokens_as_arrays(program)
    replicas, partitions = options.replica_count, options.num_partitions if is_manual or is_mixed else 1
    program.attributes["mhlo.num_partitions"] = partitions
    module = module_of(program, source)
    if not expand_manual_parts(module, program, partitions):
        wrong = f"{module.name}: how a part of the program for {partitions} devices is cut is not known to xlalite"
        raise Refusal(ErrorCode.UNIMPLEMENTED, wrong)
    module.config = replace(module.config, replica_count=replicas, num_partitions=partitions)
    return module


def _memory_kinds(code: bytes, count: int) -> list[str]:
    """In which memory each result of a program is to be; most programs name none, and are not read for that."""
    if b"mhlo.memory_kind" not in code:
        return [MEMORY_KINDS[0]] * count
    wanted = memory_kinds(read_bytecode(code, DEFAULT_LIMITS)[0], MEMORY_KINDS[0])
    unknown = [kind for kind in wanted if kind not in MEMORY_KINDS]
    if unknown:
        raise Refusal(ErrorCode.INVALID_ARGUMENT, f"there is no memory of the kind {unknown[0]!r}")
    return wanted


def _has_manual_parts(code: bytes) -> bool:
    """Whether operations in a program say what each device does; they may be all of it."""
    return b"manual_computation" in code


def _cuts(code: bytes, options: ProgramOptions) -> tuple[list[Cut], list[Cut]] | None:
    """How the arrays of a program are cut that does not say itself what each device does; None for others."""
    count = options.num_partitions
    if count == 1:
        return None
    program, _ = read_bytecode(code, DEFAULT_LIMITS)
    if program_of_one_device(program):
        return None
    wanted = f"{program.name}: of a program for {count} devices xlalite"
    if _has_manual_parts(code) and TARGET.encode() in code:
        wrong = "cannot call Python functions, unless jax.shard_map is a jitted function of its own"
        raise Refusal(ErrorCode.UNIMPLEMENTED, f"{wanted} {wrong}")
    cuts = None if options.replica_count > 1 else entry_cuts(program, count)
    if cuts is None:
        raise Refusal(ErrorCode.UNIMPLEMENTED, f"{wanted} does not know how its arguments or results are cut")
    return cuts


_programs: dict[int, LoadedProgram] = {}


def _load(code: bytes, raw_options: bytes, serialized: bytes = b"") -> int:
    """Compiles a program; frees those that jaxlib has destroyed meanwhile."""
    _sweep()
    options = read_options(raw_options)
    beyond = [number for number in options.device_numbers if not 0 <= number < len(platform().devices)]
    if beyond:
        raise Refusal(ErrorCode.INVALID_ARGUMENT, f"there is no device {beyond[0]}")
    unknown = [name for name in options.overrides if not name.startswith(_XLA_OPTIONS)]
    if unknown:
        raise Refusal(ErrorCode.INVALID_ARGUMENT, f"No such compile option: '{unknown[0]}'")
    program = LoadedProgram(code, options, raw_options, serialized)
    native().shared.run = run_address()
    _programs[program.address] = program
    return program.address


def _sweep() -> None:
    address = native().take_destroyed()
    while address:
        following = Loaded.from_address(address).next
        del _programs[address]
        address = following


def explain_failure(address: int, status: int) -> Refusal:
    """Why a run failed."""
    try:
        raise_status(_programs[address].call, status)
    except Exception as error:
        return Refusal(ErrorCode.INTERNAL, str(error))
    except BaseException as error:  # of a program's own Python function: the client could not pass it on
        return Refusal(ErrorCode.INTERNAL, f"{type(error).__name__}: {error}")
    return Refusal(ErrorCode.INTERNAL, f"the program gave status {status}")


def program_at(address: int) -> LoadedProgram:
    """The program behind a handle."""
    return _programs[address]


def _program(arguments: Any) -> LoadedProgram:
    return _programs[arguments.executable]


@function("Client_Compile")
def _compile(arguments: Any) -> None:
    program = ARGUMENTS["Program"].from_address(arguments.program)
    form = ctypes.string_at(program.format, program.format_size)
    if form != _MLIR:
        raise Refusal(ErrorCode.UNIMPLEMENTED, f"programs are taken as mlir, not as {form.decode('utf-8', 'replace')}")
    code = ctypes.string_at(program.code, program.code_size)
    arguments.executable = _load(code, ctypes.string_at(arguments.options, arguments.options_size))


@function("Executable_Serialize")
def _serialize(arguments: Any) -> None:
    program = _program(arguments)
    parts = (program.raw_options, program.code, program.executable.serialize())
    put_bytes(arguments, _SAVED + b"".join(len(part).to_bytes(8, "little") + part for part in parts))


@function("Executable_DeserializeAndLoad")
def _deserialize(arguments: Any) -> None:
    data = ctypes.string_at(arguments.bytes, arguments.size)
    parts, at = list[bytes](), len(_SAVED)
    while at < len(data):
        end = at + 8 + int.from_bytes(data[at : at + 8], "little")
        parts.append(data[at + 8 : end])
        at = end
    if not data.startswith(_SAVED) or at != len(data) or len(parts) != 3:
        raise Refusal(ErrorCode.INVALID_ARGUMENT, "these bytes are no program that xlalite has serialized")
    options, code, serialized = parts
    given = ctypes.string_at(arguments.options, arguments.options_size) if arguments.options_size else options
    arguments.executable = _load(code, given, serialized if _is_for(options, given) else b"")


def _is_for(saved: bytes, given: bytes) -> bool:
    """Whether code compiled with some options does for others: they may name other devices, but as many."""
    ours, theirs = read_options(saved), read_options(given)
    return all(
        getattr(ours, name) == getattr(theirs, name) for name in ("replica_count", "num_partitions", "compile_options")
    )


@function("LoadedExecutable_GetExecutable")
def _same(arguments: Any) -> None:
    arguments.executable = arguments.loaded


@function("LoadedExecutable_AddressableDevices")
def _devices(arguments: Any) -> None:
    program = _program(arguments)
    put_list(arguments, program.device_list, 0, len(program.options.device_numbers))


@function("LoadedExecutable_GetDeviceAssignment")
def _assignment(arguments: Any) -> None:
    put_bytes(arguments, _program(arguments).options.assignment())


@function("Executable_Name")
def _name(arguments: Any) -> None:
    put_text(arguments, _program(arguments).texts[0])


@function("Executable_Fingerprint", "LoadedExecutable_Fingerprint")
def _fingerprint(arguments: Any) -> None:
    put_text(arguments, _program(arguments).texts[1])


@function("Executable_SizeOfGeneratedCodeInBytes")
def _code_size(arguments: Any) -> None:
    arguments.number = _program(arguments).executable.code_size_bytes


@function("Executable_OutputMemoryKinds")
def _output_memory_kinds(arguments: Any) -> None:
    program = _program(arguments)
    _, kinds, lengths = program.output_kinds
    arguments.num_outputs = len(program.outputs)
    arguments.kinds, arguments.kind_sizes = ctypes.addressof(kinds), ctypes.addressof(lengths)


@function("Executable_OutputElementTypes")
def _element_types(arguments: Any) -> None:
    program = _program(arguments)
    arguments.types, arguments.num_types = ctypes.addressof(program.output_kinds[0]), len(program.outputs)


@function("Executable_OutputDimensions")
def _dimensions(arguments: Any) -> None:
    program = _program(arguments)
    sizes, ranks = program.output_sizes
    arguments.num_outputs = len(program.outputs)
    arguments.dims, arguments.ranks = ctypes.addressof(sizes), ctypes.addressof(ranks)


@function("Executable_OptimizedProgram")
def _optimized(arguments: Any) -> None:
    loaded = _program(arguments)
    is_alone = len(loaded.options.device_numbers) == 1
    data = loaded.outline if is_alone and _is_asked_for_layouts() else loaded.optimized
    program = ARGUMENTS["Program"].from_address(arguments.program)
    put_format = lasting_text("hlo_with_config")
    program.format, program.format_size = ctypes.addressof(put_format), len(put_format) - 1
    if program.code:
        ctypes.memmove(program.code, data, len(data))
    else:
        program.code_size = len(data)


def _is_asked_for_layouts() -> bool:
    """Whether jaxlib compiles and wants to know layouts and shardings, as 0.10 does four times for each program.

    It asks on a thread of its own, or for a function of jax. Whoever wants to see the program calls from elsewhere; its
    passes run again for that, which would make compilations a third longer, and those from the cache four times.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("xlalite."):
        frame = frame.f_back
    return frame is None or frame.f_code.co_name == "_get_layouts_from_executable"


@function("Executable_GetCompiledMemoryStats")
def _memory(arguments: Any) -> None:
    analysis = _program(arguments).executable.memory_analysis()
    clear_after(arguments, "executable")
    arguments.code, arguments.temp = analysis.generated_code_size_bytes, analysis.temp_size_bytes
    arguments.argument, arguments.output = analysis.argument_size_bytes, analysis.output_size_bytes
    arguments.alias, arguments.peak = analysis.alias_size_bytes, analysis.peak_bytes


@function("Executable_GetCostAnalysis")
def _cost(arguments: Any) -> None:
    costs = _program(arguments).costs
    arguments.attributes, arguments.num_attributes = ctypes.addressof(costs), len(costs)


def _numbers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(values)))(*values)
