"""Products over labelled dimensions, norms, moments, running sums of exponentials."""

import numpy as np
from ops.cases.case import gradient, value

from xlalite.ops.functions import products as p
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node

F = np.float32
A = np.arange(24, dtype=F).reshape(2, 3, 4) / 7 - 1
B = np.arange(20, dtype=F).reshape(4, 5) / 5 - 2
C = np.arange(30, dtype=F).reshape(2, 5, 3) / 9
S = np.arange(9, dtype=F).reshape(3, 3)

EQUATIONS = [
    ("abc,cd->abd", A, B), ("abc,adb->cd", A, C), ("abc,cd->a", A, B), ("ij,jk", B.T, B), ("ab->ba", B), ("ii->i", S),
    ("ii", S), ("abc->b", A), ("...c,cd->...d", A, B), ("a...,a...->...a", A, A), ("ij,kl->ijkl", S, B),
    ("...ij->...ji", A), ("iij,jk->ik", np.stack([S, S + 1, S * 2]), S), ("a,a->", A[0, 0], A[1, 1]),
    ("...ij,...jk->...ik", A[:1], C[:, :4, :]),
]  # fmt: skip


def _running(op_type, axis, reverse=False):
    attrs = {"exclusive": False, "reverse": reverse}
    return lambda x: node(op_type, [x, constant(axis)], attrs)


def logcumsumexp(x: np.ndarray) -> np.ndarray:
    return np.logaddexp.accumulate(x, axis=0)


VALUES = [
    *(
        value(
            f"Einsum {text}",
            lambda *x, text=text: p.einsum(text, *x),
            *operands,
            expected=lambda *x, text=text: np.einsum(text, *x),
            tolerance=1e-5,
        )
        for text, *operands in EQUATIONS
    ),
    value(
        "Einsum of three",
        lambda x, y, z: p.einsum("abc,cd,ade->be", x, y, z),
        A,
        B,
        C,
        expected=lambda x, y, z: np.einsum("abc,cd,ade->be", x, y, z),
        tolerance=1e-5,
    ),
    value("MatMul tensordot", lambda x, y: p.tensordot(x, y, 1), A, B, expected=lambda x, y: np.tensordot(x, y, 1)),
    value(
        "MatMul tensordot of axes",
        lambda x, y: p.tensordot(x, y, [[1, 0], [2, 0]]),
        A,
        C,
        expected=lambda x, y: np.tensordot(x, y, [[1, 0], [2, 0]]),
        tolerance=1e-5,
    ),
    value("Roll cross", p.cross, S, S[::-1].copy(), expected=np.cross),
    value("Sqrt norm", p.norm, A, expected=lambda x: np.sqrt((x * x).sum())),
    value("Sqrt norm along", lambda x: p.norm(x, axis=1), A, expected=lambda x: np.linalg.norm(x, axis=1)),
    value("Sum norm 1", lambda x: p.norm(x, 1, axis=-1), A, expected=lambda x: np.linalg.norm(x, 1, axis=-1)),
    value("Max norm inf", lambda x: p.norm(x, np.inf, 0), B, expected=lambda x: np.linalg.norm(x, np.inf, 0)),
    value("Pow norm 3", lambda x: p.norm(x, 3, 0), B, expected=lambda x: np.linalg.norm(x, 3, 0), tolerance=1e-5),
    *(
        value(
            f"Max norm {order} of matrices",
            lambda x, order=order: p.norm(x, order, [-2, -1]),
            A,
            expected=lambda x, order=order: np.linalg.norm(x, order, (-2, -1)),
        )
        for order in (1, np.inf, "fro")
    ),
    value("Mean reduce_variance", lambda x: p.reduce_variance(x, [0, 2]), A, expected=lambda x: x.var((0, 2))),
    value("Sqrt reduce_std", lambda x: p.reduce_std(x, 1, True), A, expected=lambda x: x.std(1, keepdims=True)),
    value("Sum count_nonzero", lambda x: p.count_nonzero(x, 0), S, expected=lambda x: (x != 0).sum(0)),
    value("_Cummax", _running("_Cummax", 1), B, expected=lambda x: np.maximum.accumulate(x, 1)),
    value("_Cummin", _running("_Cummin", 0), B, expected=lambda x: np.minimum.accumulate(x, 0)),
    value("CumulativeLogsumexp", p.cumulative_logsumexp, A * 30, expected=logcumsumexp),
    value(
        "CumulativeLogsumexp exclusive",
        lambda x: p.cumulative_logsumexp(x, exclusive=True, reverse=True),
        B,
        expected=lambda x: np.concatenate([logcumsumexp(x[::-1])[::-1][1:], np.full((1, 5), -np.inf, F)]),
    ),
]

X = np.cos(np.arange(24.0)).reshape(2, 3, 4)
Y = np.sin(np.arange(20.0)).reshape(4, 5)

GRADIENTS = [
    gradient("Einsum", lambda x, y: p.einsum("abc,cd->ad", x, y), X, Y),
    gradient("Einsum of a sum", lambda x: p.einsum("abc->b", x), X),
    gradient("Einsum of a trace", lambda x: p.einsum("ii", x), X[0, :, :3]),
    gradient("Einsum of a diagonal", lambda x, y: p.einsum("aab,bc->ac", x, y), X[:, :2], Y),
    gradient("Einsum with an ellipsis", lambda x, y: p.einsum("...ij,...jk->...ik", x, y), X, X.transpose(0, 2, 1)),
    gradient("Einsum with repetition", lambda x, y: p.einsum("...ij,...jk->...ik", x, y), X[:1], X.transpose(0, 2, 1)),
    gradient("MatMul tensordot", lambda x, y: p.tensordot(x, y, 1), X, Y),
    gradient("_Cummax", lambda x: _running("_Cummax", 1)(x) * Y, Y),
    gradient("_Cummin", lambda x: _running("_Cummin", 0, True)(x) * Y, Y),
    gradient("CumulativeLogsumexp", lambda x: p.cumulative_logsumexp(x, 1) * Y, Y),
    gradient("CumulativeLogsumexp exclusive", lambda x: p.cumulative_logsumexp(x, 0, True, True)[:-1] * Y[1:], Y),
    gradient("Sqrt norm", lambda x: p.norm(x, axis=1), Y),
    gradient("Mean reduce_variance", lambda x: p.reduce_variance(x, 1), Y),
    gradient("Roll cross", p.cross, X[0, :, :3], X[1, :, :3]),
]
