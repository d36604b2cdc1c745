"""Products with groups or scales become products: same values, for every kind of group and every arrangement."""

import itertools
from typing import Any

import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.dot import DotAttrs
from xlalite.hlo.ops.special_dots import RaggedDotAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.normalization.ragged_dot_expander import RaggedDotExpander
from xlalite.passes.normalization.scaled_dot_expander import ScaledDotExpander


def program(opcode: str, attrs: Any, arrays: tuple[np.ndarray, ...], dtype: DType | None = None) -> HloModule:
    builder = Builder("m")
    operands = [builder.parameter(Shape.array(DType.from_numpy(x.dtype), x.shape)) for x in arrays]
    result = builder.op(opcode, operands, attrs)
    if dtype is not None:
        builder = Builder("m")
        operands = [builder.parameter(Shape.array(DType.from_numpy(x.dtype), x.shape)) for x in arrays]
        result = builder.op(opcode, operands, attrs, shape=result.shape.with_dtype(dtype))
    return builder.build_module(result)


def require_same_values(module: HloModule, run: Any, arrays: tuple[np.ndarray, ...], tolerance: float) -> None:
    (expected,), (found,) = leaves(evaluate(module, *arrays)), leaves(run(*arrays))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def check(module: HloModule, compile_text: Any, arrays: tuple[np.ndarray, ...], tolerance: float) -> None:
    executable = compile_text(module)
    assert not [d for d in executable.decisions() if d.verdict == "evaluated"]
    require_same_values(module, executable, arrays, tolerance)


ROWS = RaggedDotAttrs((), (1,), (), (1,), (), (0,), (0,))
TERMS = RaggedDotAttrs((), (1,), (), (0,), (), (1,), ())
SIZES = (
    [40, 0, 60, 11], [0, 0, 0, 0], [111, 0, 0, 0], [0, 0, 0, 111], [1, 1, 1, 1], [500, 3, 4, 5], [-7, 20, -1, 200],
)  # fmt: skip
"""Too few, too many, and negative ones, which count as zero."""


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "s32"])
def test_groups_of_rows_and_of_terms(compile_text: Any, rng: np.random.Generator, dtype: str, sizes: list[int]) -> None:
    def numbers(*dims: int) -> np.ndarray:
        return rng.integers(-3, 4, dims).astype(DType(dtype).numpy)

    groups = np.array(sizes, np.int32)
    rows = (numbers(111, 9), numbers(4, 9, 7), groups)
    check(program("ragged-dot", ROWS, rows), compile_text, rows, 0)
    terms = (numbers(6, 111), numbers(111, 7), groups)
    check(program("ragged-dot", TERMS, terms), compile_text, terms, 0)


def test_what_no_group_holds_is_not_touched(compile_text: Any, rng: np.random.Generator) -> None:
    lhs, rhs = rng.standard_normal((30, 5)), rng.standard_normal((3, 5, 4))
    lhs[10], rhs[1] = np.nan, np.inf
    arrays = (lhs, rhs, np.array([9, 0, 12]))
    check(program("ragged-dot", ROWS, arrays), compile_text, arrays, 1e-12)
    arrays = (lhs.T.copy(), rng.standard_normal((30, 6)), np.array([9, 0, 12]))
    check(program("ragged-dot", TERMS, arrays), compile_text, arrays, 1e-12)


@pytest.mark.parametrize("own", [False, True])
def test_every_arrangement_of_rows(compile_text: Any, rng: np.random.Generator, own: bool) -> None:
    """Batch b, outer f, ragged m, inner i, contracting k; groups for all, or for each b and f."""
    lengths = {"b": 2, "f": 2, "m": 9, "i": 3, "k": 4, "g": 3, "n": 5}
    for left, right in itertools.islice(
        zip(itertools.permutations("bfmik"), itertools.permutations("gbkn"), strict=False), 0, 24, 5
    ):
        free = [label for label in left if label in "fmi"]
        outer = [lengths[label] for label in ("b", *free[: free.index("m")])]
        attrs = RaggedDotAttrs(
            (left.index("b"),), (left.index("k"),), (right.index("b"),), (right.index("k"),), (),
            (left.index("m"),), (right.index("g"),),
        )  # fmt: skip
        arrays = (
            rng.standard_normal([lengths[label] for label in left]),
            rng.standard_normal([lengths[label] for label in right]),
            rng.integers(0, 5, (*outer, 3) if own else 3),
        )
        check(program("ragged-dot", attrs, arrays), compile_text, arrays, 1e-12)


