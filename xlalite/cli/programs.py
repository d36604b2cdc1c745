"""Running a Python program under flags: what `dump` and `explain` have in common."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from xlalite.cli.errors import UsageError
from xlalite.flags import ENVIRONMENT_NAME
from xlalite.hlo.errors import ParseError
from xlalite.hlo.loading import Form, form_of
from xlalite.hlo.stablehlo.reading.recognition import is_stablehlo

_SIGNALLED = 128
_PYTHON = re.compile(r"python(3(\.\d+)?)?(\.exe)?")


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands before and behind `--`."""
    if "--" not in words:
        return list(words), []
    place = list(words).index("--")
    return list(words[:place]), list(words[place + 1 :])


def require_python(script: str) -> None:
    """Refuses HLO in the place of a program.

    Raises:
        UsageError: It is HLO.
    """
    path = Path(script)
    try:
        start = path.read_bytes() if path.is_file() else b""
        # Interpreters and programs are binary, too: only its name tells that a binary file is a proto.
        is_proto = path.suffix == ".pb" or form_of(start, script) in (Form.TEXT_PROTO, Form.ONNX)
        is_hlo = start.lstrip().startswith(b"HloModule") or is_stablehlo(start) or is_proto
    except (OSError, ParseError):
        return
    if is_hlo:
        raise UsageError(
            f"{script} holds a module, not a Python program: 'xlalite opt {script} --stage=html -o page.html' shows "
            f"its compilation, 'xlalite run {script} --xla_dump_to=DIR --xla_dump_hlo_pass_re=.*' dumps it"
        )


def run_program(program: list[str], flags: Sequence[str], *, stdout: int | None = None) -> int:
    """Runs a script or `-m module` with this interpreter, under flags behind those of the environment.

    Args:
        program: The script or `-m` and the module, and its arguments; an interpreter may stand before them.
        flags: As in `XLALITE_FLAGS`.
        stdout: The file descriptor that takes what it prints; by default this process's.

    Returns:
        Its exit code, as a shell would give it.
    """
    inherited = os.environ.get(ENVIRONMENT_NAME, "")
    environment = {**os.environ, ENVIRONMENT_NAME: f"{inherited} {shlex.join(flags)}".strip()}
    if _PYTHON.fullmatch(Path(program[0]).name):  # whose own name changes nothing: it is this interpreter
        program = program[1:]
    process = subprocess.Popen([sys.executable, *program], env=environment, stdout=stdout)
    while True:
        try:
            code = process.wait()
            return code if code >= 0 else _SIGNALLED - code
        except KeyboardInterrupt:  # the program got it as well, and decides
            continue
