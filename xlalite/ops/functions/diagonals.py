"""Bands and diagonals of matrices: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to, promote


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside a band; a negative number of diagonals keeps that whole triangle."""
    lower, upper = promote(num_lower, num_upper)
    return node("MatrixBandPart", [convert_to_tensor(input), lower, upper], None, name)


def matrix_diag(
    diagonal: Any,
    name: str | None = None,
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the given diagonals.

    Args:
        diagonal: `[..., length]`, or `[..., number, length]` for several diagonals, the highest first.
        name: Name of the operation.
        k: The diagonal, 0 being the main one and 1 that above it; or the lowest and the highest of several.
        num_rows: Rows of the matrices; by default as many as fit.
        num_cols: Columns of the matrices.
        padding_value: What is elsewhere.
        align: Where diagonals shorter than the longest lie: those above the main one, then those below.
    """
    x = convert_to_tensor(diagonal)
    numbers = (k, num_rows, num_cols, padding_value)
    if all(isinstance(number, int) for number in numbers) and numbers == (0, -1, -1, 0):
        return node("MatrixDiag", [x], None, name)
    padding = cast_to(promote(padding_value)[0], x.dtype)
    operands = [x, convert_to_tensor(k), convert_to_tensor(num_rows), convert_to_tensor(num_cols), padding]
    return node("MatrixDiagV3", operands, {"align": align}, name)


def matrix_diag_part(
    input: Any, name: str | None = None, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Diagonals of matrices; several of them, from `k[0]` to `k[1]`, become the rows of a matrix, padded."""
    x = convert_to_tensor(input)
    if isinstance(k, int) and k == 0:
        return node("MatrixDiagPart", [x], None, name)
    padding = cast_to(promote(padding_value)[0], x.dtype)
    return node("MatrixDiagPartV3", [x, convert_to_tensor(k), padding], {"align": align}, name)


def matrix_set_diag(
    input: Any, diagonal: Any, name: str | None = None, k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Matrices with other diagonals."""
    x, given = promote(input, diagonal)
    if isinstance(k, int) and k == 0:
        return node("MatrixSetDiag", [x, given], None, name)
    return node("MatrixSetDiagV3", [x, given, convert_to_tensor(k)], {"align": align}, name)


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the rank that is zero but for `[i, ..., i, ...]`."""
    return node("Diag", [convert_to_tensor(diagonal)], None, name)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The elements `[i, ..., i, ...]` of a tensor of even rank."""
    return node("DiagPart", [convert_to_tensor(input)], None, name)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sums of the main diagonals of matrices."""
    return node("Sum", [matrix_diag_part(x), constant(np.array([-1], np.int32))], {"keep_dims": False}, name)
