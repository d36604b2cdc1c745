"""`xlalite diff`: which instructions of two modules correspond, which of those differ, and which are alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xlalite.cli.arguments import CommandParser
from xlalite.cli.matching import ComputationMatch, match_modules
from xlalite.cli.reading import read_module, shown_name
from xlalite.hlo.text import print_instruction

DIFFERENT = 1


def run(words: Sequence[str]) -> int:
    """Runs the command; the exit code is 1 when the modules differ."""
    parser = CommandParser(
        "diff",
        "Compares two modules by structure: names, metadata and the order of lines do not count. The exit code is 1 "
        "when they differ.",
        "A B",
    )
    parser.add_argument("one", metavar="A", help="HLO text; '-' is standard input")
    parser.add_argument("other", metavar="B", help="HLO text")
    arguments, _ = parser.read(words)
    matches = match_modules(read_module(arguments.one), read_module(arguments.other))
    if all(match.is_same for match in matches):
        print(f"{shown_name(arguments.one)} and {shown_name(arguments.other)} have the same structure")
        return 0
    print(f"--- {shown_name(arguments.one)}\n+++ {shown_name(arguments.other)}")
    for match in matches:
        if not match.is_same:
            print("\n".join(_shown(match)))
    return DIFFERENT


def _shown(match: ComputationMatch) -> Iterator[str]:
    if match.other is None:
        assert match.one is not None, "a match has a side"
        yield f"- computation {match.one.name}: only in A"
        return
    if match.one is None:
        yield f"+ computation {match.other.name}: only in B"
        return
    counts = (
        f"{len(match.same)} same, {len(match.changed)} changed, {len(match.only_one)} only in A, "
        f"{len(match.only_other)} only in B"
    )
    name = match.one.name if match.one.name == match.other.name else f"{match.one.name} -> {match.other.name}"
    yield f"computation {name}: {counts}"
    if match.roots_differ:
        yield f"  root: %{match.one.root.name} -> %{match.other.root.name}"
    for change in match.changed:
        yield f"  ~ %{change.one.name} -> %{change.other.name}: {', '.join(change.reasons)}"
        yield f"    - {print_instruction(change.one)}"
        yield f"    + {print_instruction(change.other)}"
    yield from (f"  - {print_instruction(instruction)}" for instruction in match.only_one)
    yield from (f"  + {print_instruction(instruction)}" for instruction in match.only_other)
