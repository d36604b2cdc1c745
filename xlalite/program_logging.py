"""`tf.logging`: messages of programs, from warnings upwards unless more is asked for."""

import logging
import sys
from collections.abc import Callable
from typing import Any, Final

DEBUG: Final = logging.DEBUG
INFO: Final = logging.INFO
WARN: Final = logging.WARNING
ERROR: Final = logging.ERROR
FATAL: Final = logging.FATAL


def get_logger() -> logging.Logger:
    """The logger, under the name by which programs know it."""
    logger = logging.getLogger("tensorflow")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
        logger.addHandler(handler)
        logger.propagate = False
    if logger.level == logging.NOTSET:
        logger.setLevel(WARN)
    return logger


def set_verbosity(v: int) -> None:
    """From which level on messages are shown."""
    get_logger().setLevel(v)


def get_verbosity() -> int:
    """From which level on messages are shown."""
    return get_logger().getEffectiveLevel()


def log(level: int, msg: str, *args: Any) -> None:
    """A message of any level."""
    get_logger().log(level, msg, *args)


def debug(msg: str, *args: Any) -> None:
    """A message for those who look for mistakes."""
    get_logger().debug(msg, *args)


def info(msg: str, *args: Any) -> None:
    """A message about what goes on."""
    get_logger().info(msg, *args)


def warn(msg: str, *args: Any) -> None:
    """A message about what may be wrong."""
    get_logger().warning(msg, *args)


def error(msg: str, *args: Any) -> None:
    """A message about what is wrong."""
    get_logger().error(msg, *args)


def fatal(msg: str, *args: Any) -> None:
    """A message about what ends the program."""
    get_logger().critical(msg, *args)


warning: Final[Callable[..., None]] = warn
vlog: Final[Callable[..., None]] = log
_COUNTS: Final[dict[tuple[str, int], int]] = {}


def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """A message if a condition holds."""
    if condition:
        log(level, msg, *args)


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """A message at the first, the n-th next and so on of its occasions."""
    key = (msg, n)
    _COUNTS[key] = _COUNTS.get(key, -1) + 1
    log_if(level, msg, _COUNTS[key] % n == 0, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """A message at the first n of its occasions."""
    key = (msg, -n)
    _COUNTS[key] = _COUNTS.get(key, -1) + 1
    log_if(level, msg, _COUNTS[key] < n, *args)


def flush() -> None:
    """Shows what was held back."""
    for handler in get_logger().handlers:
        handler.flush()
