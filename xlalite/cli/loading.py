"""Runs files of the user, which register passes, rewrite rules and custom calls."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from xlalite.cli.errors import UsageError


def load_file(path: str) -> None:
    """Runs a file as a module, once.

    Raises:
        UsageError: There is no such file, or it raises something, which is the cause.
    """
    name = f"xlalite_loaded_{Path(path).stem}"
    if getattr(sys.modules.get(name), "__file__", None) == path:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise UsageError(f"--load {path}: there is no such Python file")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"--load {path}: {type(error).__name__}: {error}") from error
