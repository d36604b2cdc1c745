"""Matrices that are known by their form."""

from typing import Any

import numpy as np

from xlalite.ops.functions.linear_operators import LinearOperatorLowerTriangular


def test_a_lower_triangle(run: Any) -> None:
    given = np.random.default_rng(0).normal(size=(2, 3, 3)) + 3 * np.eye(3)
    rhs = np.random.default_rng(1).normal(size=(2, 3, 2))
    lower = np.tril(given)
    operator = LinearOperatorLowerTriangular(given, is_non_singular=True)
    assert (operator.shape, operator.dtype.name) == ([2, 3, 3], "float64")
    for found, expected in (
        (operator.to_dense(), lower),
        (operator.diag_part(), np.diagonal(lower, axis1=1, axis2=2)),
        (operator.matmul(rhs), lower @ rhs),
        (operator.matmul(rhs, adjoint=True), np.swapaxes(lower, 1, 2) @ rhs),
        (operator.solve(rhs), np.linalg.solve(lower, rhs)),
        (operator.solve(rhs, adjoint=True), np.linalg.solve(np.swapaxes(lower, 1, 2), rhs)),
        (operator.determinant(), np.linalg.det(lower)),
        (operator.log_abs_determinant(), np.log(np.abs(np.linalg.det(lower)))),
    ):
        np.testing.assert_allclose(run(found), expected, rtol=1e-9)