@pytest.mark.parametrize("own", [False, True])
def test_every_arrangement_of_terms(compile_text: Any, rng: np.random.Generator, own: bool) -> None:
    """Batch b, contracting o, k and p, of which k is ragged."""
    lengths = {"b": 2, "o": 2, "k": 9, "p": 3, "m": 2, "n": 5}
    for left, right, summed in (("bokpm", "bokpn", "okp"), ("mpkob", "nbkop", "pko"), ("kbmop", "opnbk", "kop")):
        outer = [lengths[label] for label in ("b", *summed[: summed.index("k")])]
        attrs = RaggedDotAttrs(
            (left.index("b"),), tuple(map(left.index, summed)), (right.index("b"),), tuple(map(right.index, summed)),
            (), (left.index("k"),), (),
        )  # fmt: skip
        arrays = (
            rng.standard_normal([lengths[label] for label in left]),
            rng.standard_normal([lengths[label] for label in right]),
            rng.integers(0, 5, (*outer, 3) if own else 3),
        )
        check(program("ragged-dot", attrs, arrays), compile_text, arrays, 1e-12)


def test_groups_of_a_batch_are_a_dot(rng: np.random.Generator) -> None:
    arrays = (rng.standard_normal((5, 2, 3)), rng.standard_normal((5, 3, 4)), np.array([2, 3]))
    module = program("ragged-dot", RaggedDotAttrs((0,), (2,), (0,), (1,), (), (0,), ()), arrays)
    assert RaggedDotExpander().run(module)
    assert module.entry_computation.root.opcode == "dot"


@pytest.mark.parametrize("dims", [((0, 5), (3, 5, 4), 3), ((6, 0), (3, 0, 4), 3), ((6, 5), (0, 5, 4), 0)])
def test_nothing_to_multiply(compile_text: Any, dims: tuple[Any, ...]) -> None:
    arrays = (np.ones(dims[0]), np.ones(dims[1]), np.ones(dims[2], np.int64))
    check(program("ragged-dot", ROWS, arrays), compile_text, arrays, 0)


@pytest.mark.parametrize("dtype", ["u64", "s8", "u2"])
def test_types_of_sizes(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    sizes = np.array([2, 1, 3]).astype(DType(dtype).numpy)
    arrays = (rng.standard_normal((300, 5)), rng.standard_normal((3, 5, 4)), sizes)
    check(program("ragged-dot", ROWS, arrays), compile_text, arrays, 1e-12)
    if dtype == "u64":
        arrays = (*arrays[:2], np.array([7, 2**64 - 1, 3], np.uint64))
        check(program("ragged-dot", ROWS, arrays), compile_text, arrays, 1e-12)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_a_bit(compile_text: Any, rng: np.random.Generator, threads: int) -> None:
    arrays = (
        rng.standard_normal((300, 64), np.float32),
        rng.standard_normal((4, 64, 96), np.float32),
        np.array([100, 50, 0, 120], np.int32),
    )
    module = program("ragged-dot", ROWS, arrays)
    one, other = (compile_text(module, num_threads=count)(*arrays) for count in (1, threads))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("operand", "scale", "result"),
    [("f8e4m3fn", "f8e8m0fnu", "f32"), ("bf16", "bf16", "bf16"), ("f32", "f32", "f32"), ("f16", "f64", "f64")],
)
def test_blocks_have_scales(compile_text: Any, rng: np.random.Generator, operand: str, scale: str, result: str) -> None:
    def numbers(dtype: str, *dims: int) -> np.ndarray:
        return np.exp2(rng.integers(-3, 4, dims)).astype(DType(dtype).numpy)

    arrays = (numbers(operand, 6, 16), numbers(operand, 16, 5), numbers(scale, 3, 4), numbers(scale, 8, 1))
    for scales in (arrays[2:], (arrays[2], np.asarray(arrays[3][0, 0]))):
        chosen = (*arrays[:2], *scales)
        module = program("scaled-dot", DotAttrs((), (1,), (), (0,)), chosen, DType(result))
        check(module, compile_text, chosen, 0)
        assert ScaledDotExpander().run(module)
        assert "dot" in {instruction.opcode for instruction in module.instructions()}
