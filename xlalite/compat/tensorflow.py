"""Lets programs say `import tensorflow`: they get the names of xlalite."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

_PACKAGE: Final = "tensorflow"
_VERSION: Final = "1.15.0"
"""The version whose programs run here, which some ask for before they begin."""
# What TensorFlow's inner modules are here; an inner module that is not listed has all public names.
_INNER: Final = {
    "tensorflow.compat.v1": "xlalite.compat.v1",
    "tensorflow.core.protobuf.rewriter_config_pb2": "xlalite.client.config",
    "tensorflow.examples.tutorials.mnist": "xlalite.examples.tutorials.mnist",
    "tensorflow.python.client.device_lib": "xlalite.client.device_lib",
    "tensorflow.python.client.timeline": "xlalite.client.timeline",
    "tensorflow.python.platform.tf_logging": "xlalite:logging",
    "tensorflow.python.platform.gfile": "xlalite:gfile",
    "tensorflow.python.platform.app": "xlalite:app",
    "tensorflow.python.platform.flags": "xlalite:flags",
    "tensorflow.python.lib.io.file_io": "xlalite.files.file_io",
    "tensorflow.python.framework.function": "xlalite.ops.functions.defined_functions",
    "tensorflow.python.compiler.xla.xla": "xlalite.ops.functions.defined_functions",
    "tensorflow.python.ops.rnn": "xlalite:nn",
    "tensorflow.python.ops.rnn_cell": "xlalite:nn.rnn_cell",
    "tensorflow.python.training.moving_averages": "xlalite.ops.training.moving_averages",
    "tensorflow.python.framework.ops": "xlalite",
    "tensorflow.python.framework.graph_util": "xlalite:graph_util",
    "tensorflow.python.ops.lookup_ops": "xlalite.ops.functions.lookup",
    "tensorflow.python.util.nest": "xlalite.framework.nest",
    "tensorflow.python.ops.nn": "xlalite:nn",
    "tensorflow.python.ops.nn_ops": "xlalite:nn",
    "tensorflow.python.ops.init_ops": "xlalite",
    "tensorflow.python.summary.summary": "xlalite:summary",
}
_WHOLE: Final = ("tensorflow.python", "tensorflow.core", "tensorflow.examples")


def install() -> None:
    """Makes `import tensorflow` and its submodules give xlalite; what is imported already stays."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds `tensorflow` and everything below it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module that stands for one of xlalite's."""
        if fullname != _PACKAGE and not fullname.startswith(f"{_PACKAGE}."):
            return None
        return ModuleSpec(fullname, _Loader(), is_package=True)


class _Loader(Loader):
    """Makes the modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module; an ImportError says which name of xlalite is missing."""
        return _Alias(spec.name, _found(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run."""


class _Alias(ModuleType):
    """A module under a name of TensorFlow's, with the names of something else."""

    def __init__(self, name: str, target: object) -> None:
        super().__init__(name, f"`{name}`, as xlalite has it.")
        self.__dict__["_target"] = target

    def __getattr__(self, name: str) -> object:
        if name in ("__version__", "VERSION") and self.__name__ == _PACKAGE:
            return _VERSION
        if f"{self.__name__}.{name}" in _INNER:
            return importlib.import_module(f"{self.__name__}.{name}")
        return getattr(self.__dict__["_target"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_target"])


def _found(name: str) -> object:
    """What a module of TensorFlow is here."""
    inner = _INNER.get(name)
    for prefix, place in _INNER.items():
        if inner is None and name.startswith(f"{prefix}."):
            inner = place + name.removeprefix(prefix)
    if inner is not None and ":" not in inner:
        return importlib.import_module(inner)
    xlalite: object = importlib.import_module("xlalite")
    if inner is None and any(name == whole or name.startswith(f"{whole}.") for whole in _WHOLE):
        return xlalite
    path = inner.partition(":")[2] if inner is not None else name.removeprefix(_PACKAGE).lstrip(".")
    if path.startswith("contrib."):
        path = path.partition(".python")[0]
    try:
        for part in filter(None, path.split(".")):
            xlalite = getattr(xlalite, part)
    except AttributeError as error:
        raise ImportError(str(error), name=name) from None
    return xlalite
