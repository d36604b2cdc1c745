"""The log `xlalite`. `logging` is imported by programs that set up logs, and for what everybody is to see."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

_OF_CALLER = 2


def debug(message: str, *arguments: object) -> None:
    """Says what only those want to know who look for something."""
    if "logging" in sys.modules:
        _logger().debug(message, *arguments, stacklevel=_OF_CALLER)


def info(message: str, *arguments: object) -> None:
    """Says what happened."""
    if "logging" in sys.modules:
        _logger().info(message, *arguments, stacklevel=_OF_CALLER)


def warning(message: str, *arguments: object) -> None:
    """Says what went wrong."""
    _logger().warning(message, *arguments, stacklevel=_OF_CALLER)


def exception(message: str, *arguments: object) -> None:
    """Says what went wrong, with the exception that is being handled."""
    _logger().exception(message, *arguments, stacklevel=_OF_CALLER)


def wants_info() -> bool:
    """Whether somebody reads more than warnings."""
    if "logging" not in sys.modules:  # nobody has asked for them
        return False
    import logging

    return _logger().isEnabledFor(logging.INFO)


def _logger() -> logging.Logger:
    import logging

    return logging.getLogger("xlalite")
