# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.clipping import global_norm as global_norm
from xlalite.ops.functions.diagonals import (
    diag as _diag, diag_part as _diag_part, matrix_band_part as _matrix_band_part, matrix_diag as _matrix_diag,
    matrix_diag_part as _matrix_diag_part, matrix_set_diag as _matrix_set_diag, trace as trace
)
from xlalite.ops.functions.linalg import (
    adjoint as adjoint, cholesky as cholesky, cholesky_solve as cholesky_solve, det as det, eigh as eigh,
    eigvalsh as eigvalsh, eye as eye, inv as inv, logdet as logdet, lstsq as lstsq,
    matrix_transpose as matrix_transpose, qr as qr, slogdet as slogdet, solve as solve, svd as svd,
    triangular_solve as triangular_solve, tridiagonal_solve as tridiagonal_solve
)
from xlalite.ops.functions.linear_operators import LinearOperatorLowerTriangular as LinearOperatorLowerTriangular
from xlalite.ops.functions.math import matmul as matmul
from xlalite.ops.functions.nn import l2_normalize as l2_normalize
from xlalite.ops.functions.products import cross as cross, einsum as einsum, norm as norm, tensordot as tensordot

band_part = _matrix_band_part
diag = _matrix_diag
diag_part = _matrix_diag_part
set_diag = _matrix_set_diag
tensor_diag = _diag
tensor_diag_part = _diag_part
