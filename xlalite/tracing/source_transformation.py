"""`if`, `while` and `for` over a `range` of a function's text as calls that decide while tracing, or record.

    if x > 0:                  def then(x, y): y = 2 * x; return x, y
        y = 2 * x              def otherwise(x, y): return x, y
                               x, y = staged.branch(x > 0, then, otherwise, (x, y), ("x", "y"), line)

What the names stand for goes in and comes out, so that a branch or a loop can be run by Python or recorded. Statements
that leave others (`break`, `continue`, `return` in a loop) become truth values first (`leaving_statements.py`); in a
`try` they stay, and say so if what they depend on is traced.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xlalite.hlo.errors import TracingError
from xlalite.tracing import staged_control, staged_values
from xlalite.tracing.leaving_statements import RESULT, ends_with_return, stop_of, without_leaving

_STAGED, _VALUES = "__staged", "__values"
_BUILTINS = {"max": "largest", "min": "smallest", "int": "whole", "float": "fractional"}
_LEAVING = (
    ast.Return,
    ast.Break,
    ast.Continue,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Global,
    ast.Nonlocal,
    ast.Delete,
)


def with_staged_control(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose branches and loops are recorded where they depend on traced values.

    Raises:
        TracingError: Its text is not to be had, or it is no function of Python that a `def` makes.
    """
    if not isinstance(function, types.FunctionType):
        raise TracingError(f"control_flow=True needs a function that a def makes, found {function!r}")
    try:
        lines, first = inspect.getsourcelines(function)
        (definition,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, SyntaxError, ValueError) as error:
        raise TracingError(f"control_flow=True needs the text of {function.__name__}: {error}") from None
    if not isinstance(definition, ast.FunctionDef):
        raise TracingError(f"control_flow=True needs a def, found the text {ast.unparse(definition)!r}")
    definition.decorator_list = []
    ast.increment_lineno(definition, first - 1)
    made = _Transformer().scope(definition)
    free = function.__code__.co_freevars
    factory = ast.FunctionDef("factory", _parameters(free), [made, ast.Return(_name(made.name))], [])
    module = ast.fix_missing_locations(ast.Module([factory], []))
    outer = next(each for each in compile(module, function.__code__.co_filename, "exec").co_consts if _is_code(each))
    code = next(each for each in outer.co_consts if _is_code(each) and each.co_name == made.name)
    cells = dict(zip(free, function.__closure__ or (), strict=True))
    names = {**function.__globals__, _STAGED: staged_control, _VALUES: staged_values}
    closure = tuple(cells[name] for name in code.co_freevars)
    found = types.FunctionType(code, names, function.__name__, function.__defaults__, closure or None)
    found.__kwdefaults__ = function.__kwdefaults__
    return found


