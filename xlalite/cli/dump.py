"""`xlalite dump`: runs a Python program with dumps switched on, and leaves a directory to look at."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from xlalite.cli.arguments import CommandParser, flag_words
from xlalite.cli.errors import UsageError
from xlalite.flags import ENVIRONMENT_NAME, Flags
from xlalite.hlo.errors import DumpError, ParseError
from xlalite.hlo.loading import Form, form_of
from xlalite.hlo.stablehlo.reading.recognition import is_stablehlo
from xlalite.passes.dump.index import INDEX_HTML, INDEX_JSON, write_index

_SIGNALLED = 128
_PYTHON = re.compile(r"python(3(\.\d+)?)?(\.exe)?")
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
    own, program = _split(words)
    arguments, flags = _parser().read(own)
    if not program:
        raise UsageError("expected -- and a Python program, as in: xlalite dump --to DIR -- script.py arguments")
    if arguments.to is None:
        raise UsageError("expected --to DIR, where the dumps go")
    _require_python(program[0])
    directory = Path(arguments.to).expanduser().resolve()
    _prepare(directory, clears=arguments.clear)
    code = _run_program(program, _environment(directory, flag_words(own), flags))
    count = write_index(directory)
    print(_summary(directory, count), file=sys.stderr)
    return code


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands before and behind `--`."""
    if "--" not in words:
        return list(words), []
    place = list(words).index("--")
    return list(words[:place]), list(words[place + 1 :])


def _require_python(script: str) -> None:
    """Raises where HLO stands in the place of a program."""
    path = Path(script)
    try:
        start = path.read_bytes() if path.is_file() else b""
        # Interpreters and programs are binary, too: only its name tells that a binary file is a proto.
        is_proto = path.suffix == ".pb" or form_of(start, script) is Form.TEXT_PROTO
        is_hlo = start.lstrip().startswith(b"HloModule") or is_stablehlo(start) or is_proto
    except (OSError, ParseError):
        return
    if is_hlo:
        raise UsageError(
            f"{script} holds HLO, not a Python program: 'xlalite opt {script} --stage=html -o page.html' shows its "
            f"compilation, 'xlalite run {script} --xla_dump_to=DIR --xla_dump_hlo_pass_re=.*' dumps it"
        )


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


def _environment(directory: Path, given: list[str], flags: Flags) -> dict[str, str]:
    """The environment with the flags for dumps; later words win over earlier ones."""
    words = [*given, f"--xla_dump_to={directory}"]
    if not flags.xla_dump_hlo_pass_re:
        words.append("--xla_dump_hlo_pass_re=.*")
    inherited = os.environ.get(ENVIRONMENT_NAME, "")
    return {**os.environ, ENVIRONMENT_NAME: f"{inherited} {shlex.join(words)}".strip()}


def _run_program(program: list[str], environment: dict[str, str]) -> int:
    if _PYTHON.fullmatch(Path(program[0]).name):  # whose own name changes nothing: it is this interpreter
        program = program[1:]
    process = subprocess.Popen([sys.executable, *program], env=environment)
    while True:
        try:
            code = process.wait()
            return code if code >= 0 else _SIGNALLED - code
        except KeyboardInterrupt:  # the program got it as well, and decides
            continue


def _summary(directory: Path, count: int) -> str:
    if not count:
        return f"xlalite dump: nothing was compiled; {directory / INDEX_HTML} has what there is"
    modules = "1 module" if count == 1 else f"{count} modules"
    return f"xlalite dump: {modules}: {directory / INDEX_HTML}"
