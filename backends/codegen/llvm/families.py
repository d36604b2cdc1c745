"""Methods that differ in one word of LLVM's, written once: `add = integer_pair("add", "Wrapping sum.")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from xlalite.backends.codegen.llvm.value import Value

_P = ParamSpec("_P")


def family(written: Callable[Concatenate[str, _P], Value]) -> Callable[[str, str], Callable[_P, Value]]:
    """What makes methods out of a function of a word, the builder and the operands, given a word and a docstring."""

    def named(word: str, meaning: str) -> Callable[_P, Value]:
        def method(*operands: _P.args, **options: _P.kwargs) -> Value:
            return written(word, *operands, **options)

        method.__doc__ = meaning
        return method

    return named
