"""Executables as bytes, in the form of a cache entry: code, constants and signature, loaded without a pass or LLVM.

The code fits processors that know its instructions, and this version of xlalite, whose runtime it calls.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from xlalite.backends.cpu.compilation.code_record import CodeRecord
from xlalite.backends.cpu.compilation.interface import Interface
from xlalite.backends.cpu.compilation.linking import LinkedCode, link_code
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.emission.constant_pool import find_constants
from xlalite.backends.cpu.native.cache_file import read_entry, write_entry
from xlalite.backends.cpu.native.code_version import code_version
from xlalite.backends.cpu.native.fork_lock import no_fork
from xlalite.backends.cpu.native.jit_options import processor
from xlalite.backends.cpu.native.object_code import ObjectCode
from xlalite.backends.cpu.native.threads import resolve_num_threads
from xlalite.hlo.errors import CacheError, SerializationError, XlaliteError
from xlalite.hlo.spelling.cursor import TokenCursor
from xlalite.hlo.types.shape import ProgramShape, Shape

_KEY = "executable"
_MAX_ARENA_BYTES = 1 << 46


def self_contained(code: ObjectCode, request: CompileRequest) -> ObjectCode:
    """The code of a module with all that is needed to load it elsewhere, without the module."""
    record = CodeRecord.from_json(code.record)
    constants = {**code.constants, **find_constants(record.given_constants, request.given)}
    side_record: dict[str, Any] = {
        "code": asdict(replace(record, given_constants={})),
        "interface": _interface_record(Interface.of(request)),
        "version": code_version(),
        "system": sys.platform,
        "processor": processor(),
        "features": _features(request.jit_options.max_isa),
    }
    return replace(code, record=side_record, constants=constants)


def to_bytes(code: ObjectCode) -> bytes:
    """Self-contained code as bytes."""
    file = io.BytesIO()
    write_entry(file, _KEY, code)
    return file.getvalue()


def from_bytes(data: bytes) -> tuple[ObjectCode, Interface, LinkedCode]:
    """Self-contained code, how it is called, and itself in memory.

    Raises:
        SerializationError: The bytes are no executable, or one that cannot run here.
    """
    try:
        code = read_entry(io.BytesIO(data), len(data), _KEY)
    except CacheError as error:
        raise SerializationError(f"loading an executable: these bytes are none that xlalite wrote: {error}") from error
    record = code.record
    if record.get("version") != code_version():
        raise SerializationError(
            "loading an executable: another version of xlalite, NumPy or ml_dtypes made it; compile it anew"
        )
    try:
        _check_machine(record)
        interface = _interface(_mapping(record["interface"]))
        needs = CodeRecord.from_json(_mapping(record["code"]))
        if not 0 <= needs.arena_bytes < _MAX_ARENA_BYTES:
            raise ValueError(f"it wants {needs.arena_bytes} bytes of memory")
        if any(number < 0 for donation in needs.donations for number in donation):
            raise ValueError(f"it donates {needs.donations}")
        return code, interface, link_code(replace(code, record=asdict(needs)), None)
    except SerializationError:
        raise
    except (XlaliteError, LookupError, TypeError, ValueError) as error:
        raise SerializationError(f"loading an executable: its description is wrong: {error}") from error


def _check_machine(record: Mapping[str, Any]) -> None:
    """Asks whether this processor knows the instructions; not LLVM, if it is the one that the code was made on."""
    if record["system"] == sys.platform and record["processor"] == processor():
        return
    wanted: Sequence[str] = record["features"]
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        raise TypeError("a list of features is expected")
    missing = sorted({*wanted, *([] if record["system"] == sys.platform else [str(record["system"])])} - {*_features()})
    if missing:
        raise SerializationError(
            f"loading an executable: it was compiled for another processor, this one lacks {', '.join(missing)}; "
            "--xla_cpu_max_isa compiles for older ones"
        )


def _features(max_isa: str = "") -> list[str]:
    """What this machine can do, by LLVM's names, its kind of processor among them."""
    with no_fork:
        from xlalite.backends.codegen.llvm import TargetInfo

    target = TargetInfo.host(max_isa)
    return [target.triple.partition("-")[0], *target.features]


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"found {type(value).__name__}, expected a record")
    return value


def _interface_record(interface: Interface) -> dict[str, Any]:
    return {
        "name": interface.name,
        "parameters": [*map(str, interface.shape.parameters)],
        "result": str(interface.shape.result),
        "num_threads": interface.num_threads,
        "replica_count": interface.replica_count,
        "num_partitions": interface.num_partitions,
    }


def _interface(data: Mapping[str, Any]) -> Interface:
    name, parameters, counts = data["name"], data["parameters"], (data["replica_count"], data["num_partitions"])
    if not isinstance(name, str) or not isinstance(parameters, list):
        raise TypeError("a name and a list of shapes are expected")
    if not all(type(count) is int and count > 0 for count in counts):
        raise ValueError(f"there cannot be {counts[0]} replicas and {counts[1]} partitions")
    if data["num_threads"] is None:
        raise ValueError("the number of threads is missing")
    shape = ProgramShape(tuple(map(_read_shape, parameters)), _read_shape(data["result"]))
    return Interface(name, shape, resolve_num_threads(data["num_threads"]), *counts)


def _read_shape(text: object) -> Shape:
    if not isinstance(text, str):
        raise TypeError(f"a shape is expected, found {type(text).__name__}")
    cursor = TokenCursor(text)
    shape = cursor.shape()
    if cursor.peek():
        raise ValueError(f"a shape is expected, found {text!r}")
    return shape
