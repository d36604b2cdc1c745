"""The evaluator as a driver: arguments, order, nested calls, memory; one test for each promise."""

import sys
import weakref
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.evaluation.evaluator import Evaluator, evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal, Token
from xlalite.hlo.types.shape import Shape

F32_3 = Shape.array(DType.F32, (3,))


def doubling():
    builder = Builder("doubling")
    x = builder.parameter(F32_3, "x")
    return builder.build(x + x)


def test_modules_and_computations_evaluate_alike():
    builder = Builder("main")
    x = builder.parameter(F32_3)
    module = builder.build_module(x * 2.0)
    argument = np.array([1, 2, 3], np.float32)
    for program in (module, module.entry_computation):
        np.testing.assert_array_equal(evaluate(program, argument), [2, 4, 6])


def test_numbers_lists_and_literals_are_arguments():
    for argument in ([1, 2, 3], (1.0, 2.0, 3.0), Literal(np.array([1, 2, 3], np.float32)), np.float32([1, 2, 3])):
        found = evaluate(doubling(), argument)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, [2, 4, 6])


def test_arguments_may_lie_anywhere_in_memory():
    strided = np.arange(6, dtype=np.float32)[::-2]
    np.testing.assert_array_equal(evaluate(doubling(), strided), [10, 6, 2])
    swapped = np.array([1, 2, 3], ">f4")
    found = evaluate(doubling(), swapped)
    np.testing.assert_array_equal(found, [2, 4, 6])
    assert found.dtype.isnative


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "doubling: found 0 arguments, expected 1"),
        (([1.0, 2.0, 3.0], 1), "doubling: found 2 arguments, expected 1"),
        ((np.zeros(2, np.float32),), r"doubling, parameter 0 \(%x\): found sizes \[2\], expected f32\[3\]"),
        ((np.zeros((3, 1), np.float32),), r"found sizes \[3, 1\], expected f32\[3\]"),
        ((np.zeros(3),), r"found element type f64, expected f32\[3\]"),
        ((np.zeros(3, np.int32),), r"found element type s32, expected f32\[3\]"),
        ((["a", "b", "c"],), r"found element type <U1, expected f32\[3\]"),
        (([1j, 2, 3],), r"found element type c128, expected f32\[3\]"),
        ((np.ma.masked_array(np.zeros(3, np.float32), [0, 1, 0]),), r"found a masked array, expected f32\[3\]"),
        (([[1], [2, 3]],), r"found no array, expected f32\[3\]"),
        ((Token(),), r"found Token, expected f32\[3\]"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments, message):
    with pytest.raises(EvaluationError, match=message):
        evaluate(doubling(), *arguments)


def test_numbers_out_of_range_are_rejected():
    builder = Builder("main")
    computation = builder.build(builder.parameter(Shape.array(DType.S8)))
    assert evaluate(computation, 127) == 127
    for wrong in (128, 1.5):
        with pytest.raises(EvaluationError, match="out of range"):
            evaluate(computation, wrong)


def test_tuples_go_in_and_out():
    builder = Builder("main")
    pair = builder.parameter(Shape.tuple([F32_3, Shape.array(DType.S32)]))
    computation = builder.build(builder.tuple([pair[1], builder.tuple([pair[0]])]))
    number, (vector,) = evaluate(computation, ([1, 2, 3], 7))
    assert number == 7
    np.testing.assert_array_equal(vector, [1, 2, 3])
    with pytest.raises(EvaluationError, match=r"parameter 0 \(%p0\): found 1 values, expected a tuple"):
        evaluate(computation, ([1, 2, 3],))
    with pytest.raises(EvaluationError, match=r"element 1: found sizes \[2\]"):
        evaluate(computation, ([1, 2, 3], [7, 8]))


def test_zero_dimensional_and_empty_arrays_stay_arrays():
    for dims in ((), (0,), (2, 0)):
        builder = Builder("main")
        x = builder.parameter(Shape.array(DType.F32, dims))
        found = evaluate(builder.build(x + x), np.ones(dims, np.float32))
        assert isinstance(found, np.ndarray)
        assert found.shape == dims


def test_long_chains_do_not_recurse():
    builder = Builder("main")
    x = builder.parameter(Shape.array(DType.F32))
    value = x
    for _ in range(5000):
        value = value + x
    assert evaluate(builder.build(value), np.float32(1)) == 5001


