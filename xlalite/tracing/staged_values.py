"""Python's operators and functions that ask for truth values or numbers, of traced arrays, too."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.tensor import Tensor
from xlalite.tracing.traced_array import TracedArray


def is_traced(value: Any) -> bool:
    """Whether something has no value while the function is traced."""
    return isinstance(value, Tensor) or (isinstance(value, TracedArray) and value.known is None)


def both(*values: Callable[[], Any]) -> Any:
    """`and`."""
    found = values[0]()
    for value in values[1:]:
        if is_traced(found):
            other = value()
            found = np.logical_and(found, other)
        elif not found:
            return found
        else:
            found = value()
    return found


def either(*values: Callable[[], Any]) -> Any:
    """`or`."""
    found = values[0]()
    for value in values[1:]:
        if is_traced(found):
            found = np.logical_or(found, value())
        elif found:
            return found
        else:
            found = value()
    return found


def negated(value: Any) -> Any:
    """`not`."""
    return np.logical_not(value) if is_traced(value) else not value


def largest(*values: Any, **options: Any) -> Any:
    """`max`."""
    return _extreme(builtins.max, np.maximum, values, options)


def smallest(*values: Any, **options: Any) -> Any:
    """`min`."""
    return _extreme(builtins.min, np.minimum, values, options)


def whole(*values: Any) -> Any:
    """`int`."""
    return values[0].astype(np.int64) if values and is_traced(values[0]) else int(*values)


def fractional(*values: Any) -> Any:
    """`float`."""
    return values[0].astype(np.float64) if values and is_traced(values[0]) else float(*values)


def _extreme(plain: Any, recorded: Any, values: Sequence[Any], options: dict[str, Any]) -> Any:
    parts = list(values) if len(values) > 1 else list(values[0]) if isinstance(values[0], list | tuple) else None
    if parts is None or options or not any(map(is_traced, parts)):
        return plain(*values, **options)
    found = parts[0]
    for each in parts[1:]:
        found = recorded(found, each)
    return found
