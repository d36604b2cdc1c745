"""XLA's JIT in Python and llvmlite: graph, clustering, HLO, passes and native CPU kernels.

This file only re-exports, lazily: a name is imported from its module when it is first asked for, so that
`import xlalite` loads neither llvmlite nor networkx nor NumPy. A public name is one line in `_EXPORTS` (or in
`_MODULES`) and one in the block for type checkers; a test compares the two and resolves every name.
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from xlalite import hlo as hlo

# Modules that are reached as attributes: `xl.hlo`, `xl.nn`.
_MODULES: dict[str, str] = {
    "hlo": "xlalite.hlo",
}

# Names and the modules that define them.
_EXPORTS: dict[str, str] = {}

if not TYPE_CHECKING:  # A type checker would take every misspelt attribute for an export.

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            value = importlib.import_module(_MODULES[name])
        elif name in _EXPORTS:
            value = getattr(importlib.import_module(_EXPORTS[name]), name)
        else:
            raise AttributeError(f"module 'xlalite' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_EXPORTS})
