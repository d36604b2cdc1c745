"""Values of HLO as their arrays, and what compares them."""

import numpy as np

from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Token


def leaves(value: object) -> list[Array]:
    """The arrays in nested tuples or lists, in order; tokens are none."""
    if isinstance(value, (tuple, list)):
        return [leaf for element in value for leaf in leaves(element)]
    return [] if isinstance(value, Token) else [np.asarray(value)]


def require_near(found: Array, wanted: Array, tolerance: float, context: str = "") -> None:
    """Same type and sizes; floats differ by at most the tolerance times the largest number, all else is equal."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), context
    dtype = DType.from_numpy(wanted.dtype)
    if not (dtype.is_floating or dtype.is_complex):
        np.testing.assert_array_equal(found, wanted, context)
        return
    wide = np.complex128 if dtype.is_complex else np.float64
    one, other = found.astype(wide), wanted.astype(wide)
    size = float(np.abs(other).max(where=np.isfinite(other), initial=1e-30))
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * size, err_msg=context)
