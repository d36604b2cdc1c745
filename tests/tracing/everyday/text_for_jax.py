"""The everyday functions as jax takes them: what is assigned to elements becomes a new array."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np


def text_for_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in the names of `jax.numpy`, and without assignments to elements."""
    assert isinstance(function, types.FunctionType)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    assert isinstance(tree.body[0], ast.FunctionDef)
    tree.body[0].decorator_list = []
    names = {name: _NAMES if value is np else value for name, value in function.__globals__.items()}
    names |= {"_with": _with, "_places": _Places}
    exec(compile(ast.unparse(_NewArrays().visit(tree)), function.__name__, "exec"), names)
    found: Callable[..., Any] = names[function.__name__]
    return found


class _NewArrays(ast.NodeTransformer):
    def visit_Assign(self, statement: ast.Assign) -> list[ast.stmt]:
        """`x[i], y = v` as `_0, y = v; x = _with(_places(x)[i], _0)`."""
        self.generic_visit(statement)
        targets, later = list[ast.expr](), list[ast.stmt]()
        for target in statement.targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for i, part in enumerate(parts):
                if isinstance(part, ast.Subscript):
                    array, value = ast.unparse(part.value), f"_{len(later)}"
                    (change,) = ast.parse(f"{array} = _with(_places({array})[0], {value})").body
                    change.value.args[0].slice = part.slice  # type: ignore[attr-defined]  # of a call
                    parts[i] = ast.Name(value)
                    later.append(change)
            targets.append(target if isinstance(target, ast.Tuple) else parts[0])
        statement.targets = targets
        return [statement, *later]

    def visit_AugAssign(self, statement: ast.AugAssign) -> ast.stmt | list[ast.stmt]:
        """`x[i] += v` as `x[i] = x[i] + v`."""
        if not isinstance(statement.target, ast.Subscript):
            return statement
        before = ast.parse(ast.unparse(statement.target), mode="eval").body
        return self.visit_Assign(
            ast.Assign([statement.target], ast.BinOp(before, statement.op, statement.value), lineno=statement.lineno)
        )

    def visit_Expr(self, statement: ast.Expr) -> ast.stmt | list[ast.stmt]:
        """`np.add.at(x, i, v)` as `x = np.add.at(x, i, v, inplace=False)`."""
        text = ast.unparse(statement)
        if not text.startswith("np.add.at("):
            return statement
        array = ast.unparse(statement.value.args[0])  # type: ignore[attr-defined]  # of a call
        return ast.parse(f"{array} = {text[:-1]}, inplace=False)").body

    def visit_Subscript(self, taken: ast.Subscript) -> ast.Subscript:
        """`x[[i, j]]` as `x[np.array([i, j])]`."""
        self.generic_visit(taken)
        if isinstance(taken.slice, ast.List):
            taken.slice = ast.parse(f"np.array({ast.unparse(taken.slice)})", mode="eval").body
        return taken


class _Places:
    """What stands in brackets, with what stands before them."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, places: Any) -> tuple[Any, Any]:
        return self.array, places


def _with(part: tuple[Any, Any], value: Any) -> Any:
    array, places = part
    if isinstance(array, list | dict):
        array[places] = value
        return array
    if isinstance(places, jnp.ndarray) and places.dtype == np.bool_:
        return jnp.where(places, value, array)
    return jnp.asarray(array).at[places].set(value)


def _windows(x: Any, sizes: Any, axis: Any = None) -> Any:
    shape = [sizes] if isinstance(sizes, int) else sizes
    for along, size in zip(range(len(shape)) if axis is None else axis, shape, strict=True):
        starts = np.arange(x.shape[along] - size + 1)
        x = jnp.moveaxis(jnp.take(x, starts[:, None] + np.arange(size), along), along + 1, -1)
    return x


class _Names:
    """`jax.numpy`, with what it lacks or takes in another form."""

    lib = types.SimpleNamespace(stride_tricks=types.SimpleNamespace(sliding_window_view=_windows))

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name, None) or getattr(np, name)

    def bincount(self, x: Any, weights: Any = None, minlength: int = 0) -> Any:
        """jax wants to know the size of the result."""
        return jnp.bincount(x, weights, length=minlength)

    def percentile(self, x: Any, q: Any) -> Any:
        """jax wants no lists."""
        return jnp.percentile(x, jnp.asarray(q))

    def quantile(self, x: Any, q: Any) -> Any:
        """jax wants no lists."""
        return jnp.quantile(x, jnp.asarray(q))

    def polyfit(self, x: Any, y: Any, degree: int) -> Any:
        """jax wants numbers with fractions."""
        return jnp.polyfit(x * 1.0, y, degree)


_NAMES = _Names()
