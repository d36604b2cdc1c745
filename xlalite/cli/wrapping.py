"""Lines that fit a terminal: broken between words, with what follows hanging below what it belongs to, and coloured.

What goes elsewhere than to a terminal stays one line each, so that `grep` and `sort` see it whole, and has no colours;
`NO_COLOR` in the environment takes them away everywhere (no-color.org).
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import TextIO

GOOD, BAD, HEAD, FAINT = "32", "31", "1", "2"
"""Colours by what they say: the numbers of ECMA-48, 8.3.117."""

_HANG = 4
_NARROWEST = 40


def print_lines(
    lines: Iterable[str],
    *,
    hang: int | None = None,
    file: TextIO | None = None,
    colour: Callable[[str], str] = lambda line: "",
) -> None:
    """Prints lines, wrapped to the width of the terminal if it is one.

    Args:
        lines: What to print; line breaks inside are kept.
        hang: The column at which a line goes on; by default a little behind its own indentation.
        file: Where to; standard output by default.
        colour: The colour of a line; empty for none.
    """
    stream = sys.stdout if file is None else file
    width = _width_of(stream)
    for text in lines:
        for line in text.split("\n"):
            for part in [line] if width is None else wrapped(line, width, hang):
                print(painted(part, colour(line), stream), file=stream)


def painted(text: str, colour: str, file: TextIO | None = None) -> str:
    """The text in a colour, if the stream, by default standard output, is a terminal that shows some."""
    stream = sys.stdout if file is None else file
    plain = not colour or not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"


def wrapped(line: str, width: int, hang: int | None = None) -> list[str]:
    """The pieces of a line that is wider than `width`; words that are wider themselves stay whole."""
    if len(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip(" "))
    head = line[: indent if hang is None else hang]
    return textwrap.wrap(
        line[len(head) :],
        width,
        initial_indent=head,
        subsequent_indent=" " * (indent + _HANG if hang is None else hang),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _width_of(stream: TextIO) -> int | None:
    """The columns of the terminal behind a stream; None when it is no terminal."""
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        return None
    return max(columns, _NARROWEST) if columns else None
