"""Default arguments of functions inside a `with` block: `contrib.framework.arg_scope`."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from xlalite.framework.graph.errors import GraphError

F = TypeVar("F", bound=Callable[..., Any])
Scope = Mapping[str, Mapping[str, Any]]


class _State(threading.local):
    """The open scopes of a thread, merged: arguments by name for each function."""

    def __init__(self) -> None:
        self.scope: Scope = {}


_STATE = _State()


def add_arg_scope(func: F) -> F:
    """Lets `arg_scope` set default arguments of a function."""

    @functools.wraps(func)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **{**_STATE.scope.get(_key(with_defaults), {}), **kwargs})

    with_defaults._takes_arg_scope = True  # type: ignore[attr-defined]  # how `arg_scope` knows it
    return with_defaults  # type: ignore[return-value]  # it takes what the function takes


def has_arg_scope(func: Any) -> bool:
    """Whether `arg_scope` may set default arguments of a function."""
    return hasattr(func, "_takes_arg_scope")


@contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Scope]:
    """Sets default arguments of functions; or enters a scope again that another `arg_scope` gave.

    Raises:
        GraphError: a function does not take defaults, or a scope is entered again with more of them.
    """
    outer = _STATE.scope
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise GraphError("arg_scope: a scope that is entered again takes no arguments")
        inner: Scope = list_ops_or_scope
    else:
        inner = dict(outer)
        for function in list_ops_or_scope:
            if not has_arg_scope(function):
                raise GraphError(f"arg_scope: {_key(function)} is not decorated with add_arg_scope")
            inner[_key(function)] = {**inner.get(_key(function), {}), **kwargs}
    _STATE.scope = inner
    try:
        yield inner
    finally:
        _STATE.scope = outer


def current_arg_scope() -> Scope:
    """The open scopes, merged."""
    return _STATE.scope


def arg_scoped_arguments(func: Callable[..., Any]) -> Mapping[str, Any]:
    """The default arguments that are set for a function."""
    return _STATE.scope.get(_key(func), {})


def _key(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"
