"""`break`, `continue` and `return` amid branches and loops as truth values that guard what follows.

    for i in range(n):             stop = False
        if x[i] > 0:               for i in range(n):       # ends when `stop` holds
            break                      if x[i] > 0:
        y += x[i]                          stop = True
                                       if not stop:
                                           y += x[i]

What stands in `try`, `match` or a generator stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Final

RETURNED: Final = "__returned"
RESULT: Final = "__result"

_LOOPS = (ast.For, ast.While)
_BLOCKS = (ast.If, *_LOOPS, ast.With)


def stop_of(loop: ast.For | ast.While) -> str | None:
    """The name of the truth value that ends a loop."""
    found: str | None = getattr(loop, "stop", None)
    return found


def without_leaving(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function, of which only the last ones of branches return.

    Where others do, what was returned stands in `RESULT` at the end.
    """
    if any(isinstance(each, ast.Yield | ast.YieldFrom | ast.Await) for part in body for each in ast.walk(part)):
        return body
    rewriter = _Rewriter(returns=_returns_amid(body))
    if not rewriter.returns:
        return rewriter.statements(body, None, None)[0]
    if not (ends_with_return(body) or _has_no_end(body[-1])):
        body = [*body, ast.copy_location(ast.Return(None), body[-1])]
    return [_assign(RETURNED, ast.Constant(False), body[0]), *rewriter.statements(body, None, None)[0]]


class _Rewriter:
    """Rewrites the statements of one function."""

    def __init__(self, returns: bool) -> None:
        self.returns = returns
        self._count = 0

    def statements(
        self, body: Sequence[ast.stmt], stop: str | None, skip: str | None
    ) -> tuple[list[ast.stmt], list[str]]:
        """Statements, and which truth values they may set.

        Args:
            body: The statements.
            stop: What ends the loop around them.
            skip: What skips the rest of its step.
        """
        found: list[ast.stmt] = []
        for i, statement in enumerate(body):
            made, names = self._statement(statement, stop, skip)
            found += made
            if names:
                rest, more = self.statements(body[i + 1 :], stop, skip)
                if rest:
                    found.append(ast.copy_location(ast.If(_none_of(names), rest, []), rest[0]))
                return found, sorted({*names, *more})
        return found, []

    def _statement(self, statement: ast.stmt, stop: str | None, skip: str | None) -> tuple[list[ast.stmt], list[str]]:
        match statement:
            case ast.Break() if stop:
                return [_assign(stop, ast.Constant(True), statement)], [stop]
            case ast.Continue() if skip:
                return [_assign(skip, ast.Constant(True), statement)], [skip]
            case ast.Return(value) if self.returns:
                result = _assign(RESULT, value or ast.Constant(None), statement)
                names = [RETURNED] if stop is None else [RETURNED, stop]
                return [result, *(_assign(each, ast.Constant(True), statement) for each in names)], names
            case ast.If():
                then, first = self.statements(statement.body, stop, skip)
                otherwise, second = self.statements(statement.orelse, stop, skip)
                made = ast.copy_location(ast.If(statement.test, then, otherwise), statement)
                return [made], sorted({*first, *second})
            case ast.With():
                inner, names = self.statements(statement.body, stop, skip)
                return [ast.copy_location(ast.With(statement.items, inner), statement)], names
            case ast.For() | ast.While():
                return self._loop(statement, stop)
            case _:
                return [statement], []

    def _loop(self, loop: ast.For | ast.While, outer: str | None) -> tuple[list[ast.stmt], list[str]]:
        self._count += 1
        stop, skip = f"__stop_{self._count}", f"__skip_{self._count}"
        body, names = self.statements(loop.body, stop, skip)
        if skip in names:
            body.insert(0, _assign(skip, ast.Constant(False), loop))
        if stop not in names:
            loop.body = body
            rest, names = self.statements(loop.orelse, outer, None)
            loop.orelse = []
            return [loop, *rest], names
        made: list[ast.stmt] = [_assign(stop, ast.Constant(False), loop)]
        if isinstance(loop, ast.While):
            test = ast.BoolOp(ast.And(), [_none_of([stop]), loop.test])
            new: ast.For | ast.While = ast.While(ast.copy_location(test, loop.test), body, [])
        else:
            new = ast.For(loop.target, loop.iter, body, [])
            new.stop = stop  # type: ignore[attr-defined]  # which is how the loop is known to the next step
        made.append(ast.copy_location(new, loop))
        if loop.orelse:
            orelse, more = self.statements(loop.orelse, outer, None)
            names += more
            made.append(ast.copy_location(ast.If(_none_of([stop]), orelse, []), loop))
        if RETURNED not in names:
            return made, []
        if outer is None:
            return made, [RETURNED]
        return [*made, _assign(outer, _load(RETURNED), loop)], [RETURNED, outer]


def _returns_amid(body: Sequence[ast.stmt]) -> bool:
    """Whether something returns that does not end a branch that ends the function."""
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Return) or not _returns([statement]):
            continue
        if not isinstance(statement, ast.If) or not ends_with_return(statement.body):
            return True
        # What follows belongs to the branch that does not return.
        return _returns_amid(statement.body) or _returns_amid([*statement.orelse, *body[i + 1 :]])
    return False


def _has_no_end(statement: ast.stmt) -> bool:
    """Whether a loop is left by `return` only."""
    return (
        isinstance(statement, ast.While)
        and isinstance(statement.test, ast.Constant)
        and bool(statement.test.value)
        and not _has(statement.body, ast.Break)
    )


def ends_with_return(body: Sequence[ast.stmt]) -> bool:
    """Whether every way through statements ends with a `return`."""
    if not body:
        return False
    last = body[-1]
    both = isinstance(last, ast.If) and ends_with_return(last.body) and ends_with_return(last.orelse)
    return isinstance(last, ast.Return) or both


def _returns(body: Iterable[ast.stmt]) -> bool:
    return any(
        isinstance(each, ast.Return)
        or (isinstance(each, _BLOCKS) and _returns([*each.body, *getattr(each, "orelse", [])]))
        for each in body
    )


def _has(body: Iterable[ast.stmt], *kinds: type[ast.stmt]) -> bool:
    """Whether statements of a loop leave it, or its step."""
    for each in body:
        if isinstance(each, kinds):
            return True
        if isinstance(each, ast.If | ast.With) and _has([*each.body, *getattr(each, "orelse", [])], *kinds):
            return True
        if isinstance(each, _LOOPS) and _has(each.orelse, *kinds):
            return True
    return False


def _none_of(names: Sequence[str]) -> ast.expr:
    found = [_load(name) for name in names]
    return ast.UnaryOp(ast.Not(), found[0] if len(found) == 1 else ast.BoolOp(ast.Or(), found))


def _assign(name: str, value: ast.expr, at: ast.stmt) -> ast.Assign:
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), at)


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())