class _Transformer(ast.NodeTransformer):
    """Rewrites the statements of one function; those of functions within it in scopes of their own."""

    def __init__(self) -> None:
        self._locals: set[str] = set()
        self._count = 0

    def scope(self, definition: ast.FunctionDef) -> ast.FunctionDef:
        """A function with its own names."""
        definition.body = without_leaving(definition.body)
        outer, self._locals = self._locals, _bound_names(definition)
        definition.body = self._statements(_returning(definition.body))
        if RESULT in self._locals:
            given = ast.Return(_call("given", _later(_name(RESULT))))
            definition.body.append(ast.copy_location(given, definition.body[-1]))
        self._locals = outer
        return definition

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self.scope(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_If(self, node: ast.If) -> Any:
        returns = ends_with_return(node.body) and ends_with_return(node.orelse)
        if returns and not _leaves([*node.body[:-1], *node.orelse[:-1]], nested=True):
            return self._returned(node)
        raises = any(isinstance(each, ast.Raise) for each in [*node.body, *node.orelse])
        if raises or _leaves([*node.body, *node.orelse]):
            what = "an if with raise" if raises else "an if with return, break or continue"
            node.test = self._decided(node, what)
            return self.generic_visit(node)
        names = self._used([*node.body, *node.orelse])
        test = self.visit(node.test)
        then, otherwise = (
            self._function(kind, names, body, node) for kind, body in (("then", node.body), ("otherwise", node.orelse))
        )
        call = _call("branch", test, _name(then.name), _name(otherwise.name), *_state(names), _line(node))
        return [then, otherwise, *_assigned(names, call)]

    def visit_While(self, node: ast.While) -> Any:
        if node.orelse or _leaves(node.body):
            node.test = self._decided(node, "a while with return, break, continue or else")
            return self.generic_visit(node)
        names = self._used([*node.body, ast.Expr(node.test)])
        test = self._function("test", names, [], node, result=self.visit(node.test))
        body = self._function("body", names, node.body, node)
        call = _call("loop", _name(test.name), _name(body.name), *_state(names), _line(node))
        return [test, body, *_assigned(names, call)]

    def visit_For(self, node: ast.For) -> Any:
        match node:
            case ast.For(target=ast.Name(id=target), iter=ast.Call(func=ast.Name(id="range"), args=arguments)):
                limits = ast.Tuple([self.visit(each) for each in arguments], ast.Load())
            case _:
                return self._over_a_sequence(node)
        if node.orelse or _leaves(node.body):
            node.iter = _call("steps", limits, ast.Constant("a for with return, break, continue or else"), _line(node))
            node.body = self._statements(node.body)
            return node
        stop = stop_of(node)
        names = sorted({*self._used(node.body), target})
        body = self._function("body", names, node.body, node)
        said = (ast.Constant(target), ast.Constant(stop))
        call = _call("counted", limits, *said, _name(body.name), *_state(names), _line(node))
        return [body, *_assigned(names, call)]

    def _over_a_sequence(self, node: ast.For) -> ast.AST:
        """Python runs it; what follows a `break` that depends on traced values is guarded."""
        stop = stop_of(node)
        if stop is not None:
            self._count += 1
            each = f"__each_{self._count}"
            self._locals.add(each)
            taken = ast.Assign([node.target], _name(each))
            guarded = ast.If(ast.UnaryOp(ast.Not(), _name(stop)), [taken, *node.body], [])
            left = ast.If(_call("is_left", _name(stop)), [ast.Break()], [])
            node.iter = _call("sequence", self.visit(node.iter), _line(node))
            node.target = ast.Name(each, ast.Store())
            node.body = [*self._statements([ast.copy_location(guarded, node)]), left]
            return node
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_call("choice", node.test, _later(node.body), _later(node.orelse), _line(node)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "either"
        return ast.copy_location(_call(name, *map(_later, node.values)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_call("negated", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        sides = [node.left, *node.comparators]
        pairs = [ast.Compare(sides[i], [op], [sides[i + 1]]) for i, op in enumerate(node.ops)]
        return ast.copy_location(_call("both", *map(_later, pairs)), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS and node.func.id not in self._locals:
            node.func = _staged(_BUILTINS[node.func.id])
        return node

    def _returned(self, node: ast.If) -> list[ast.stmt]:
        """Branches that both end in `return`: what the chosen one gives is returned."""
        names = self._used([*node.body, *node.orelse])
        test = self.visit(node.test)
        sides = [
            self._returning(kind, names, body, node) for kind, body in (("then", node.body), ("otherwise", node.orelse))
        ]
        call = _call("returned", test, *(_name(each.name) for each in sides), *_state(names), _line(node))
        return [*sides, ast.copy_location(ast.Return(call), node)]

    def _returning(self, kind: str, names: Sequence[str], body: Sequence[ast.stmt], at: ast.stmt) -> ast.FunctionDef:
        last = body[-1]
        if not isinstance(last, ast.Return):
            made = self._function(kind, names, body, at, result=ast.Constant(None))
            made.body.pop()
            return made
        result = ast.Constant(None) if last.value is None else self.visit(last.value)
        return self._function(kind, names, body[:-1], at, result=result)

    def _statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            found += made if isinstance(made, list) else [made]
        return found

    def _function(
        self, kind: str, names: Sequence[str], body: Sequence[ast.stmt], at: ast.stmt, result: ast.expr | None = None
    ) -> ast.FunctionDef:
        self._count += 1
        given = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load()) if result is None else result
        made = ast.FunctionDef(
            f"__{kind}_{self._count}", _parameters(names), [*self._statements(body), ast.Return(given)], []
        )
        return ast.copy_location(made, at)

    def _used(self, body: Sequence[ast.AST]) -> list[str]:
        """The function's own names that statements look at or bind."""
        named = {each.id for statement in body for each in ast.walk(statement) if isinstance(each, ast.Name)}
        defined = {each.name for statement in body for each in ast.walk(statement) if isinstance(each, ast.FunctionDef)}
        return sorted((named | defined) & self._locals)

    def _decided(self, node: ast.If | ast.While, what: str) -> ast.expr:
        return ast.copy_location(_call("decided", self.visit(node.test), ast.Constant(what), _line(node)), node.test)


def _bound_names(definition: ast.FunctionDef) -> set[str]:
    """Parameters and what is assigned in the function itself."""
    given = definition.args
    found = {each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs]}
    found |= {each.arg for each in (given.vararg, given.kwarg) if each is not None}
    waiting: list[ast.AST] = list(definition.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp | ast.ClassDef):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        waiting += ast.iter_child_nodes(node)
    return found


def _returning(body: list[ast.stmt]) -> list[ast.stmt]:
    """What follows an `if` that ends in `return` as its other branch, so that both return."""
    for i, statement in enumerate(body):
        if isinstance(statement, ast.If) and ends_with_return(statement.body):
            rest = _returning([*statement.orelse, *body[i + 1 :]])
            if not ends_with_return(rest):
                rest = [*rest, ast.Return(ast.Constant(None))]
            made = ast.If(statement.test, _returning(statement.body), rest)
            return [*body[:i], ast.copy_location(made, statement)]
    return body


def _leaves(body: Iterable[ast.AST], nested: bool = False) -> bool:
    """Whether something in statements leaves them; loops keep their own `break` and `continue`."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        if isinstance(node, _LEAVING):
            return True
        inner = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.For | ast.While):
            inner = [each for each in inner if not isinstance(each, ast.Break | ast.Continue)]
            if any(isinstance(each, ast.Return) for part in inner for each in ast.walk(part)):
                return True
            continue
        if _leaves(inner):
            return True
    return False


def _parameters(names: Iterable[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _state(names: Sequence[str]) -> tuple[ast.expr, ast.expr]:
    """The values of names, of which some may have none yet, and the names."""
    values = [_call("local", ast.Constant(name), _later(_name(name))) for name in names]
    return ast.Tuple([*values], ast.Load()), ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _assigned(names: Sequence[str], call: ast.expr) -> list[ast.stmt]:
    if not names:
        return [ast.Expr(call)]
    return [ast.Assign([ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())], call)]


def _call(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_staged(function), list(arguments), [])


def _staged(name: str) -> ast.Attribute:
    return ast.Attribute(_name(_VALUES if hasattr(staged_values, name) else _STAGED), name, ast.Load())


def _later(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(_parameters(()), value)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _line(node: ast.stmt | ast.expr) -> ast.Constant:
    return ast.Constant(node.lineno)


def _is_code(value: object) -> bool:
    return isinstance(value, types.CodeType)
