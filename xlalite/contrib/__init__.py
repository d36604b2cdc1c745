"""The part of TensorFlow's `tf.contrib` that there is; its names are imported when they are first asked for."""

from typing import TYPE_CHECKING

from xlalite.contrib import compiler as compiler
from xlalite.namespace_modules import missing_name, namespace, namespaces_of

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in (spaces := namespaces_of("contrib")):
            return namespace(spaces[name])
        raise missing_name(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted(["compiler", *namespaces_of("contrib")])
