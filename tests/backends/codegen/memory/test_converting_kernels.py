"""Conversions between all pairs of element types: values of one width go in, values of another come out."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.types.dtype import DType, Kind

TYPES = [dtype for dtype in DType if dtype.kind is not Kind.NOT_ARRAY]
PAIRS = [(a, b) for a, b in itertools.permutations(TYPES, 2) if b.is_complex or not a.is_complex]

WIDTHS = {
    *(DType.PRED, DType.S4, DType.S8, DType.U16, DType.S32, DType.U64),
    *(DType.F8E4M3FN, DType.F16, DType.BF16, DType.F32, DType.F64, DType.C64),
}
WITHOUT_NAN = (DType.F4E2M1FN, DType.F6E2M3FN, DType.F6E3M2FN)

ONE_LEFT = 65
"""One element beyond full vectors, of any width."""
SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 47, 63, 64, 66, 127, 129)


def convert(source: DType, target: DType, size: int) -> str:
    return (
        f"HloModule convert\nENTRY e {{\n  x = {source.value}[{size}] parameter(0)\n"
        f"  ROOT r = {target.value}[{size}] convert(x)\n}}\n"
    )


@pytest.fixture(scope="module")
def converting(make_kernel: Any) -> Callable[[DType, DType, int], Any]:
    """The kernel of a conversion; what becomes of NaN in a type that has none is nobody's promise."""

    def make(source: DType, target: DType, size: int) -> Any:
        return make_kernel(convert(source, target, size), nan=target not in WITHOUT_NAN)

    return make


def test_conversions_stay_in_their_arrays(run_guarded: Any, converting: Any, isa: str) -> None:
    """Pairs of one type of each kind and width, all of them where vectors are widest."""
    pairs = [pair for pair in PAIRS if set(pair) <= WIDTHS]
    if isa != "AVX512":
        pairs = pairs[::5]
    run_guarded([converting(*pair, ONE_LEFT) for pair in pairs], isa=isa)
    run_guarded([converting(*pair, SIZES[n % len(SIZES)]) for n, pair in enumerate(pairs[::4])], isa=isa)


@pytest.mark.slow
@pytest.mark.parametrize("source", TYPES, ids=lambda dtype: dtype.value)
def test_conversions_of_many_sizes_stay_in_their_arrays(
    run_guarded: Any, converting: Any, isa: str, source: DType
) -> None:
    """Sizes up to three vectors and one, around full ones and with some beyond; narrower vectors meet every third."""
    for number, (other, target) in enumerate(PAIRS):
        if other is source and (isa == "AVX512" or number % 3 == 0):
            widest = max(representation(dtype).register.bits for dtype in (source, target))
            lanes = TargetInfo.host(isa).lanes(max(widest, 8))
            near = {vectors * lanes + left for vectors in range(4) for left in (-1, 0, 1, 2, 3, lanes // 2)}
            sizes = [size for size in sorted(near) if 0 <= size <= 3 * lanes + 1]
            run_guarded([converting(source, target, size) for size in sizes], isa=isa)
