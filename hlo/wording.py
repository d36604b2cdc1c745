"""Words that many messages share."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "", *, likeness: float = 0.6) -> str:
    """What ends a message about a name that does not exist.

    Args:
        name: The name.
        known: Names that exist.
        otherwise: What helps when none of them is near.
        likeness: From 0 to 1, how near a name must be.

    Returns:
        `; did you mean 'fusion'?`, otherwise `; ` and what helps, or nothing.
    """
    import difflib  # rarely needed, and a good part of the time that `import xlalite` takes

    for near in difflib.get_close_matches(name, known, 1, likeness):
        return f"; did you mean {near!r}?"
    return f"; {otherwise}" if otherwise else ""


def counted(number: int, noun: str) -> str:
    """`1 cluster`, `2 clusters`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
