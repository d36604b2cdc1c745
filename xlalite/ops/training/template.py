"""Functions that make their variables at the first call and find them at all others: `make_template`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlalite.ops.training.variable_scope import ReuseMode, VariableScope, get_variable_scope, variable_scope


class Template:
    """A function with a scope for its variables."""

    def __init__(self, name: str, func: Callable[..., Any], arguments: dict[str, Any], unique_name: str | None) -> None:
        """Wraps the function; some arguments are given already."""
        self._name = name
        self._func = func
        self._arguments = arguments
        self._unique_name = unique_name
        self._scope: VariableScope | None = None

    @property
    def name(self) -> str:
        """The name of the scope."""
        return self._name if self._scope is None else self._scope.name

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope, once the function was called."""
        return self._scope

    def open(self) -> None:
        """Makes the scope, if it is not there."""
        if self._scope is None:
            with variable_scope(self._unique_name, self._name) as opened:
                self._scope = opened

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives."""
        called_before = self._scope is not None and getattr(self, "_was_called", False)
        self.open()
        self._was_called = True
        reuse = True if called_before or get_variable_scope().reuse is ReuseMode.REUSE else None
        with variable_scope(self._scope, reuse=reuse):
            return self._func(*args, **{**self._arguments, **kwargs})


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """A function that shares its variables over all calls.

    Args:
        name_: Name of the scope, made unique.
        func_: The function.
        create_scope_now_: Whether the scope is where the template is made, not where it is first called.
        unique_name_: Name of the scope as it stands.
        custom_getter_: Accepted for compatibility.
        kwargs: Arguments of the function.
    """
    made = Template(name_, func_, kwargs, unique_name_)
    if create_scope_now_:
        made.open()
    return made
