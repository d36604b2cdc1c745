"""Whether a function is being traced in this thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_tracing: ContextVar[bool] = ContextVar("is_tracing", default=False)


def is_tracing() -> bool:
    """Whether `xlalite.jit` records what is being called."""
    return _is_tracing.get()


@contextmanager
def tracing() -> Iterator[None]:
    """Within it, functions are traced."""
    token = _is_tracing.set(True)
    try:
        yield
    finally:
        _is_tracing.reset(token)
