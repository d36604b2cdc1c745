"""Bands and diagonals."""

import numpy as np
from ops.cases.case import gradient, value

from xlalite.ops.functions import diagonals as d
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node

F = np.float32
X = np.arange(2 * 3 * 4, dtype=F).reshape(2, 3, 4) + 1
SQUARE = np.arange(9, dtype=F).reshape(3, 3) + 1


def placed(x: np.ndarray, low: int, high: int, align: str) -> np.ndarray:
    """The diagonals of matrices as rows, by NumPy's own diagonals."""
    diagonals = [np.diagonal(x, k, -2, -1) for k in range(high, low - 1, -1)]
    longest = max(each.shape[-1] for each in diagonals)
    rows = []
    for k, each in zip(range(high, low - 1, -1), diagonals, strict=True):
        to_right = align.split("_")[0 if k >= 0 else 1] == "RIGHT"
        more = longest - each.shape[-1]
        rows.append(np.pad(each, [(0, 0)] * (x.ndim - 2) + [(more, 0) if to_right else (0, more)], constant_values=-7))
    return rows[0] if len(rows) == 1 else np.stack(rows, -2)


def banded(x: np.ndarray, low: int, high: int, outside: float) -> np.ndarray:
    offset = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    return np.where((offset >= low) & (offset <= high), x, outside)


ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
BANDS = ((-1, 2), (1, 2), (-2, -1), (0, 0), (3, 3))

VALUES = [
    value(
        "MatrixBandPart",
        lambda x: d.matrix_band_part(x, 1, 0),
        X,
        expected=lambda x: np.tril(np.triu(x, -1)),
    ),
    value(
        "MatrixBandPart keeps a triangle",
        lambda x, n: d.matrix_band_part(x, -1, n),
        X,
        np.int64(1),
        expected=lambda x, n: np.tril(x, 1),
    ),
    value("MatrixDiag", d.matrix_diag, X[0, :2], expected=lambda x: np.stack([np.diag(row) for row in x])),
    value("MatrixDiagPart", d.matrix_diag_part, X, expected=lambda x: np.diagonal(x, 0, -2, -1)),
    value(
        "MatrixSetDiag",
        d.matrix_set_diag,
        X,
        -X[:, 0, :3],
        expected=lambda x, v: np.where(np.eye(3, 4, dtype=bool), np.pad(v, [(0, 0), (0, 1)])[:, None], x),
    ),
    *(
        value(
            f"MatrixDiagPartV3 {low} {high} {align}",
            lambda x, k=(low, high), align=align: node(
                "MatrixDiagPartV3", [x, constant(k), constant(F(-7))], {"align": align}
            ),
            X,
            expected=lambda x, k=(low, high), align=align: placed(x, *k, align),
        )
        for low, high in BANDS
        for align in ALIGNMENTS
    ),
    *(
        value(
            f"MatrixDiagV3 {low} {high} {align}",
            lambda x, k=(low, high), align=align: d.matrix_diag(x, None, k, 3, 4, -9, align),
            placed(X, low, high, align),
            expected=lambda x, k=(low, high): banded(X, *k, -9),
        )
        for low, high in BANDS
        for align in ALIGNMENTS
    ),
    value(
        "MatrixDiagV3 of sizes that fit",
        lambda x: d.matrix_diag(x, k=1, num_rows=2),
        X[0, :2, :2],
        expected=lambda x: np.stack([np.diag(row, 1)[:2] for row in x]),
    ),
    value(
        "MatrixDiagV3 of which one is outside of the matrix",
        lambda x: d.matrix_diag(x, k=(0, 3), num_rows=3, align="LEFT_RIGHT"),
        np.arange(12.0).reshape(4, 3),
        expected=lambda x: np.diag(x[3]) + np.diag(x[2, :2], 1) + np.diag(x[1, :1], 2),
    ),
    value(
        "MatrixSetDiagV3",
        lambda x, v: d.matrix_set_diag(x, v, k=(-1, 2)),
        X,
        -placed(X, -1, 2, "RIGHT_LEFT"),
        expected=lambda x, v: banded(-x, -1, 2, 0) + x - banded(x, -1, 2, 0),
    ),
    value(
        "MatrixDiagV2",
        lambda x: node("MatrixDiagV2", [x, constant(-1), constant(-1), constant(-1), constant(F(0))]),
        X[0, 0, :2],
        expected=lambda x: np.diag(x, -1),
    ),
    value(
        "MatrixDiagPartV2",
        lambda x: node("MatrixDiagPartV2", [x, constant([0, 1]), constant(F(-7))]),
        X,
        expected=lambda x: placed(x, 0, 1, "LEFT_LEFT"),
    ),
    value(
        "MatrixSetDiagV2",
        lambda x, v: node("MatrixSetDiagV2", [x, v, constant(1)]),
        SQUARE,
        F([-1, -2]),
        expected=lambda x, v: x - np.diag(np.diag(x, 1), 1) + np.diag(v, 1),
    ),
    value("Diag", d.diag, X[0, :2, :2], expected=lambda x: np.diag(x.ravel()).reshape(2, 2, 2, 2)),
    value(
        "DiagPart",
        d.diag_part,
        np.arange(36, dtype=F).reshape(2, 3, 2, 3),
        expected=lambda x: np.diag(x.reshape(6, 6)).reshape(2, 3),
    ),
    value("Sum trace", d.trace, X, expected=lambda x: np.trace(x, axis1=-2, axis2=-1)),
]

Y = np.cos(np.arange(24.0)).reshape(2, 3, 4)
V3 = {"align": "RIGHT_LEFT"}

GRADIENTS = [
    gradient("MatrixBandPart", lambda x: d.matrix_band_part(x, 0, 1) * Y, Y * 2),
    gradient("MatrixDiag", d.matrix_diag, Y[0]),
    gradient("MatrixDiagPart", d.matrix_diag_part, Y),
    gradient("MatrixSetDiag", d.matrix_set_diag, Y, Y[:, :, 0]),
    gradient("MatrixDiagV3", lambda x: d.matrix_diag(x, k=(-1, 0)), Y[:, :2]),
    gradient("MatrixDiagPartV3", lambda x: d.matrix_diag_part(x, k=(-1, 1)), Y),
    gradient("MatrixSetDiagV3", lambda x, v: d.matrix_set_diag(x, v, k=(0, 1)), Y, Y[:, :2, :3] * 3),
    gradient(
        "MatrixDiagV2",
        lambda x: node("MatrixDiagV2", [x, constant(1), constant(-1), constant(-1), constant(0.0, np.float64)]),
        Y[0],
    ),
    gradient("MatrixDiagPartV2", lambda x: node("MatrixDiagPartV2", [x, constant(1), constant(0.0, np.float64)]), Y),
    gradient("MatrixSetDiagV2", lambda x, v: node("MatrixSetDiagV2", [x, v, constant(1)]), Y, Y[:, :, 1]),
    gradient("Diag", d.diag, Y[0, :2, :2]),
    gradient("DiagPart", lambda x: d.diag_part(x) * [1.0, 2.0, 3.0], Y[0, :, :3]),
]
