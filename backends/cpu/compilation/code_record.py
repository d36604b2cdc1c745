"""What is kept beside the code in the cache, so that it can be called without running a pass or writing IR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from xlalite.backends.cpu.emission.emitted_module import ClockedKernel
from xlalite.hlo.records import dataclass

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class CodeRecord:
    """What linking and calling need to know about code.

    Attributes:
        arena_bytes: Size of the scratch memory.
        donations: (input, output) pairs that share memory.
        has_loops: Whether the program has loops, so that its time does not follow from its arrays.
        meets: Whether devices meet in it.
        forks: Whether it hands work to other threads.
        evaluator_calls: HLO text of what the evaluator computes, by the name that the code calls.
        given_constants: Sizes of the constants that the code takes from the module as given, by name.
        clocked: The kernels whose times the code takes.
    """

    arena_bytes: int
    donations: tuple[tuple[int, int], ...]
    has_loops: bool
    meets: bool
    forks: bool
    evaluator_calls: Mapping[str, str]
    given_constants: Mapping[str, int]
    clocked: tuple[ClockedKernel, ...]

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> CodeRecord:
        """The record that `dataclasses.asdict` made, and JSON perhaps.

        Raises:
            KeyError: Something is missing.
            TypeError: Something is of another type.
            ValueError: A pair is none.
        """
        return CodeRecord(
            _typed(record["arena_bytes"], int),
            tuple((_typed(source, int), _typed(target, int)) for source, target in record["donations"]),
            _typed(record["has_loops"], bool),
            _typed(record["meets"], bool),
            _typed(record["forks"], bool),
            {name: _typed(text, str) for name, text in _typed(record["evaluator_calls"], dict).items()},
            {name: _typed(size, int) for name, size in _typed(record["given_constants"], dict).items()},
            tuple(
                (
                    _typed(name, str),
                    _typed(kind, str),
                    _typed(flops, int),
                    _typed(size, int),
                    _typed(dtype, str),
                    _typed(threads, int),
                )
                for name, kind, flops, size, dtype, threads in record["clocked"]
            ),
        )


def _typed(value: object, kind: type[_Kind]) -> _Kind:
    if not isinstance(value, kind):
        raise TypeError(f"found {type(value).__name__}, expected {kind.__name__}")
    return value
