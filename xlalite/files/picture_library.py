"""Pillow, which reads and writes pictures, where it is installed."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.errors import UnimplementedError


def picture_library(what: str) -> Any:
    """The module with the functions for pictures.

    Raises:
        UnimplementedError: it is not installed; the message says how to.
    """
    try:
        from PIL import Image
    except ImportError:
        message = f"{what} needs the library Pillow; install it with `pip install xlalite[images]`"
        raise UnimplementedError(None, None, message) from None
    return Image
