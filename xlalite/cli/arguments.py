"""Reads the words of a command: its own options, and the flags in XLA's spelling among them."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from xlalite.cli.errors import UsageError
from xlalite.flags import Flags, flags_from_environment, parse_flags
from xlalite.hlo.wording import did_you_mean

FLAG_PREFIXES = ("--xla_", "--tf_xla_", "--xlalite_")
_WIDTH = 80


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose mistakes are errors of xlalite, and whose help fits a terminal of 80 columns."""

    def __init__(self, name: str, summary: str, usage: str, epilog: str = "") -> None:
        """A parser for `xlalite NAME`.

        Args:
            name: The command.
            summary: What it does, in a sentence or two.
            usage: What follows the name on the command line.
            epilog: Text below the options, as it is.
        """
        super().__init__(
            prog=f"xlalite {name}",
            usage=f"xlalite {name} {usage}",
            description=summary,
            epilog=epilog or None,
            formatter_class=_formatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Raises instead of leaving the process.

        Raises:
            UsageError: Always.
        """
        raise UsageError(message)

    def read(self, words: Sequence[str]) -> tuple[argparse.Namespace, Flags]:
        """The options among the words, and the flags: those of the environment with those among the words on top.

        Raises:
            UsageError: An option does not exist, or its value is not what it takes.
            FlagError: A flag does not exist, or its value is not what it takes.
        """
        flags = parse_flags(flag_words(words), flags_from_environment())
        known, unknown = self.parse_known_args([word for word in words if not word.startswith(FLAG_PREFIXES)])
        if unknown:
            raise self._unknown(unknown[0])
        return known, flags

    def _unknown(self, word: str) -> UsageError:
        if not word.startswith("-"):
            return UsageError(f"there is no place for {word!r}")
        name = word.partition("=")[0]
        return UsageError(f"there is no option {name!r}{did_you_mean(name, self._option_string_actions)}")


def add_platform(parser: argparse.ArgumentParser, default: str = "cpu") -> None:
    """Adds `--platform`."""
    parser.add_argument(
        "--platform", type=str.lower, default=default, metavar="NAME", help=f"cpu or interpreter (default: {default})"
    )


def add_file(parser: argparse.ArgumentParser, name: str = "file", *, nargs: str | None = None) -> None:
    """Adds the file of a module; with `nargs`, several."""
    parser.add_argument(
        name, nargs=nargs, metavar="FILE", help="HLO, StableHLO, a proto or ONNX; '-' is standard input"
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Adds `--num_threads`."""
    parser.add_argument("--num_threads", type=positive, metavar="N", help="threads of compiled code")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Adds what says on which inputs a module runs, and how far its results may be off."""
    parser.add_argument("--random_seed", type=seed, default=42, metavar="N", help="seed of the inputs (default: 42)")
    parser.add_argument(
        "--inputs", metavar="FILE", help="take the arguments from an .npz file (an .npy file for one argument)"
    )
    parser.add_argument(
        "--abs_error_bound", type=bound, metavar="X",
        help="allowed absolute error (default: by type; 1e-4 for f32, 1e-9 for f64)",
    )  # fmt: skip
    parser.add_argument("--rel_error_bound", type=bound, metavar="X", help="allowed relative error (same defaults)")


def flag_words(words: Sequence[str]) -> list[str]:
    """The words that are flags in XLA's spelling."""
    return [word for word in words if word.startswith(FLAG_PREFIXES)]


def positive(text: str) -> int:
    """The number of an option that counts something, from 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected an integer from 1, found {text!r}")
    return number


def seed(text: str) -> int:
    """The number that random inputs begin with, from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected an integer from 0, found {text!r}")
    return int(text)


def bound(text: str) -> float:
    """The number of an option that bounds an error: not negative."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0.0:
        raise argparse.ArgumentTypeError(f"expected a number that is not negative, found {text!r}")
    return number


def _formatter(prog: str) -> argparse.HelpFormatter:
    width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns)
    return _Formatter(prog, max_help_position=26, width=width)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the epilog's lines, wraps the description."""

    def add_text(self, text: Any) -> None:
        if text and "\n" not in text:
            text = "\n".join(_wrapped(text, self._width))
        super().add_text(text)


def _wrapped(text: str, width: int) -> Iterable[str]:
    import textwrap

    return textwrap.wrap(text, width=width)
