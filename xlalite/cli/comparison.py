"""Compares values with those of a reference: which elements differ, by how much, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

from xlalite.hlo.records import dataclass
from xlalite.hlo.tools.referee import Mask, Referee
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape, ShapeIndex

_SHOWN = 5
_DEFAULT_BOUNDS = {64: 1e-9, 32: 1e-4, 16: 2e-2, 8: 0.25}


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a number may be off: an element is wrong when it exceeds both bounds.

    Attributes:
        absolute: None for a bound that suits the element type.
        relative: None for a bound that suits the element type.
    """

    absolute: float | None = None
    relative: float | None = None

    def of(self, dtype: DType) -> tuple[float, float]:
        """The absolute and the relative bound for elements of a type; integers and predicates must be equal."""
        if not (dtype.is_floating or dtype.is_complex):
            return 0.0, 0.0
        bits = dtype.component.bits if dtype.is_complex else dtype.bits
        default = _DEFAULT_BOUNDS.get(bits, _DEFAULT_BOUNDS[8])
        return (
            default if self.absolute is None else self.absolute,
            default if self.relative is None else self.relative,
        )


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One wrong element."""

    index: tuple[int, ...]
    found: object
    expected: object
    relative: float
    ulps: float | None

    def __str__(self) -> str:
        ulps = "" if self.ulps is None else f", {self.ulps:.4g} ulps"
        where = "".join(f"[{i}]" for i in self.index) or "scalar"
        return f"{where}: found {self.found}, expected {self.expected} (relative error {self.relative:.3g}{ulps})"


@dataclass(frozen=True, slots=True)
class Rounding:
    """Elements that differ, and rightly so.

    Attributes:
        count: How many.
        found_error: The largest distance of what was found from the f64 value.
        expected_error: The largest distance of what was expected.
        spread: How far rounding alone was seen to move such an element.
    """

    count: int
    found_error: float
    expected_error: float
    spread: float

    def text(self, found: str, expected: str) -> str:
        """A line that names the platforms."""
        moved = "decides the value" if np.isinf(self.spread) else f"moves it by {self.spread:.2g}"
        return (
            f"{found} is {self.found_error:.2g} from the f64 value, {expected} {self.expected_error:.2g}: "
            f"both are rounding, which {moved}"
        )


@dataclass(frozen=True, slots=True)
class LeafComparison:
    """The comparison of one array.

    Attributes:
        index: Where in the result.
        shape: Its shape.
        wrong: How many elements are wrong.
        worst: The worst of them.
        largest_relative: The largest relative error of all elements, wrong or not.
        rounding: The elements that exceed the bounds and are not wrong; None when there are none.
        names: What was compared with what.
    """

    index: ShapeIndex
    shape: Shape
    wrong: int
    worst: tuple[Mismatch, ...]
    largest_relative: float
    rounding: Rounding | None = None
    names: tuple[str, str] = ("cpu", "interpreter")

    def __str__(self) -> str:
        """A line, and one more for each element shown."""
        name = "result" + "".join(f"{{{i}}}" for i in self.index)
        head = f"{name} {self.shape.text()}: "
        rounded = []
        if self.rounding is not None:
            of = f"{self.rounding.count} of {self.shape.element_count} elements"
            rounded = [f"{head}{of} differ by rounding: {self.rounding.text(*self.names)}"]
        if not self.wrong:
            text = "equal" if not self.largest_relative else f"close (at most {self.largest_relative:.3g})"
            return rounded[0] if rounded else head + text
        lines = [*rounded, f"{head}{self.wrong} of {self.shape.element_count} elements differ"]
        lines += [f"    {mismatch}" for mismatch in self.worst]
        if self.wrong > len(self.worst):
            lines.append(f"    and {self.wrong - len(self.worst)} more")
        return "\n".join(lines)


def compare(
    found: object,
    expected: object,
    shape: Shape,
    bounds: Bounds,
    referee: Callable[[], Referee | None] = lambda: None,
    names: tuple[str, str] = ("cpu", "interpreter"),
) -> list[LeafComparison]:
    """One comparison for each array of a result; tokens are equal.

    Args:
        found: A value.
        expected: Another one.
        shape: The shape of both.
        bounds: How far elements may be apart without a question.
        referee: Gives who is asked about those that are further apart; called only when there are any.
        names: Where the values come from.
    """
    leaves = zip(_leaves(found), _leaves(expected), shape.leaves(), strict=True)
    arrays = [(np.asarray(one), np.asarray(other), *place) for one, other, place in leaves if place[1].is_array]
    return [
        _compare_arrays(one, other, index, leaf, bounds, _Judge(referee, number), names)
        for number, (one, other, index, leaf) in enumerate(arrays)
    ]


@dataclass(frozen=True, slots=True)
class _Judge:
    """The referee for one array."""

    referee: Callable[[], Referee | None]
    number: int

    def rounding(self, found: Array, expected: Array, wrong: Mask) -> tuple[Mask, Rounding | None]:
        """Which of the elements are wrong all the same, and what is to be said of the others."""
        referee = self.referee() if wrong.any() else None
        if referee is None:
            return wrong, None
        opinion = referee.judge(self.number, found, expected, wrong)
        count = int(opinion.rounding.sum())
        rounding = Rounding(count, opinion.found_error, opinion.expected_error, opinion.spread) if count else None
        return wrong & ~opinion.rounding, rounding


def _leaves(value: object) -> Iterator[Value]:
    if isinstance(value, tuple):
        for element in value:
            yield from _leaves(element)
    else:
        yield value  # type: ignore[misc]  # what an executable returns


def _compare_arrays(
    found: Array,
    expected: Array,
    index: ShapeIndex,
    shape: Shape,
    bounds: Bounds,
    judge: _Judge,
    names: tuple[str, str],
) -> LeafComparison:
    absolute, relative = bounds.of(shape.dtype)
    wide = _wide(shape.dtype)
    with np.errstate(all="ignore"):
        one: Array = found.astype(wide)
        other: Array = expected.astype(wide)
        same = np.asarray(found == expected) | (np.isnan(one) & np.isnan(other))
        error = np.where(same, 0.0, np.abs(np.subtract(one, other)))
        error = np.where(np.isnan(error), np.inf, error)
        ratio = np.where(same, 0.0, error / np.abs(other))
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
        wrong = ~same & ~((error <= absolute) | (ratio <= relative)) if absolute or relative else ~same
    wrong, rounding = judge.rounding(found, expected, wrong)
    places = np.argwhere(wrong)
    order = np.argsort(-ratio[wrong], kind="stable")[:_SHOWN]
    worst = tuple(
        _mismatch(tuple(int(i) for i in place), found, expected, float(ratio[tuple(place)]), shape.dtype)
        for place in places[order]
    )
    largest = float(ratio.max()) if ratio.size else 0.0
    return LeafComparison(index, shape, len(places), worst, largest, rounding, names)


def _wide(dtype: DType) -> type:
    return np.complex128 if dtype.is_complex else np.float64


def _mismatch(place: tuple[int, ...], found: Array, expected: Array, relative: float, dtype: DType) -> Mismatch:
    return Mismatch(place, found[place], expected[place], relative, _ulps(found[place], expected[place], dtype))


def _ulps(found: object, expected: object, dtype: DType) -> float | None:
    """The distance in units in the last place of the expected number; None where that means nothing."""
    if not dtype.is_floating:
        return None
    one, other = float(found), float(expected)  # type: ignore[arg-type]  # elements of floating-point arrays
    if not (np.isfinite(one) and np.isfinite(other)):
        return None
    limits = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    exponent = np.frexp(abs(other))[1] - 1 if other else int(limits.minexp)
    spacing = 2.0 ** (max(int(exponent), int(limits.minexp)) - int(limits.nmant))
    return abs(one - other) / spacing if spacing else None
