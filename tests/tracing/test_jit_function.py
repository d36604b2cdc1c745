"""`xlalite.jit`: NumPy functions give NumPy's values and element types."""

import functools
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xlalite as xl
from xlalite.hlo.errors import TracingError

RNG = np.random.default_rng(3)
X32 = RNG.standard_normal((3, 4)).astype(np.float32)
X64 = RNG.standard_normal((3, 4))
N32 = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
POSITIVE = np.abs(X32) + np.float32(0.1)
Point = namedtuple("Point", ["x", "y"])


def check(function: Callable[..., Any], *arguments: Any) -> None:
    expected, found = function(*arguments), xl.jit(function)(*arguments)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        np.exp, np.log, np.log1p, np.expm1, np.sqrt, np.square, np.sin, np.cos, np.tan, np.tanh, np.sinh, np.cosh,
        np.arctan, np.floor, np.ceil, np.rint, np.negative, np.absolute, np.sign, np.reciprocal, np.isnan, np.isfinite,
        np.logical_not, np.sum, np.mean, np.max, np.min, np.prod, np.var, np.std, np.argmax, np.argmin, np.any, np.all,
        np.transpose, np.ravel, np.zeros_like, np.ones_like, np.cumsum, np.flip, np.squeeze,
    ],
)  # fmt: skip
def test_functions_of_one_array(function: Callable[..., Any]) -> None:
    check(lambda x: function(x), POSITIVE)


@pytest.mark.parametrize(
    "function",
    [np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.power, np.maximum, np.less,
     np.arctan2, np.not_equal, np.logical_and, np.fmod],
)  # fmt: skip
@pytest.mark.parametrize("second", [POSITIVE * 2, POSITIVE[0], np.float32(2), 2, 2.5, POSITIVE.astype(np.float64)])
def test_functions_of_two_arrays(function: Callable[..., Any], second: Any) -> None:
    check(lambda x, y: function(x, y), POSITIVE, second)
    check(lambda x: function(x, second), POSITIVE)


