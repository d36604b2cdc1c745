"""Cases of operations, a family a file: each may have `VALUES` and `GRADIENTS`, lists of `case.py`'s records."""

import importlib
import pkgutil

from ops.cases.case import GradientCase, ValueCase

_FAMILIES = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]

VALUES: list[ValueCase] = [case for family in _FAMILIES for case in getattr(family, "VALUES", ())]
GRADIENTS: list[GradientCase] = [case for family in _FAMILIES for case in getattr(family, "GRADIENTS", ())]
