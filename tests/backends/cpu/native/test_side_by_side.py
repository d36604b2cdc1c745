import threading

import pytest

from xlalite.backends.cpu.native import side_by_side as module
from xlalite.backends.cpu.native.side_by_side import side_by_side

LONG = ["a" * 2_000, "b" * 3_000, "c" * 4_000]


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_cpus", lambda: 3)


def test_texts_are_made_at_the_same_time() -> None:
    all_are_there = threading.Barrier(3, timeout=60)

    def make(text: str) -> int:
        all_are_there.wait()
        return len(text)

    assert side_by_side(make, LONG, threads=3) == {text: len(text) for text in LONG}


@pytest.mark.parametrize(("texts", "threads"), [(LONG, 1), (["a", "b", "c" * 9_000], 3), ([], 3)])
def test_caller_is_alone_where_others_are_not_wanted_or_have_little_to_do(texts: list[str], threads: int) -> None:
    made = side_by_side(lambda text: threading.current_thread(), texts, threads)
    assert set(made.values()) <= {threading.current_thread()}
    assert made.keys() == set(texts)


def test_longest_text_comes_first_and_equal_texts_once() -> None:
    order: list[str] = []
    side_by_side(order.append, [*LONG, *LONG], threads=1)
    assert order == LONG[::-1]


def test_what_goes_wrong_in_another_thread_is_raised_here_and_ends_the_work() -> None:
    caller, begun, failed = threading.current_thread(), list[str](), threading.Event()

    def make(text: str) -> None:
        begun.append(text)
        if threading.current_thread() is caller:
            assert failed.wait(60)
            return
        failed.set()
        raise ValueError("no code")

    with pytest.raises(ValueError, match="no code"):
        side_by_side(make, [*LONG, "d" * 100], threads=2)
    assert len(begun) < 4


def test_interruption_of_the_caller_waits_for_the_others() -> None:
    caller, entered, interrupted = threading.current_thread(), threading.Event(), threading.Event()
    finished: list[str] = []

    def make(text: str) -> None:
        if threading.current_thread() is caller:
            assert entered.wait(60)
            interrupted.set()
            raise KeyboardInterrupt
        entered.set()
        assert interrupted.wait(60)
        finished.append(text)

    with pytest.raises(KeyboardInterrupt):
        side_by_side(make, LONG, threads=2)
    assert finished
    assert not any(thread.name == "xlalite compiler" for thread in threading.enumerate())
