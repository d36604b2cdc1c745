"""`xlalite flags`: what flags there are, and what the environment sets them to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from xlalite.cli.arguments import CommandParser
from xlalite.cli.wrapping import print_lines
from xlalite.flags import ENVIRONMENT_NAME, Flags, help_text


def run(words: Sequence[str]) -> int:
    """Prints the table, then what differs from the defaults."""
    parser = CommandParser(
        "flags",
        f"Lists the flags that {ENVIRONMENT_NAME} and every command take, then those that are set: by "
        f"{ENVIRONMENT_NAME}, or behind 'xlalite flags'.",
        "[--FLAG=VALUE ...]",
    )
    _, flags = parser.read(words)
    print_lines(help_text().splitlines(), hang=6)
    default = Flags()
    names = [field.name for field in dataclasses.fields(Flags)]
    changed = [name for name in names if getattr(flags, name) != getattr(default, name)]
    print("\nset:" if changed else "\nset: none")
    for name in changed:
        print(f"  {name} = {getattr(flags, name)!r}")
    return 0
