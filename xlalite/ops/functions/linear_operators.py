"""Matrices that are known by their form; what users reach as `xlalite.linalg.LinearOperator...`."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.ops.functions.diagonals import matrix_band_part, matrix_diag_part
from xlalite.ops.functions.linalg import triangular_solve
from xlalite.ops.functions.math import abs as absolute, log, matmul, reduce_prod, reduce_sum
from xlalite.ops.helpers.constant import convert_to_tensor


class LinearOperatorLowerTriangular:
    """Lower triangular matrices `[..., n, n]`; what stands above the diagonal is not looked at."""

    def __init__(self, tril: Any, name: str = "LinearOperatorLowerTriangular", **options: Any) -> None:
        """The matrices of `tril`; the options of TensorFlow's that only promise something have no effect."""
        self.name = name
        self._tril = convert_to_tensor(tril)

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._tril.dtype

    @property
    def shape(self) -> TensorShape:
        """`[..., n, n]`."""
        return self._tril.shape

    def to_dense(self) -> Tensor:
        """The matrices, with zeros above the diagonal."""
        return matrix_band_part(self._tril, -1, 0)

    def diag_part(self) -> Tensor:
        """The diagonals `[..., n]`."""
        return matrix_diag_part(self._tril)

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        """The products with matrices `[..., n, m]`."""
        return matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def solve(self, rhs: Any, adjoint: bool = False) -> Tensor:
        """The X with `self.matmul(X) == rhs`, for right sides `[..., n, m]`."""
        return triangular_solve(self._tril, rhs, lower=True, adjoint=adjoint)

    def determinant(self) -> Tensor:
        """The determinants `[...]`."""
        return reduce_prod(self.diag_part(), -1)

    def log_abs_determinant(self) -> Tensor:
        """The logarithms of their absolute values."""
        return reduce_sum(log(absolute(self.diag_part())), -1)
