"""jax's calls for products of sparse matrices."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.errors import ParseError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse

ROWS, SIZE, ENTRIES = 4, 5, 7
PROGRAM = """
func.func @main(%a: tensor<7xTYPE>, %b: tensor<5xINDEX>, %c: tensor<7xINDEX>, %d: tensor<5DIMSxTYPE>)
    -> tensor<4DIMSxTYPE> {
  %0 = stablehlo.custom_call @cpu_csr_sparse_dense_ffi(%a, %b, %c, %d) {api_version = 4 : i32}
    : (tensor<7xTYPE>, tensor<5xINDEX>, tensor<7xINDEX>, tensor<5DIMSxTYPE>) -> tensor<4DIMSxTYPE>
  return %0 : tensor<4DIMSxTYPE>
}
"""


def product(*operands: np.ndarray, kind: str = "f32", dims: tuple[int, ...] = (3,), index: str = "i32") -> Any:
    text = PROGRAM.replace("DIMS", "".join(f"x{size}" for size in dims)).replace("TYPE", kind).replace("INDEX", index)
    return evaluate(parse(text), *operands)


def expected(data: np.ndarray, starts: np.ndarray, columns: np.ndarray, dense: np.ndarray) -> np.ndarray:
    found = np.zeros((ROWS, *dense.shape[1:]), data.dtype)
    for row in range(ROWS):
        for entry in range(starts[row], starts[row + 1]):
            found[row] += data[entry] * dense[columns[entry]]
    return found


@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("i32", "i4"), ("i64", "i8"), ("f32", "f4"), ("f64", "f8"), ("complex<f32>", "c8"), ("complex<f64>", "c16")],
)
def test_products_of_compressed_rows(rng: np.random.Generator, kind: str, dtype: str, index: str) -> None:
    starts = np.array([0, 3, 3, 5, 6], {"i32": "i4", "i64": "i8"}[index])
    columns = np.array([4, 0, 4, 2, 1, 3, 0], starts.dtype)  # in no order, twice in a row; the last one is in no row
    for dims in ((), (3,), (0,)):
        data, dense = (rng.integers(-9, 9, sizes).astype(dtype) for sizes in ((ENTRIES,), (SIZE, *dims)))
        found = product(data, starts, columns, dense, kind=kind, dims=dims, index=index)
        np.testing.assert_array_equal(found, expected(data, starts, columns, dense))


def test_columns_and_entries_that_are_not_there_count_as_zero(rng: np.random.Generator) -> None:
    data, dense = (rng.integers(-9, 9, sizes).astype("f4") for sizes in ((ENTRIES,), (SIZE, 3)))
    starts, most = np.array([0, 2, 2, 5, 6], "i4"), np.iinfo("i4").max
    columns = np.array([1, 5, most, -1, 2, -most, 0], "i4")
    kept = np.where((columns >= 0) & (columns < SIZE), data, 0)
    wanted = expected(kept, starts, np.clip(columns, 0, SIZE - 1), dense)
    np.testing.assert_array_equal(product(data, starts, columns, dense), wanted)
    far = product(data, starts + np.int32(1 << 30), np.clip(columns, 0, 4), dense)
    np.testing.assert_array_equal(far, np.zeros((ROWS, 3), "f4"))


def test_products_of_other_forms_are_refused() -> None:
    text = PROGRAM.replace("DIMS", "").replace("TYPE", "f32").replace("7xINDEX", "7xi64").replace("INDEX", "i32")
    with pytest.raises(ParseError, match="expected data"):
        parse(text)
