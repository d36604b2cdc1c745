"""Branches and loops as functions of what names stand for: run by Python while that decides, otherwise recorded.

What a recorded body changes, by binding a name or by assigning to an array, is found by running it on copies: that is
what the program carries. Everything else stays the object that it is.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.function_graph import trace_function
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import TracingError, XlaliteError
from xlalite.hlo.records import dataclass
from xlalite.ops.functions import control_flow
from xlalite.tracing.leaving_statements import RESULT
from xlalite.tracing.promotion import as_tensor, common_type, converted, sizes
from xlalite.tracing.staged_values import is_traced, negated
from xlalite.tracing.traced_array import TracedArray

UNROLLED = 64
"""Counted loops of at most so many steps are run by Python."""

_NUMBERS = (bool, int, float, complex)


class Unbound:
    """What a name stands for that has no value, or has one in one branch only."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *others: Any) -> Any:
        raise TracingError(
            f"{self._name!r} has no value here: not every way through the branches or loops gives it one"
        )

    __getattr__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __array_ufunc__ = __getitem__ = __setitem__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __bool__ = _refuse
    __pow__ = __rpow__ = __floordiv__ = __mod__ = __and__ = __or__ = __matmul__ = __len__ = __iter__ = __call__ = (
        _refuse
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a program carries for a name.

    Attributes:
        structure: How its arrays nest.
        types: Their element types.
        shapes: Their sizes.
        weak: Which of them give way to the types of arrays.
        is_assigned: Whether the name stands for the same array all the time, which is assigned to.
    """

    structure: Any
    types: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...]
    weak: tuple[bool, ...]
    is_assigned: bool


def local(name: str, read: Callable[[], Any]) -> Any:
    """What a name stands for."""
    try:
        return read()
    except NameError:
        return Unbound(name)


def given(read: Callable[[], Any]) -> Any:
    """What a function gives that returns in several places."""
    found = local(RESULT, read)
    return None if isinstance(found, Unbound) else found


def decided(test: Any, what: str, line: int) -> Any:
    """A condition that must be known."""
    if is_traced(test):
        raise TracingError(
            f"line {line}: {what} inside cannot depend on {test!r}; give a name its value in each branch"
        )
    return test


def steps(limits: tuple[Any, ...], what: str, line: int) -> range:
    """A range that must be known."""
    for limit in limits:
        decided(limit, what, line)
    return range(*map(int, limits))


def choice(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], line: int) -> Any:
    """`then if test else otherwise`."""
    return returned(test, then, otherwise, (), (), line)


def returned(
    test: Any, then: Callable[..., Any], otherwise: Callable[..., Any], values: Sequence[Any], names: Any, line: int
) -> Any:
    """What the chosen branch gives."""

    def with_result(side: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: (*given, side(*given))

    return branch(test, with_result(then), with_result(otherwise), values, (*names, "the result"), line)[-1]


def branch(
    test: Any,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    values: Sequence[Any],
    names: Sequence[str],
    line: int,
) -> Sequence[Any]:
    """What names stand for after an `if`."""
    if not is_traced(test):
        found: Sequence[Any] = (then if test else otherwise)(*values)
        return found
    sides = [_looked_at(side, values) for side in (then, otherwise)]
    given = [*values, *[None] * (len(names) - len(values))]
    kinds: dict[int, _Kind] = {}
    results = list(given)
    for i, name in enumerate(names):
        ends = [side.results[i] for side in sides]
        if not any(side.is_changed(i) for side in sides):
            continue
        if name == RESULT:
            # Where nothing was returned yet, a truth value says so.
            ends = [each for each in ends if not isinstance(each, Unbound)] or [None]
        if any(isinstance(each, Unbound) for each in ends):
            results[i] = Unbound(name)
        elif all(each is None for each in ends):
            results[i] = None
        else:
            keeps = all(side.keeps_object(i) for side in sides)
            kinds[i] = _common(name, line, "the two branches", given[i], keeps, *ends)

    def run(side: Callable[..., Any]) -> Callable[[], list[Tensor]]:
        return lambda: _carried(side(*_copies(values)), kinds)

    made = control_flow.cond(_truth(test, line), run(then), run(otherwise), strict=True)
    return _taken_over(results, kinds, made, given)


def loop(
    test: Callable[..., Any], body: Callable[..., Any], values: Sequence[Any], names: Sequence[str], line: int
) -> Sequence[Any]:
    """What names stand for after a `while`."""
    while not is_traced(holds := test(*values)):
        if not holds:
            return values
        values = body(*values)
    return _recorded(test, body, values, names, line, None)


def sequence(values: Any, line: int) -> Any:
    """What a loop with a `break` goes over: it has an end, for the `break` may depend on traced values."""
    if not hasattr(values, "__len__") and not isinstance(values, enumerate | zip | reversed | builtins.map | filter):
        raise TracingError(f"line {line}: a for with break over {values!r} may have no end; use a range or a list")
    return values


def is_left(stop: Any) -> bool:
    """Whether Python's loop over a sequence ends; what depends on traced values guards its steps instead."""
    return not is_traced(stop) and bool(stop)


def counted(
    limits: tuple[Any, ...],
    target: str,
    stop_name: str | None,
    body: Callable[..., Any],
    values: Sequence[Any],
    names: Any,
    line: int,
) -> Sequence[Any]:
    """What names stand for after a `for` over a `range`, which ends early when `stop_name` holds."""
    place = names.index(target)
    flag = None if stop_name is None else names.index(stop_name)

    def at(number: Any, given: Sequence[Any]) -> list[Any]:
        return [number if i == place else each for i, each in enumerate(given)]

    start, stop, step = {1: (0, *limits, 1), 2: (*limits, 1), 3: limits}[len(limits)]
    if is_traced(step):
        raise TracingError(f"line {line}: the step of a range must be known, found {step!r}")
    numbers = None if is_traced(start) or is_traced(stop) else range(int(start), int(stop), int(step))

    def recorded(values: Sequence[Any], numbers: range | None) -> Sequence[Any]:
        def following(number: Any, *given: Any) -> Sequence[Any]:
            return number + int(step), *body(*at(number, given))

        def holds(number: Any, *given: Any) -> Any:
            goes_on = np.less(number, stop) if step > 0 else np.greater(number, stop)
            return goes_on if flag is None else np.logical_and(goes_on, np.logical_not(given[flag]))

        begin: Any = start if numbers is None else numbers.start
        first = TracedArray(as_tensor(begin if is_traced(begin) else np.int64(begin)), True)
        state = values if flag is not None else at(Unbound(target), values)
        found = _recorded(holds, following, (first, *state), ("the number", *names), line, numbers)[1:]
        last = Unbound(target) if not numbers else numbers[-1]
        return found if flag is not None else at(last, found)

    if numbers is None:
        return recorded(values, None)
    if len(numbers) > UNROLLED and flag is None:
        # Slices whose sizes differ, lists that grow: Python runs what a program cannot.
        try:
            return recorded(values, numbers)
        except (XlaliteError, TypeError, IndexError, ValueError):
            pass
    for i, number in enumerate(numbers):
        if flag is not None and is_traced(values[flag]):
            return _rest_of(numbers[i:], recorded, lambda one, *given: body(*at(one, given)), values, names, flag, line)
        if flag is not None and values[flag]:
            break
        values = body(*at(number, values))
    return values


def _rest_of(
    numbers: range,
    recorded: Callable[[Sequence[Any], range], Sequence[Any]],
    step: Callable[..., Sequence[Any]],
    values: Sequence[Any],
    names: Any,
    flag: int,
    line: int,
) -> Sequence[Any]:
    """What names stand for after the steps that are left of a loop that values may end."""
    try:
        return recorded(values, numbers)
    except (XlaliteError, TypeError, IndexError, ValueError):
        if len(numbers) > UNROLLED:
            raise
    for number in numbers:
        values = branch(
            negated(values[flag]), functools.partial(step, number), lambda *given: given, values, names, line
        )
    return values


def _recorded(
    test: Callable[..., Any],
    body: Callable[..., Any],
    values: Sequence[Any],
    names: Sequence[str],
    line: int,
    numbers: range | None,
) -> Sequence[Any]:
    kinds: dict[int, _Kind] = {}
    seen = _looked_at(body, values)
    for _ in range(8):
        before = dict(kinds)
        for i, name in enumerate(names):
            if i in kinds or seen.is_changed(i):
                start = values[i] if not isinstance(values[i], Unbound) else seen.results[i]
                ends = [start, seen.results[i]]
                ends += _as_kind(kinds.get(i))
                kinds[i] = _common(name, line, "the start and an iteration", values[i], seen.keeps_object(i), *ends)
        if kinds == before:
            break
        seen = _looked_at(body, values, kinds)

    def given(carried: Sequence[Tensor]) -> list[Any]:
        return _with(values, kinds, carried)

    starts = [
        tensor
        for i, kind in kinds.items()
        for tensor in (_zeros(kind) if isinstance(values[i], Unbound) else _leaves_as(values[i], kind))
    ]
    made = control_flow.while_loop(
        lambda *state: _truth(test(*given(state)), line),
        lambda *state: _carried(body(*given(state)), kinds),
        starts,
        maximum_iterations=None if numbers is None else len(numbers),
        return_same_structure=True,
    )
    return _taken_over(list(values), kinds, list(made), values)


class _looked_at:
    """What a body gives for copies, from a graph that is thrown away.

    Attributes:
        results: What it gives.
    """

    def __init__(self, body: Callable[..., Any], values: Sequence[Any], kinds: dict[int, _Kind] | None = None) -> None:
        self.results: Sequence[Any] = ()

        def look(carried: tuple[Tensor, ...]) -> Sequence[Tensor]:
            self._given = _with(values, kinds or {}, carried) if kinds else _copies(values)
            self._versions = [each._version if isinstance(each, TracedArray) else 0 for each in self._given]
            self._before = [each.known.copy() if _is_known(each) else None for each in self._given]
            self._lists = [list(each) if isinstance(each, list) else None for each in self._given]
            self.results = body(*self._given)
            return ()

        signature = [
            (as_dtype(dtype), TensorShape(dims))
            for kind in (kinds or {}).values()
            for dtype, dims in zip(kind.types, kind.shapes, strict=True)
        ]
        trace_function("look", get_default_graph(), signature, look)

    def keeps_object(self, i: int) -> bool:
        """Whether a name stands for the same object as before."""
        return i < len(self._given) and self.results[i] is self._given[i]

    def is_changed(self, i: int) -> bool:
        """Whether a name stands for something else, or for something that was assigned to."""
        if not self.keeps_object(i):
            return True
        found, before, listed = self.results[i], self._before[i], self._lists[i]
        if listed is not None:
            return len(listed) != len(found) or any(a is not b for a, b in zip(listed, found, strict=True))
        if not isinstance(found, TracedArray):
            return False
        if before is None:
            return found.known is None and found._version > self._versions[i]
        return found.known is None or not np.array_equal(found.known, before, equal_nan=before.dtype.kind in "fc")


def _copies(values: Sequence[Any]) -> list[Any]:
    """What a body may assign to without consequences; views are views of the copies."""
    made: dict[int, TracedArray] = {}

    def copy(x: TracedArray) -> TracedArray:
        if id(x) not in made:
            base, view = x._base, x._view
            has_views = any(isinstance(each, TracedArray) and each._base is not None for each in values)
            if base is not None and view is not None:
                made[id(x)] = copy(base).view_through(view)
            else:
                made[id(x)] = TracedArray(x.tensor, x.is_weak) if has_views or x.known is None else x.copy()
        return made[id(x)]

    return [
        copy(each) if isinstance(each, TracedArray) else list(each) if isinstance(each, list) else each
        for each in values
    ]


def _with(values: Sequence[Any], kinds: dict[int, _Kind], carried: Sequence[Tensor]) -> list[Any]:
    """Copies, with what is carried in its places."""
    found, rest = _copies(values), iter(carried)
    for i, kind in kinds.items():
        tensors = [next(rest) for _ in kind.types]
        if kind.is_assigned:
            found[i].assign(tensors[0])
        else:
            arrays = [TracedArray(each, weak) for each, weak in zip(tensors, kind.weak, strict=True)]
            found[i] = rebuild(kind.structure, arrays)
    return found


def _carried(results: Sequence[Any], kinds: dict[int, _Kind]) -> list[Tensor]:
    return [
        tensor
        for i, kind in kinds.items()
        for tensor in (_zeros(kind) if isinstance(results[i], Unbound) else _leaves_as(results[i], kind))
    ]


def _leaves_as(value: Any, kind: _Kind) -> list[Tensor]:
    return [converted(leaf, as_dtype(dtype)) for leaf, dtype in zip(flatten(value)[0], kind.types, strict=True)]


def _zeros(kind: _Kind) -> list[Tensor]:
    return [as_tensor(np.zeros(dims, dtype)) for dims, dtype in zip(kind.shapes, kind.types, strict=True)]


def _as_kind(kind: _Kind | None) -> list[Any]:
    """Something of a kind, to be combined with others."""
    if kind is None:
        return []
    leaves = [
        TracedArray(as_tensor(np.zeros(dims, dtype)), weak)
        for dims, dtype, weak in zip(kind.shapes, kind.types, kind.weak, strict=True)
    ]
    return [rebuild(kind.structure, leaves)]


def _common(name: str, line: int, where: str, old: Any, keeps: bool, *values: Any) -> _Kind:
    """What holds all of several values; `old` is what the name stood for, and perhaps still does."""
    name = "the result" if name == RESULT else name
    flat = [flatten(each) for each in values]
    if any(structure != flat[0][1] for _, structure in flat):
        raise TracingError(f"line {line}: {name} is nested differently in {where}")
    types, shapes, weak = [], [], []
    for leaves in zip(*[leaves for leaves, _ in flat], strict=True):
        for leaf in leaves:
            if not isinstance(leaf, TracedArray | np.ndarray | np.generic | bool | int | float | complex | Tensor):
                raise TracingError(f"line {line}: {name} changes and is no array or number in {where}, but {leaf!r}")
        dims = {sizes(leaf) for leaf in leaves}
        if len(dims) > 1:
            found = " and ".join(map(str, sorted(dims)))
            raise TracingError(f"line {line}: {name} has different shapes in {where}: {found}")
        types.append(common_type(*leaves))
        shapes.append(dims.pop())
        weak.append(all(leaf.is_weak if isinstance(leaf, TracedArray) else type(leaf) in _NUMBERS for leaf in leaves))
    is_assigned = (
        keeps and isinstance(old, TracedArray) and [(old.shape, old.dtype)] == [*zip(shapes, types, strict=True)]
    )
    return _Kind(flat[0][1], tuple(types), tuple(shapes), tuple(weak), is_assigned)


def _taken_over(
    results: list[Any], kinds: dict[int, _Kind], made: Sequence[Tensor], before: Sequence[Any]
) -> list[Any]:
    """The results with what the program gives; arrays that were assigned to are so for all who see them."""
    rest = iter(made)
    for i, kind in kinds.items():
        tensors = [next(rest) for _ in kind.types]
        if kind.is_assigned:
            before[i].assign(tensors[0])
            results[i] = before[i]
        else:
            arrays = [TracedArray(each, weak) for each, weak in zip(tensors, kind.weak, strict=True)]
            results[i] = rebuild(kind.structure, arrays)
    return results


def _truth(test: Any, line: int) -> Tensor:
    if sizes(test):
        raise TracingError(
            f"line {line}: the truth value of an array with more than one element is ambiguous: {test!r}"
        )
    return as_tensor(np.not_equal(test, 0) if test.dtype != np.bool_ else test)


def _is_known(value: Any) -> bool:
    return isinstance(value, TracedArray) and value.known is not None
