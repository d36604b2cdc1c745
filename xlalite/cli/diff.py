"""`xlalite diff`: which instructions of two modules correspond, which of those differ, and which are alone."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.cli.arguments import CommandParser
from xlalite.cli.errors import ANSWER_IS_NO
from xlalite.cli.reading import read_module, shown_name
from xlalite.cli.wrapping import BAD, FAINT, GOOD, print_lines
from xlalite.hlo.tools.compare import compare_modules
from xlalite.passes.core.pipeline import Pipeline
from xlalite.passes.normalization.defusion import Defusion
from xlalite.passes.pipelines import target_independent

_NORMALIZING = Pipeline("normalizing", (Defusion(), target_independent()))
"""Programs that were spelt differently, or went through other doors, become alike in it."""
_COLOURS = {"+": GOOD, "-": BAD, "@": FAINT}


def run(words: Sequence[str]) -> int:
    """Runs the command; the exit code is 1 when the modules differ."""
    parser = CommandParser(
        "diff",
        "Compares two modules by structure: names, metadata and the order of lines do not count. The exit code is 1 "
        "when they differ.",
        "A B [--normalize]",
    )
    parser.add_argument("one", metavar="A", help="HLO, StableHLO, a proto or ONNX; '-' is standard input")
    parser.add_argument("other", metavar="B", help="the same")
    parser.add_argument(
        "--normalize", action="store_true", help="compare what the target-independent passes make of them"
    )
    arguments, _ = parser.read(words)
    one, other = read_module(arguments.one), read_module(arguments.other)
    if arguments.normalize:
        for module in (one, other):
            _NORMALIZING.run(module)
    comparison = compare_modules(one, other)
    if comparison.is_same:
        print(f"{shown_name(arguments.one)} and {shown_name(arguments.other)} have the same structure")
        return 0
    print(f"--- {shown_name(arguments.one)}\n+++ {shown_name(arguments.other)}")
    print_lines([str(comparison)], colour=lambda line: _COLOURS.get(line.lstrip()[:1], ""))
    return ANSWER_IS_NO