def test_element_types_are_numpys() -> None:
    check(lambda n: n / 2, N32)
    check(lambda n: np.sqrt(np.abs(n)), N32)
    check(lambda n: n.sum(), N32)
    check(lambda n: n.mean(axis=1), N32)
    check(lambda n: (n > 0) + (n < -5), N32)
    check(lambda n, x: n * x, N32, X32)
    check(lambda x, f: x * f + 1, X32, 2.5)
    check(lambda f: f * 2, 2.5)
    check(lambda n: n // 3 + n % 4, N32)
    check(lambda n: n & 3 | ~n ^ 1, N32)
    check(lambda x: np.where(x > 0, x, 0), X32)
    check(lambda x: np.clip(x, -0.5, None), X32)


def test_shapes() -> None:
    check(lambda x: x.T @ x, X32)
    check(lambda x: x @ x[0], X32)
    check(lambda x: x[0] @ x.T, X32)
    check(lambda x: x[0] @ x[1], X32)
    check(lambda x: np.dot(x, x.T) + np.dot(2.0, x[:, :3]), X64)
    check(lambda x: np.dot(x, np.ones((2, 4, 3))), X64)
    check(lambda x: np.outer(x, x[0]), X32)
    check(lambda x: x[1:, ::-1][:, None, 0], X32)
    check(lambda x: x.reshape(2, -1).transpose(1, 0), X32)
    check(lambda x: np.concatenate([x, x[:1]], axis=0).sum(0, keepdims=True), X32)
    check(lambda x: np.stack([x, x + 1], axis=-1), X32)
    check(lambda x: np.swapaxes(np.expand_dims(x, 0), 0, -1), X32)
    check(lambda x: np.broadcast_to(x[0], (5, 4)) * np.tile(x[0], (5, 1)), X32)
    check(lambda x: np.take(x, np.array([2, 0]), axis=1), X32)
    check(lambda x: np.full_like(x, 7) + np.cumsum(x, axis=1), X32)
    check(lambda x: sum(row * len(x) for row in x), X32)
    check(lambda x: np.float32(np.shape(x)[0] * np.ndim(x) * x.size) * x, X32)
    check(lambda x: np.exp(x - x.max(-1, keepdims=True)), X32)
    check(lambda x: x.var() + x.std(axis=0), X64)


def test_structures_of_arguments_and_results() -> None:
    @xl.jit
    def function(parameters: dict[str, Any], pair: Any, *, scale: Any = 1.0) -> Any:
        return {"sum": parameters["w"] + pair[0], "rest": [Point(pair[1] * scale, 3), (parameters["b"],)]}

    found = function({"w": X32, "b": 1}, (1.0, N32), scale=2)
    np.testing.assert_array_equal(found["sum"], X32 + 1)
    assert isinstance(found["rest"][0], Point)
    np.testing.assert_array_equal(found["rest"][0].x, N32 * 2)
    assert found["rest"][0].y == 3
    assert found["rest"][1] == (1,)


def test_each_signature_is_compiled_once_and_the_difference_is_kept() -> None:
    calls = []

    @xl.jit
    def double(x: Any) -> Any:
        calls.append(x.shape)
        return x * 2

    for size in (2, 2, 3, 2):
        np.testing.assert_array_equal(double(np.ones(size)), np.full(size, 2.0))
    assert calls == [(2,), (3,)]
    assert [each.verdict for each in double.decisions] == ["compiled", "compiled again"]
    assert double.decisions[1].subject == ("double", "x")
    assert double.executable(np.ones(2)).program_shape.result.elements[0].dims == (2,)
    assert double.__name__ == "double"


def test_a_function_may_call_itself_while_it_is_traced() -> None:
    box = [N32]

    @xl.jit(static_argnames="depth")
    def total(x: Any, depth: int) -> Any:
        return x if depth == 0 else x + total(box[0], depth - 1)

    np.testing.assert_array_equal(total(X32, 2), X32 + 2 * N32)
    assert len(total.decisions) == 3


def test_the_order_of_named_arguments_does_not_matter() -> None:
    weighted = xl.jit(lambda x, weight: x * weight)
    np.testing.assert_array_equal(weighted(x=X32, weight=N32), weighted(weight=N32, x=X32))
    assert len(weighted.decisions) == 1


def test_static_arguments_are_passed_as_they_are() -> None:
    @xl.jit(static_argnames=["power"], num_threads=1)
    def raised(x: Any, *, power: int) -> Any:
        result = x
        for _ in range(power - 1):
            result = result * x
        return result

    np.testing.assert_allclose(raised(X64, power=3), X64**3)
    np.testing.assert_allclose(raised(X64, power=2), X64**2)
    with pytest.raises(TypeError, match="hashable"):
        raised(X64, power=[2])


def test_xlalites_own_functions_can_be_used() -> None:
    def function(x: Any) -> Any:
        return xl.nn.softmax(x) * np.exp(x)

    found = xl.jit(function)(X32)
    soft = np.exp(X32) / np.exp(X32).sum(1, keepdims=True)
    np.testing.assert_allclose(found, soft * np.exp(X32), rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (lambda x: x if x.sum() > 0 else -x, X32, "no truth value"),
        (lambda x: float(x[0, 0]), X32, "no value"),
        (lambda x: np.linalg.eigvals(x), X32, "eigvals cannot be recorded"),
        (lambda x: x, "text", "type str"),
        (lambda x: x + xl.random_normal([4]), X32, "random"),
        (lambda x: x + 1, np.ma.masked_array(X32, X32 > 2), "its mask would be lost"),
        (lambda x: x + np.ma.masked_array(X32, X32 > 2), X32, "its mask would be lost"),
    ],
)
def test_what_cannot_be_recorded_is_an_error(function: Callable[..., Any], argument: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        xl.jit(function)(argument)


class Scale:
    """A model with a method that is compiled."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @xl.jit
    def apply(self, x: Any, shift: Any = None) -> Any:
        return x * self.factor if shift is None else x * self.factor + shift


def test_methods_are_bound_and_their_objects_are_static() -> None:
    two, three = Scale(2.0), Scale(3.0)
    for model in (two, three, two):
        np.testing.assert_array_equal(model.apply(X32), X32 * np.float32(model.factor))
    np.testing.assert_array_equal(two.apply(X32, X32), X32 * 3)
    np.testing.assert_array_equal(Scale.apply(two, X32, shift=None), X32 * 2)
    assert len(Scale.apply.decisions) == 4
    assert Scale.apply.decisions[1].reason == "a static argument changed"
    assert Scale.apply.decisions[1].subject == ("apply", "self")


def test_what_differed_is_named_as_the_function_names_it() -> None:
    function = xl.jit(lambda x, pair, *rest, n: (x + pair["a"]) * n + sum(rest), static_argnames="n")
    pair = {"a": X32, "b": X32}
    for arguments, n in (((X32, pair, X32), 2), ((X32, pair, X32), 3), ((X32, pair, X32[:1]), 3), ((X32, pair), 3)):
        function(*arguments, n=n)
    function(X32, {"a": X32[:1], "b": X32}, n=3)
    decisions = function.decisions
    assert [each.subject[1:] for each in decisions] == [(), ("n",), ("rest[0]",), (), ("pair (1 of 2)",)]
    assert decisions[1].numbers == {"before": "2", "now": "3"}


def test_programs_can_be_looked_at() -> None:
    lowered = xl.jit(lambda x: np.sin(x) + 1).lower(X32)
    assert "sine(" in lowered.as_text()
    assert "sine" in lowered.as_text("hlo")
    assert lowered.explain().splitlines()[0].endswith("first signature")
    np.testing.assert_allclose(lowered.compile()(X32)[0], np.sin(X32) + 1, rtol=1e-6)
    assert repr(lowered).startswith("<lowered")


def test_functions_compiled_by_themselves_are_parts_of_others() -> None:
    @xl.jit(static_argnames="n")
    def scaled(x, n=2):
        x *= n
        return x

    assert float(xl.jit(lambda x: np.sum(scaled(x, 3) + x))(X32)) == pytest.approx(float(np.sum(X32 * 4)), rel=1e-5)


@pytest.mark.parametrize("options", [{"static_argnames": "n"}, {"static_argnums": 1}, {"static_argnums": [-1]}])
def test_static_arguments_may_be_given_by_position_or_by_name(options: Any) -> None:
    repeat = xl.jit(lambda x, n: np.concatenate([x] * n), **options)
    for found in (repeat(X32, 2), repeat(X32, n=2)):
        np.testing.assert_array_equal(found, np.concatenate([X32, X32]))
    assert repeat(X32, 3).shape[0] == 3 * len(X32)


def test_static_arguments_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="static argument 'm' is none of x, n"):
        xl.jit(lambda x, n: x, static_argnames="m")
    with pytest.raises(ValueError, match="static argument 2 is none of its 2 positions"):
        xl.jit(lambda x, n: x, static_argnums=2)
    with pytest.raises(TypeError, match="static arguments must be hashable"):
        xl.jit(lambda x, n: x, static_argnums=1)(X32, X32)


@dataclass(frozen=True)
class Layer:
    """Parameters, one of them optional."""

    weights: Any
    bias: Any = None


def test_none_and_dataclasses_are_structure() -> None:
    @xl.jit
    def step(layer: Layer, x: Any) -> tuple[Layer, Any]:
        total = x * 2 if layer.bias is None else x * 2 + layer.bias
        return Layer(total, None if layer.bias is None else layer.bias + 1), None

    for layer in (Layer(X32), Layer(X32, X32)):
        found, nothing = step(layer, X32)
        assert nothing is None
        assert type(found) is Layer
        np.testing.assert_array_equal(found.weights, X32 * (2 if layer.bias is None else 3))
        assert (found.bias is None) == (layer.bias is None)
    assert xl.jit(lambda x: None)(X32) is None


def test_operators_that_assign_change_the_array_and_not_that_of_the_caller() -> None:
    def step(x: Any, y: Any) -> Any:
        same, copied = x, x.copy()
        x += y
        x *= 2
        return same, copied

    given = X32.copy()
    same, copied = xl.jit(step)(given, X32)
    np.testing.assert_array_equal(given, X32)
    np.testing.assert_array_equal(copied, X32)
    np.testing.assert_array_equal(same, X32 * 4)


def test_random_numbers_drawn_while_tracing_are_refused() -> None:
    with pytest.raises(TracingError, match=r"drew numbers from np.random while it was traced; .*xlalite.default_rng"):
        xl.jit(lambda x: x + np.random.random())(X32)


def test_a_changed_element_type_is_the_reason_for_a_compilation() -> None:
    double = xl.jit(lambda x: x + x)
    for argument in (X32, X32.astype(np.float64), X32[:1].astype(np.float64)):
        double(argument)
    reasons = [decision.reason for decision in double.decisions]
    assert reasons == ["first signature", "the element type of an argument changed", "the shape of an argument changed"]
    assert double.decisions[1].numbers["now"] == f"float64[{','.join(map(str, X32.shape))}]"


def test_operators_are_traced_to_the_line_of_the_user() -> None:
    text = xl.jit(lambda x: x - 1).executable(X32).as_text("hlo")
    assert "test_jit_function.py" in text
    assert "mixins.py" not in text


class Memory:
    """Somebody's array that speaks DLPack only."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_arrays_of_others_come_in_by_dlpack_and_buffers() -> None:
    double = xl.jit(lambda x: x * 2)
    np.testing.assert_array_equal(double(Memory(X32)), X32 * 2)
    np.testing.assert_array_equal(double(memoryview(X32)), X32 * 2)
    assert len(double.decisions) == 1


def test_arrays_of_any_byte_order_are_known() -> None:
    foreign = X32.astype(X32.dtype.newbyteorder())
    double = xl.jit(lambda x: x * 2)
    for given in (foreign, foreign, X32):
        assert double(given).dtype == np.float32
        np.testing.assert_array_equal(double(given), X32 * 2)
    np.testing.assert_array_equal(xl.jit(lambda x: x * foreign)(X32), X32 * X32)


def pair_of(x: Any) -> Any:
    return np.array([x, x * N32[0, 0]])


def powers_of(x: Any, n: int) -> Any:
    return pair_of(x) if n == 0 else powers_of(x, n - 1) * pair_of(x)


def test_functions_that_the_text_names_make_arrays_that_take_traced_ones() -> None:
    def filled(x: Any) -> Any:
        made = np.zeros(2)
        made[1] = x
        return made

    found = xl.jit(lambda x: powers_of(x, 2) + filled(x))(1.5)
    np.testing.assert_allclose(found, powers_of(1.5, 2) + filled(1.5))


def test_functions_some_of_whose_arguments_are_given():
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        def apply(self, x):
            y = np.zeros(3)
            y[:] = x * self.factor
            return y

        def __call__(self, x):
            return x * self.factor

    x = np.arange(3.0)
    partial = xl.jit(functools.partial(functools.partial(lambda a, b, c: a * b + c, b=2.0), c=x))
    np.testing.assert_array_equal(partial(x), 3 * x)
    assert "jit of <lambda>" in repr(partial)
    np.testing.assert_array_equal(xl.jit(Scaled(3).apply)(x), 3 * x)
    np.testing.assert_array_equal(xl.jit(Scaled(4))(x), 4 * x)
    with pytest.raises(ValueError, match="jit of Scaled: static argument 'z' is none of x"):
        xl.jit(Scaled(4), static_argnames="z")


def test_equal_numbers_of_the_text_are_one_constant_unless_their_bits_differ() -> None:
    def many(x: Any) -> Any:
        return (x * 2.0 + 2.0) / 2.0 + np.arctan2(0.0, x - 2.0) + np.arctan2(-0.0, x - 2.0)

    x = np.array([-1.0, 3.0])
    text = xl.jit(many).lower(x).as_text("hlo")
    assert [text.count(f"constant({number})") for number in ("2", "0", "-0")] == [1, 1, 1]
    np.testing.assert_allclose(xl.jit(many)(x), many(x))


def test_numbers_that_a_derivative_is_asked_for_are_not_those_of_the_text() -> None:
    @xl.jit
    def slopes(x):
        square = xl.value_and_grad(lambda y: y * 2.0 * x)(2.0)
        loop = xl.grad(lambda y: xl.fori_loop(0, 3, lambda i, z: z * y + 2.0, 2.0))(2.0)
        return *square, loop

    assert [float(each) for each in slopes(1.0)] == [4.0, 2.0, 34.0]
