"""`xlalite.profile`: what ran meanwhile, kernel by kernel."""

import threading
from contextlib import suppress

import numpy as np
import pytest

import xlalite as tf
import xlalite as xl
from xlalite.client.config import ConfigProto, OptimizerOptions
from xlalite.client.profile import Profile
from xlalite.hlo.errors import ExecutionError

SQUARES = """HloModule squares
ENTRY e { x = f64[999] parameter(0)
  ROOT r = f64[999] multiply(x, x) }"""


def counts(profile: Profile) -> dict[str, int]:
    """How often each program ran."""
    return {program.total.name: program.total.calls for program in profile.programs}


def test_functions_are_measured_meanwhile_and_neither_before_nor_after() -> None:
    @xl.jit
    def scaled(x: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.exp(x) @ x.T
        return result

    x = np.random.default_rng(0).normal(size=(64, 48)).astype(np.float32)
    expected = scaled(x)
    with xl.profile() as profile:
        for _ in range(3):
            np.testing.assert_array_equal(scaled(x), expected)
    scaled(x)
    assert counts(profile) == {"scaled": 3}
    (program,) = profile.programs
    assert {kernel.kind for kernel in program.kernels} >= {"dot"}
    assert all(kernel.calls == 3 for kernel in program.kernels)
    assert 0 < program.total.time_ns < 1e9 * profile.seconds
    with pytest.raises(ExecutionError, match="profile=True"):
        scaled.executable(x).kernel_profile()


def test_what_is_compiled_inside_is_compiled_for_itself_outside() -> None:
    @xl.jit
    def doubled(x: np.ndarray) -> np.ndarray:
        result: np.ndarray = x + x
        return result

    x = np.ones(100)
    with xl.profile() as profile:
        doubled(x)
    assert counts(profile) == {"doubled": 1}
    with pytest.raises(ExecutionError, match="profile=True"):
        doubled.executable(x).kernel_profile()


def test_executables_and_other_threads() -> None:
    squares = xl.compile(xl.hlo.parse(SQUARES))
    loaded = xl.load_executable(squares.serialize())
    x = np.arange(999.0)
    with xl.profile() as profile:
        threads = [threading.Thread(target=squares, args=(x,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(squares(x), x * x)
        np.testing.assert_array_equal(loaded(x), x * x)  # nobody knows its program
    np.testing.assert_array_equal(squares(x), x * x)
    assert counts(profile) == {"squares": 5}


def test_profiles_count_what_ran_in_them_and_lie_within_each_other() -> None:
    squares = xl.compile(xl.hlo.parse(SQUARES), options=xl.CompileOptions(profile=True))
    x = np.arange(999.0)
    squares(x)
    with xl.profile() as outer:
        squares(x)
        with xl.profile() as inner:
            squares(x)
        squares(x)
    assert (counts(outer), counts(inner)) == ({"squares": 3}, {"squares": 1})
    assert squares.kernel_profile().total.calls == 4


def test_clusters_of_sessions_are_measured() -> None:
    v = tf.Variable(tf.ones([40, 40]))
    step = v.assign(tf.matmul(v, v) / 40)
    config = ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = OptimizerOptions.ON_1
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        with xl.profile() as profile:
            for _ in range(3):
                session.run(step)
        assert list(counts(profile).values()) == [3]
        np.testing.assert_allclose(session.run(v), np.ones((40, 40)))
        assert "1 compilation" in str(session.jit_report())


def test_an_error_ends_it() -> None:
    squares = xl.compile(xl.hlo.parse(SQUARES))
    with suppress(KeyError), xl.profile() as profile:
        squares(np.arange(999.0))
        raise KeyError
    assert counts(profile) == {"squares": 1}
    with pytest.raises(ExecutionError, match="profile=True"):
        squares.kernel_profile()


def test_report_and_page() -> None:
    squares = xl.compile(xl.hlo.parse(SQUARES))
    with xl.profile() as profile:
        squares(np.arange(999.0))
        xl.compile(xl.hlo.parse(SQUARES), options=xl.CompileOptions(use_cache=False))
    lines = str(profile).splitlines()
    assert " in programs, " in lines[0]
    assert lines[2].startswith("compiled squares in ")
    (title,) = (line for line in lines if line.startswith("kernel "))
    assert title.split() == ["kernel", "kind", "calls", "threads", "ms", "share", "GB/s", "GFLOP/s", "roof"]
    page = profile._repr_html_()
    assert page.startswith("<pre>")
    assert page.count("<circle") == 1
    with xl.profile() as nothing:
        pass
    assert "<svg" not in nothing._repr_html_()
