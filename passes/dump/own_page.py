"""The page about one compilation, without files that stay."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.dump.page import render_page
from xlalite.passes.dump.records import read_contents


def page_of(title: str, debug: DebugOptions, run: Callable[[DebugOptions], object]) -> str:
    """What a dump would show of what `run` compiles or rewrites with the options that it is given."""
    with tempfile.TemporaryDirectory(prefix="xlalite-page-") as scratch:
        run(replace(debug, dump_to=scratch, dump_hlo_pass_re=".*"))
        return render_page(read_contents(Path(scratch)), Path(scratch), title=title, has_links=False)
