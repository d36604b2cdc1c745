"""Object code for any instruction set calls nothing but xlalite's own functions and the C library's memory moves.

In particular it calls no function of libm, which would work lane by lane and, without FMA, take long over each.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from xlalite.backends.base import CompileOptions
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.compilation.stages import OBJECT, run_to
from xlalite.backends.cpu.native.object_code import ObjectCode
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import CPU_ISAS, DebugOptions

MEMORY_MOVES = {"memcpy", "memmove", "memset"}

pytestmark = pytest.mark.skipif(
    not TargetInfo.host().triple.startswith("x86_64-unknown-linux"), reason="instruction sets of x86-64, ELF files"
)


def symbols_of(elf: bytes) -> Iterator[tuple[str, bool]]:
    """Names in an object file of 64 bits, and whether it defines them."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    (count,) = struct.unpack_from("<H", elf, 60)
    sections = [struct.unpack_from("<IIQQQQII", elf, table + 64 * number) for number in range(count)]
    for _, kind, _, _, start, size, names, _ in sections:
        if kind != 2:
            continue
        for at in range(start, start + size, 24):
            name, _, _, section = struct.unpack_from("<IBBH", elf, at)
            if name:
                begin = sections[names][4] + name
                yield elf[begin : elf.index(b"\0", begin)].decode(), section != 0


def foreign_symbols(text: str, isa: str) -> list[str]:
    """What the object code of a program refers to that is neither xlalite's nor a memory move."""
    options = CompileOptions(num_threads=1, debug=DebugOptions(cpu_max_isa=isa))
    _, image = run_to(OBJECT, CompileRequest.of(parse(text), options))
    assert isinstance(image, bytes)
    found = [each for elf in ObjectCode(image, ()).images for each in symbols_of(elf)]
    known = {name for name, is_defined in found if is_defined} | MEMORY_MOVES
    return sorted({name for name, _ in found if not name.startswith("xlalite_")} - known)


def require_own_symbols(records: Sequence[tuple[Any, DType]], isa: str) -> None:
    for record, dtype in records:
        text = record.text(dtype)
        assert foreign_symbols(text, isa) == [], text


def test_object_files_name_what_they_call() -> None:
    text = 'HloModule m\nENTRY e { x = f32[3] parameter(0)\n ROOT r = f32[3] custom-call(x), custom_call_target="f" }'
    _, image = run_to(OBJECT, CompileRequest.of(parse(text), CompileOptions(num_threads=1)))
    assert isinstance(image, bytes)
    assert any(name.startswith("xlalite_evaluate") and not is_defined for name, is_defined in symbols_of(image))


def test_elementwise_records_call_no_library(op_cases: tuple[Any, ...]) -> None:
    elementwise = [record for record in op_cases if "$T[5,13]" in record.hlo_text]
    types = (DType.F16, DType.F32, DType.F64)
    require_own_symbols([(record, t) for record in elementwise for t in types if t in record.dtypes][::2], "SSE2")


@pytest.mark.slow
@pytest.mark.parametrize("isa", CPU_ISAS)
def test_records_call_no_library(op_cases: tuple[Any, ...], isa: str) -> None:
    require_own_symbols([(record, dtype) for record in op_cases if record.is_local for dtype in record.dtypes], isa)