def test_values_are_freed_after_their_last_use(custom_target: Callable[..., None]) -> None:
    values, most_alive = [], 0

    def make(instruction, operands, call):
        nonlocal most_alive
        value = operands[0] + 1
        values.append(weakref.ref(value))
        most_alive = max(most_alive, sum(reference() is not None for reference in values))
        return value

    custom_target("test.made", make)
    chain = "".join(f'  v{i} = f32[3] custom-call(v{i - 1}), custom_call_target="test.made"\n' for i in range(1, 51))
    result = evaluate(parse(f"ENTRY e {{ v0 = f32[3] parameter(0)\n{chain}}}"), np.zeros(3, np.float32))
    np.testing.assert_array_equal(result, [50, 50, 50])
    assert most_alive == 2


def test_arguments_are_neither_changed_nor_refused_when_they_must_not_be_written():
    for is_writeable in (True, False):
        x = np.array([1, 2, 3], np.float32)
        x.setflags(write=is_writeable)
        np.testing.assert_array_equal(evaluate(doubling(), x), [2, 4, 6])
        np.testing.assert_array_equal(x, [1, 2, 3])


@pytest.mark.parametrize(
    ("root", "is_second_before_first", "order"),
    [
        ("tuple(first, second)", False, ["first", "second"]),
        ("tuple(first, second)", True, ["second", "first"]),
        ("tuple(first, first)", False, ["first"]),
        ("tuple(first, first)", True, ["second", "first"]),
    ],
)
def test_what_is_needed_runs_once_and_in_order(
    root: str, is_second_before_first: bool, order: list[str], custom_target: Callable[..., None]
) -> None:
    ran: list[str] = []

    def note(instruction, operands, call):
        ran.append(instruction.name)
        return operands[0]

    custom_target("test.noted", note)
    calls = [f'  {name} = f32[3] custom-call(x), custom_call_target="test.noted"\n' for name in ("first", "second")]
    text = f"ENTRY e {{ x = f32[3] parameter(0)\n{''.join(calls)}  ROOT r = (f32[3], f32[3]) {root} }}"
    entry = parse(text).entry_computation
    if is_second_before_first:
        entry.find("first").add_control_predecessor(entry.find("second"))
    evaluate(entry, np.zeros(3, np.float32))
    assert ran == order


def test_numerical_errors_are_silent():
    builder = Builder("main")
    x = builder.parameter(F32_3)
    root = builder.op("log", (x / (x - x),))
    evaluate(builder.build(root), np.array([1, 0, -1], np.float32))


def test_scalar_computations_take_whole_arrays():
    """What reduce, map and sort rely on: elementwise evaluators look at types and values, not at declared sizes."""
    builder = Builder("clip")
    scalar = Shape.array(DType.F32)
    x, y = builder.parameter(scalar), builder.parameter(scalar)
    smaller = builder.compare(x, y, "LT")
    root = builder.tuple([builder.select(smaller, x, y), builder.convert(smaller, DType.S32), x * 2.0])
    a, b = np.array([[1, 5], [3, 2]], np.float32), np.array([2, 4], np.float32)
    least, flag, double = Evaluator().call(builder.build(root), (a, b))
    np.testing.assert_array_equal(least, [[1, 4], [2, 2]])
    np.testing.assert_array_equal(flag, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(double, a * 2)


def test_errors_say_which_instruction_failed():
    builder = Builder("main")
    x = builder.parameter(F32_3, "x")
    computation = builder.build(builder.op("negate", (x,), name="minus"))
    with pytest.raises(EvaluationError, match="expected an array") as caught:
        Evaluator().call(computation, (Token(),))
    assert "%minus" in caught.value.__notes__[0]


def test_tokens_order_values():
    builder = Builder("main")
    x, token = builder.parameter(F32_3), builder.parameter(Shape.token())
    computation = builder.build(builder.op("add-dependency", (x, token)))
    np.testing.assert_array_equal(evaluate(computation, [1, 2, 3], Token()), [1, 2, 3])


def test_copies_and_barriers_give_their_operand():
    builder = Builder("main")
    pair = builder.tuple([builder.parameter(F32_3), builder.parameter(Shape.array(DType.PRED))])
    root = builder.op("opt-barrier", (builder.op("copy", (pair,)),))
    vector, flag = evaluate(builder.build(root), [1, 2, 3], True)
    np.testing.assert_array_equal(vector, [1, 2, 3])
    assert flag


def test_a_trip_of_a_loop_calls_few_functions() -> None:
    """A trip calls what its operations need: plans, constants and NumPy's settings are there."""
    text = """HloModule m
c { i = s32[] parameter(0)
    n = s32[] constant(1000)
    ROOT r = pred[] compare(i, n), direction=LT }
b { i = s32[] parameter(0)
    one = s32[] constant(1)
    ROOT j = s32[] add(i, one) }
ENTRY e { z = s32[] constant(0)
    ROOT w = s32[] while(z), condition=c, body=b }"""
    module = parse(text)
    calls = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        result = evaluate(module)
    finally:
        sys.setprofile(None)
    assert result == 1000
    assert calls < 40 * 1000
