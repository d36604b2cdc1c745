"""`np.r_` and `np.c_` of traced arrays."""

from __future__ import annotations

from typing import Any

import numpy

from xlalite.hlo.errors import TracingError
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.promotion import contains_traced, promoted, sizes, traced


class Concatenation:
    """Arrays one behind the other (`r_`), or as columns side by side (`c_`)."""

    def __init__(self, of_numpy: Any) -> None:
        self._of_numpy = of_numpy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of_numpy, name)

    def __getitem__(self, key: Any) -> Any:
        parts = list(key) if isinstance(key, tuple) else [key]
        if not contains_traced(parts):
            return self._of_numpy[key]
        if isinstance(parts[0], str):
            raise TracingError(f"np.r_ with {parts[0]!r} cannot be recorded by xlalite.jit; use np.concatenate")
        arrays = [self._of_numpy[each] if isinstance(each, slice) else each for each in parts]
        if self._of_numpy is numpy.r_:
            return np.concatenate([np.atleast_1d(traced(each)) for each in promoted(*arrays)], axis=0)
        return np.concatenate([_columns(each) for each in arrays], axis=-1)


def _columns(part: Any) -> Any:
    return part if len(sizes(part)) > 1 else np.reshape(part, (-1, 1))
