"""`import xlalite.compat.v1 as tf`: all names of xlalite, whose model is TensorFlow 1's."""

from typing import TYPE_CHECKING

import xlalite

if TYPE_CHECKING:
    from xlalite import *  # noqa: F403  # only type checkers read this
else:

    def __getattr__(name: str) -> object:
        return getattr(xlalite, name)


def __dir__() -> list[str]:
    return dir(xlalite)
