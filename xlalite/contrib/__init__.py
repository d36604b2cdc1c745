"""The part of TensorFlow's `tf.contrib` that belongs to the JIT."""

from typing import TYPE_CHECKING

from xlalite.contrib import compiler as compiler
from xlalite.namespace import missing_name

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise missing_name(__name__, name, __dir__())


def __dir__() -> list[str]:
    return ["compiler"]
