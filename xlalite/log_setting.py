"""`XLALITE_LOG=info`: what the compiler says of itself, on standard error, without a line of the program's own."""

from __future__ import annotations

import logging
import sys
from typing import Final

ENVIRONMENT_NAME: Final = "XLALITE_LOG"
_LEVELS = ("debug", "info", "warning", "error")


def show_log(level: str) -> None:
    """Shows messages from a level upwards; a level that does not exist is answered by a warning, and all are shown."""
    logger = logging.getLogger("xlalite")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s xlalite %(levelname)s: %(message)s", "%H:%M:%S"))
    logger.addHandler(handler)
    logger.propagate = False
    known = level.lower() in _LEVELS
    logger.setLevel(level.upper() if known else logging.DEBUG)
    if not known:
        logger.warning("%s: expected one of %s, found %r", ENVIRONMENT_NAME, ", ".join(_LEVELS), level)
