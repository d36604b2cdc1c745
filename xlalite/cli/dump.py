"""`xlalite dump`: runs a Python program with dumps switched on, and leaves a directory to look at."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from xlalite.cli.arguments import CommandParser, flag_words
from xlalite.cli.errors import UsageError
from xlalite.cli.programs import require_python, run_program, split_words
from xlalite.flags import Flags
from xlalite.hlo.errors import DumpError
from xlalite.passes.dump.index import INDEX_HTML, INDEX_JSON, write_index

_OURS = re.compile(r"(module|session)_\d{4}\..*")
_EPILOG = """\
examples:
  xlalite dump --to dumps -- train.py --steps=10
  xlalite dump --to dumps -- -m xlalite.examples.mnist_softmax_xla
  xlalite dump --to dumps --xla_dump_hlo_module_re=cluster_0 -- train.py

Every module is dumped around every pass that changed it, unless
--xla_dump_hlo_pass_re says which. Caches of compiled code stay unused.
"""


def run(words: Sequence[str]) -> int:
    """Runs the command; the exit code is the program's."""
    own, program = split_words(words)
    arguments, flags = _parser().read(own)
    if not program:
        raise UsageError("expected -- and a Python program, as in: xlalite dump --to DIR -- script.py arguments")
    if arguments.to is None:
        raise UsageError("expected --to DIR, where the dumps go")
    require_python(program[0])
    directory = Path(arguments.to).expanduser().resolve()
    _prepare(directory, clears=arguments.clear)
    code = run_program(program, _words_for_dumps(directory, flag_words(own), flags))
    count = write_index(directory)
    print(_summary(directory, count), file=sys.stderr)
    return code


def _parser() -> CommandParser:
    parser = CommandParser(
        "dump",
        "Runs a Python program with this interpreter and dumps everything that it compiles: HLO pass by pass, "
        "schedule, buffer assignment, LLVM IR, assembly, decisions and cluster reports, with an index.html.",
        "--to DIR [options] -- (script.py | -m module) [arguments]",
        _EPILOG,
    )
    parser.add_argument("--to", metavar="DIR", help="where the dumps go; made when it is missing")
    parser.add_argument("--clear", action="store_true", help="remove earlier dumps from DIR first")
    return parser


def _prepare(directory: Path, *, clears: bool) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if clears:
            for path in directory.iterdir():
                if _OURS.fullmatch(path.name) or path.name in (INDEX_HTML, INDEX_JSON):
                    path.unlink()
    except OSError as error:
        raise DumpError(f"dump directory {directory}: cannot be used: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise DumpError(f"dump directory {directory}: not writable")


def _words_for_dumps(directory: Path, given: list[str], flags: Flags) -> list[str]:
    """The flags for dumps; later words win over earlier ones."""
    everything = [] if flags.xla_dump_hlo_pass_re else ["--xla_dump_hlo_pass_re=.*"]
    return [*given, f"--xla_dump_to={directory}", *everything]


def _summary(directory: Path, count: int) -> str:
    if not count:
        return f"xlalite dump: nothing was compiled; {directory / INDEX_HTML} has what there is"
    modules = "1 module" if count == 1 else f"{count} modules"
    return f"xlalite dump: {modules}: {directory / INDEX_HTML}"
