"""What a process has one of is made once, whoever asks first."""

from __future__ import annotations

import threading
import time

import pytest

from xlalite.backends.cpu.native.once import once


def test_threads_that_ask_at_once_get_the_same() -> None:
    together = threading.Barrier(8)

    @once
    def thing() -> object:
        time.sleep(0.01)
        return object()

    found: list[object] = []

    def ask() -> None:
        together.wait()
        found.append(thing())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_what_failed_is_tried_again() -> None:
    answers = iter([None, "made"])

    @once
    def thing() -> str:
        answer = next(answers)
        if answer is None:
            raise OSError("not yet")
        return answer

    with pytest.raises(OSError, match="not yet"):
        thing()
    assert thing() == thing() == "made"
