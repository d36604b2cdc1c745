"""Questions about arrays: which elements are alike, infinite or members; what types they have."""

from __future__ import annotations

from typing import Any

from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import common_type, floating, numpy_dtype, sizes, traced, traced_array
from xlalite.tracing.ufunc_methods import finished


@records(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    return finished(np.isinf(x) & ~np.signbit(traced_array(x)), out)


@records(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    return finished(np.isinf(x) & np.signbit(traced_array(x)), out)


@records(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return numpy_dtype(x).kind == "c"


@records(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return numpy_dtype(x).kind != "c"


@records(np.iscomplex)
def iscomplex(x: Any) -> Any:
    return np.not_equal(traced_array(x).imag, 0)


@records(np.isreal)
def isreal(x: Any) -> Any:
    return np.equal(traced_array(x).imag, 0)


@records(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1.0e-5, atol: Any = 1.0e-8, equal_nan: bool = False) -> Any:
    b = traced(floating(b))
    near = np.less_equal(np.abs(np.subtract(a, b)), atol + rtol * np.abs(b)) & np.isfinite(b)
    found = near | np.equal(a, b)
    return found | (np.isnan(a) & np.isnan(b)) if equal_nan else found


@records(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1.0e-5, atol: Any = 1.0e-8, equal_nan: bool = False) -> Any:
    return np.all(isclose(a, b, rtol, atol, equal_nan))


@records(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    if sizes(a1) != sizes(a2):
        return False
    found = np.equal(a1, a2)
    return np.all(found | (np.isnan(a1) & np.isnan(a2)) if equal_nan else found)


@records(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    try:
        np.broadcast_shapes(sizes(a1), sizes(a2))
    except ValueError:
        return False
    return np.all(np.equal(a1, a2))


@records(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Any:
    members = np.sort(np.ravel(traced_array(test_elements)))
    if members.size == 0:
        return np.full_like(traced_array(element), invert, dtype=np.bool_)
    places = np.searchsorted(members, np.ravel(traced_array(element)))
    found = np.equal(members[np.minimum(places, members.size - 1)], np.ravel(traced_array(element)))
    found = np.reshape(found, sizes(element))
    return ~found if invert else found


@records(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> Any:
    return common_type(
        *[np.zeros((), each) if isinstance(each, str | type | np.dtype) else each for each in arrays_and_dtypes]
    )


@records(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> Any:
    return np.can_cast(numpy_dtype(from_), to, casting)


@records(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> Any:
    return numpy_dtype(a)


@records(np.common_type)
def common_type_(*arrays: Any) -> Any:
    return np.common_type(*[np.empty(0, numpy_dtype(each)) for each in arrays])


@records(np.may_share_memory, np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    return a is b or traced_array(a)._base is b or traced_array(b)._base is a
