"""What callers may rely on, whichever backend runs the module: errors, their causes, and whose memory results are."""

import threading
import traceback
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo.errors import ArgumentError, ExecutionError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.text import parse
from xlalite.hlo.types.literal import Token, Value

BACKENDS = ["cpu", "interpreter"]

CALL = """HloModule m
ENTRY e { x = f32[4] parameter(0)
  y = f32[4] negate(x)
  c = f32[4] custom-call(y), custom_call_target="test_target"
  ROOT r = f32[4] add(c, x) }"""
X = np.arange(4, dtype=np.float32)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def target(custom_target: Callable[..., None]) -> list[object]:
    """What the custom call of `CALL` does: gives, or raises, the last of these."""
    answers: list[object] = []

    def users_own_function(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
        answer = answers[-1]
        if isinstance(answer, BaseException):
            raise answer
        return answer(*operands) if callable(answer) else answer  # type: ignore[return-value]

    custom_target("test_target", users_own_function)
    return answers


def compiled(text: str, backend: str) -> Executable:
    return get_backend(backend).compile(parse(text), CompileOptions(use_cache=False))


def test_an_error_of_a_custom_call_is_the_cause(backend: str, target: list[object]) -> None:
    executable = compiled(CALL, backend)
    for error in (LookupError("no such row"), AssertionError("boom"), ExecutionError("inner")):
        target.append(error)
        with pytest.raises(ExecutionError, match=rf"^m: .*{error}") as caught:
            executable(X)
        assert caught.value.__cause__ is error
        assert "users_own_function" in "".join(traceback.format_exception(caught.value))
        assert "in custom-call target 'test_target' of" in error.__notes__[0]
    target.append(lambda y: -y)
    np.testing.assert_array_equal(executable(X), 2 * X)


def test_an_interrupt_in_a_custom_call_interrupts(backend: str, target: list[object]) -> None:
    target.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        compiled(CALL, backend)(X)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (np.zeros(3, np.float32), "f32[3]"),
        (np.zeros(4), "f64[4]"),
        (np.zeros(4, "U1"), r"an array of <U1 with sizes \[4\]"),
        ((np.zeros(4, np.float32), 1), r"\(f32\[4\], int\)"),
        (None, "NoneType"),
    ],
    ids=["sizes", "type", "strings", "tuple", "nothing"],
)
def test_a_custom_call_of_another_shape_is_refused(
    backend: str, target: list[object], answer: object, found: str
) -> None:
    target.append(answer)
    found = found.replace("[3]", r"\[3\]").replace("f64[4]", r"f64\[4\]")
    message = rf"custom-call: target 'test_target' gave {found}, expected f32\[4\] \(.*custom-call"
    with pytest.raises(ExecutionError, match=message):
        compiled(CALL, backend)(X)


def test_a_custom_call_cannot_write_to_its_operands(backend: str, target: list[object]) -> None:
    def overwrite(y: np.ndarray) -> np.ndarray:
        y[0] = 7
        return y

    target.append(overwrite)
    with pytest.raises(ExecutionError, match="read-only"):
        compiled(CALL.replace("custom-call(y)", "custom-call(x)"), backend)(X)
    np.testing.assert_array_equal(X, np.arange(4))


def test_threads_get_their_own_errors(backend: str, target: list[object]) -> None:
    def fail(y: np.ndarray) -> np.ndarray:
        raise LookupError(threading.current_thread().name)

    target.append(fail)
    executable = compiled(CALL, backend)
    causes: dict[str, object] = {}

    def call() -> None:
        for _ in range(20):
            try:
                executable(X)
            except ExecutionError as error:
                causes.setdefault(threading.current_thread().name, str(error.__cause__))

    threads = [threading.Thread(target=call, name=f"caller {number}") for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert causes == {thread.name: thread.name for thread in threads}


def test_a_shard_of_a_value_for_several_devices_is_no_value_on_one(backend: str) -> None:
    text = """HloModule m
ENTRY e { x = f32[8,8] parameter(0)
  ROOT s = f32[4,8] custom-call(x), custom_call_target="SPMDFullToShardShape" }"""
    with pytest.raises(ExecutionError, match=r"target 'SPMDFullToShardShape' gave f32\[8,8\], expected f32\[4,8\]"):
        compiled(text, backend)(np.ones((8, 8), np.float32))


ADD = """HloModule m
ENTRY e { x = f32[2] parameter(0)
  n = s8[] parameter(1)
  ROOT r = (f32[2], s8[]) tuple(x, n) }"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ma.masked_array([1, 2], [True, False], np.float32), 1), r"argument 0 is a masked array.*its mask would"),
        (([1j, 2], 1), r"argument 0 is \[1j, 2\] \(c128\); expected f32\[2\]"),
        ((np.ones(2), 1), r"argument 0 is f64\[2\]; expected f32\[2\]"),
        ((np.ones(3, np.float32), 1), r"argument 0 is f32\[3\]; expected f32\[2\]"),
        ((1.0, 1), r"argument 0 is f64\[\]|argument 0 is f32\[\]; expected f32\[2\]"),
        ((["a", "b"], 1), r"argument 0 is \['a', 'b'\]; expected f32\[2\]"),
        ((None, 1), r"argument 0 is .*; expected f32\[2\]"),
        (([1, 2], 1.5), r"argument 1 is 1.5 \(f64\); expected s8\[\]"),
        (([1, 2], 128), "argument 1 is 128, which does not fit into s8"),
        (([1, 2],), "1 arguments"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(backend: str, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        compiled(ADD, backend)(*arguments)


def test_long_and_deep_arguments_are_not_quoted_whole(backend: str) -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    for argument in (deep, [*range(100_000), []], [1 << 100] * 100_000):
        with pytest.raises(ArgumentError, match=r"argument 0 is \[.*; expected f32\[2\]") as caught:
            compiled(ADD, backend)(argument, 1)
        assert len(str(caught.value)) < 400


def test_results_share_no_memory_with_arguments_and_constants(backend: str) -> None:
    text = """HloModule m
ENTRY e { x = f32[2] parameter(0)
  c = f32[2] constant({1, 2})
  b = f32[3,2] broadcast(x), dimensions={1}
  ROOT r = (f32[2], (f32[2], f32[3,2])) tuple(x, t)
}""".replace("  ROOT", "  t = (f32[2], f32[3,2]) tuple(c, b)\n  ROOT")
    executable, x = compiled(text, backend), np.array([3, 4], np.float32)
    for _ in range(2):
        same, (constant, spread) = executable(x)  # type: ignore[misc, attr-defined]
        np.testing.assert_array_equal(constant, [1, 2])
        for result in (same, constant, spread):
            result[...] = 9
        np.testing.assert_array_equal(x, [3, 4])


def test_a_token_is_a_token(backend: str) -> None:
    text = "HloModule m\nENTRY e { t = token[] after-all()\n  ROOT r = (token[], token[]) tuple(t, t) }"
    assert compiled(text, backend)() == (Token(), Token())
