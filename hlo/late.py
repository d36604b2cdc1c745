"""What is imported when it is first asked for: a table says where, as `module:name`, and is there without it.

For what is many and of which a program needs few: kinds of kernels, passes, functions. `tests/test_layering.py` reads
such places like imports.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any


@cache
def imported(place: str, package: str = "") -> Any:
    """What stands at a place; a module that begins with a dot is one of the package."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module, package or None), name)
