"""Texts made into something by several threads, in a library that lets others run meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from xlalite.backends.cpu.native.threads import available_cpus

Made = TypeVar("Made")

_FEWEST_CHARACTERS = 1_500
"""What must be left beside the longest text for a second thread to be worth its start."""


def side_by_side(make: Callable[[str], Made], texts: Iterable[str], threads: int) -> dict[str, Made]:
    """What `make` makes of each text, the longest first, in this thread and as many others as there are processors.

    What it raises in any of them is raised here, and nothing more is begun.
    """
    waiting = sorted(dict.fromkeys(texts), key=len)
    made: dict[str, Made] = {}
    problems: list[Exception] = []

    def work() -> None:
        while True:
            try:
                text = waiting.pop()
            except IndexError:
                return
            made[text] = make(text)

    def help_out() -> None:
        try:
            work()
        except Exception as problem:
            problems.append(problem)
            waiting.clear()

    is_worth_it = sum(map(len, waiting[:-1])) > _FEWEST_CHARACTERS
    count = min(threads, available_cpus(), len(waiting)) - 1 if is_worth_it else 0
    helpers = [threading.Thread(target=help_out, name="xlalite compiler") for _ in range(count)]
    try:
        for helper in helpers:
            helper.start()
        work()
    finally:
        waiting.clear()
        for helper in helpers:
            if helper.ident is not None:
                helper.join()
    if problems:
        raise problems[0]
    return made
