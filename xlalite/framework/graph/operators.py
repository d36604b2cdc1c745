"""Python operators on tensors and variables. `xlalite.ops.functions.operators` says what each one means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

_OPERATORS: dict[str, Callable[..., Any]] = {}

# The ufuncs behind NumPy's operators; comparison for equality is by identity.
_OPERATOR_OF_UFUNC = {
    "absolute": "abs", "add": "add", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "divide": "truediv", "floor_divide": "floordiv", "greater": "greater", "greater_equal": "greater_equal",
    "invert": "invert", "less": "less", "less_equal": "less_equal", "matmul": "matmul", "multiply": "mul",
    "negative": "neg", "power": "pow", "remainder": "mod", "subtract": "sub",
}  # fmt: skip


def define_operator(name: str, function: Callable[..., Any]) -> None:
    """Gives an operator its meaning; called once for each."""
    assert name not in _OPERATORS, f"operator {name} is defined twice"
    _OPERATORS[name] = function


def apply_operator(operator: str, /, *operands: Any, **options: Any) -> Any:
    """What an operator gives."""
    return _OPERATORS[operator](*operands, **options)


class TensorOperators:
    """Arithmetic, comparison and indexing; mixed operands follow NumPy's promotion rules."""

    __slots__ = ()

    __array_priority__ = 1000

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Lets NumPy's own operators (`array + tensor`) mean ours.

        Raises:
            TypeError: another function of NumPy, which computes at once and so cannot take a tensor.
        """
        if ufunc.__name__ in ("equal", "not_equal"):
            return (inputs[0] is inputs[1]) == (ufunc.__name__ == "equal")
        options.pop("out", None)  # `array += tensor` makes the name mean a tensor
        if ufunc.__name__ not in _OPERATOR_OF_UFUNC or method != "__call__" or options:
            raise TypeError(
                f"numpy.{ufunc.__name__} of {self!r}: it has no value while the graph is built; use the function of "
                "xlalite, or run the tensor in a session first"
            )
        return _OPERATORS[_OPERATOR_OF_UFUNC[ufunc.__name__]](*inputs)

    def __float__(self) -> NoReturn:
        """Not defined: the value exists only while the graph runs."""
        raise TypeError(
            f"{self!r} has no value while the graph is built, so it is no Python number; run it in a session"
        )

    __int__ = __complex__ = __float__

    def __add__(self, other: Any) -> Any:
        return _OPERATORS["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return _OPERATORS["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return _OPERATORS["sub"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return _OPERATORS["sub"](other, self)

    def __mul__(self, other: Any) -> Any:
        return _OPERATORS["mul"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return _OPERATORS["mul"](other, self)

    def __truediv__(self, other: Any) -> Any:
        """True quotient."""
        return _OPERATORS["truediv"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _OPERATORS["truediv"](other, self)

    def __floordiv__(self, other: Any) -> Any:
        """Quotient rounded down."""
        return _OPERATORS["floordiv"](self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _OPERATORS["floordiv"](other, self)

    def __mod__(self, other: Any) -> Any:
        """Remainder with the divisor's sign."""
        return _OPERATORS["mod"](self, other)

    def __rmod__(self, other: Any) -> Any:
        return _OPERATORS["mod"](other, self)

    def __pow__(self, other: Any) -> Any:
        return _OPERATORS["pow"](self, other)

    def __rpow__(self, other: Any) -> Any:
        return _OPERATORS["pow"](other, self)

    def __matmul__(self, other: Any) -> Any:
        return _OPERATORS["matmul"](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _OPERATORS["matmul"](other, self)

    def __and__(self, other: Any) -> Any:
        """Logical or bitwise and."""
        return _OPERATORS["and"](self, other)

    def __rand__(self, other: Any) -> Any:
        return _OPERATORS["and"](other, self)

    def __or__(self, other: Any) -> Any:
        """Logical or bitwise or."""
        return _OPERATORS["or"](self, other)

    def __ror__(self, other: Any) -> Any:
        return _OPERATORS["or"](other, self)

    def __xor__(self, other: Any) -> Any:
        """Logical or bitwise exclusive or."""
        return _OPERATORS["xor"](self, other)

    def __rxor__(self, other: Any) -> Any:
        return _OPERATORS["xor"](other, self)

    def __lt__(self, other: Any) -> Any:
        return _OPERATORS["less"](self, other)

    def __le__(self, other: Any) -> Any:
        return _OPERATORS["less_equal"](self, other)

    def __gt__(self, other: Any) -> Any:
        return _OPERATORS["greater"](self, other)

    def __ge__(self, other: Any) -> Any:
        return _OPERATORS["greater_equal"](self, other)

    def __neg__(self) -> Any:
        return _OPERATORS["neg"](self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _OPERATORS["abs"](self)

    def __invert__(self) -> Any:
        """Logical or bitwise not."""
        return _OPERATORS["invert"](self)

    def __getitem__(self, key: Any) -> Any:
        """NumPy's basic indexing: integers, slices, `...` and `None`."""
        return _OPERATORS["getitem"](self, key)
