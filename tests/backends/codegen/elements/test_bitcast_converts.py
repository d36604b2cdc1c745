"""Elements become others of another width: parts of wider ones, or wide ones out of parts, bit by bit."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.numerics.bits import reinterpreted_dims
from xlalite.hlo.types.dtype import DType

TYPES = [dtype for dtype in DType if dtype.is_array and dtype is not DType.PRED]


def widths(source: DType) -> list[DType]:
    """The types whose elements are parts of the source's, or have such parts."""
    return [
        target
        for target in TYPES
        if target.is_complex == source.is_complex
        and target.bits != source.bits
        and max(target.bits, source.bits) % min(target.bits, source.bits) == 0
    ]


def numbers(rng: np.random.Generator, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    """Any bits that are no NaN, whose bits a register of another type need not keep."""
    if dtype.bits < 8:
        low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
        found = rng.integers(low, low + (1 << dtype.bits), dims, np.int8)
        return found.view(dtype.numpy) if dtype.is_floating else found.astype(dtype.numpy)
    octets = rng.integers(0, 256, (*dims, dtype.size_bytes), np.uint8)
    found = octets.view(dtype.numpy).reshape(dims)
    if not dtype.is_integral:
        with np.errstate(invalid="ignore"):
            found[np.isnan(found.astype(np.complex128 if dtype.is_complex else np.float64))] = 0
    return found


def array(dtype: DType, dims: tuple[int, ...] | None) -> str:
    assert dims is not None
    return f"{dtype.value}[{','.join(map(str, dims))}]"


def program(source: DType, target: DType, dims: tuple[int, ...], lines: str = "") -> str:
    operand, result = array(source, dims), array(target, reinterpreted_dims(dims, source, target))
    return f"""HloModule m
ENTRY e {{
  p = {operand} parameter(0)
  {lines or "ROOT r = $R bitcast-convert(p)"} }}""".replace("$R", result).replace("$P", operand)


@pytest.mark.parametrize("source", TYPES, ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("size", [1, 33])
def test_all_pairs_of_widths(check: Any, kernels: Any, rng: np.random.Generator, source: DType, size: int) -> None:
    lines, arguments, results = [], [], []
    for number, target in enumerate(widths(source)):
        dims = (size,) if target.bits < source.bits else (size, target.bits // source.bits)
        result = array(target, reinterpreted_dims(dims, source, target))
        lines.append(f"p{number} = {array(source, dims)} parameter({number})")
        lines.append(f"r{number} = {result} bitcast-convert(p{number})")
        arguments.append(numbers(rng, source, dims))
        results.append(f"r{number}")
    text = "\n".join((*lines, f"ROOT t = tuple({', '.join(results)})"))
    executable = check(f"HloModule m\nENTRY e {{ {text} }}", *arguments, optimize=False)
    assert kernels(executable) == ["loop"] * len(results)


@pytest.mark.parametrize("dims", [(), (0,), (3, 0), (1,), (2, 17, 5), (3, 1, 64)])
def test_parts_of_arrays_of_any_rank(check: Any, rng: np.random.Generator, dims: tuple[int, ...]) -> None:
    check(program(DType.F32, DType.U8, dims), numbers(rng, DType.F32, dims))
    check(program(DType.U8, DType.F32, (*dims, 4)), numbers(rng, DType.U8, (*dims, 4)))


def test_parts_that_are_rearranged_share_the_kernel(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """The order of the octets in numbers of a file that was written the other way around."""
    lines = "x = $R bitcast-convert(p)\n  y = $R reverse(x), dimensions={1}\n  n = $P bitcast-convert(y)\n"
    lines += "  ROOT r = $P negate(n)"
    executable = check(program(DType.S32, DType.U8, (37,), lines), numbers(rng, DType.S32, (37,)))
    assert kernels(executable) == ["loop"]


def test_what_is_expensive_is_computed_once_for_all_its_parts(
    check: Any, kernels: Any, rng: np.random.Generator
) -> None:
    lines = "x = $P tanh(p)\n  ROOT r = $R bitcast-convert(x)"
    executable = check(program(DType.F64, DType.U64, (300,), lines.replace("$R", "u16[300,4]")), np.ones(300))
    assert kernels(executable) == ["loop", "loop"]


def test_many_joins_in_a_row_do_not_share_one_kernel(check: Any, rng: np.random.Generator) -> None:
    """Each reads its operand at several indices, and so on: code would grow with the product."""
    lines, name = "", "p"
    for number in range(6):
        lines += f"a{number} = u64[8,4] negate({name})\n  b{number} = u16[8,4,4] bitcast-convert(a{number})\n"
        lines += f"  c{number} = u16[8,4,4] transpose(b{number}), dimensions={{0,2,1}}\n"
        lines += f"  d{number} = u64[8,4] bitcast-convert(c{number})\n  "
        name = f"d{number}"
    text = program(DType.U64, DType.U16, (8, 4), f"{lines}ROOT r = u64[8,4] negate({name})")
    executable = check(text, numbers(rng, DType.U64, (8, 4)))
    assert len(executable.as_text("llvm")) < 300_000
