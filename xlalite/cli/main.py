"""Finds the command, runs it, and turns errors into one message and an exit code.

Exit codes: 0 when all is well, 1 when the answer is no (results differ, modules differ), 2 when something is wrong with
the input, 124 when `--timeout` has passed, 130 when interrupted. Commands are modules that are
imported only when they are called, so that `xlalite --help` does not wait for LLVM.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence

from xlalite import __version__
from xlalite.cli.common_options import Deadline, take_option
from xlalite.cli.errors import REPORTED, WRONG_INPUT, UsageError, message_of
from xlalite.cli.wrapping import BAD, painted
from xlalite.hlo.records import dataclass
from xlalite.hlo.wording import did_you_mean

INTERRUPTED = 130
LOAD = "XLALITE_LOAD"
"""The environment variable with the files that every command runs first."""


@dataclass(frozen=True, slots=True)
class Command:
    """A word after `xlalite`.

    Attributes:
        name: The word.
        summary: One line of help.
    """

    name: str
    summary: str

    def load(self) -> Callable[[Sequence[str]], int]:
        """The function that runs it: arguments to exit code."""
        run: Callable[[Sequence[str]], int] = importlib.import_module(f"xlalite.cli.{self.name}").run
        return run


COMMANDS = (
    Command("opt", "run passes on HLO and print it at any stage, down to assembly"),
    Command("run", "run HLO on random inputs and compare with the interpreter"),
    Command("dump", "run a Python program and show what was compiled, pass by pass"),
    Command("explain", "say what the compiler decided about an instruction, and why"),
    Command("graph", "draw a module, or what is around an instruction, as a picture"),
    Command("stats", "say what a module is made of, and what it costs"),
    Command("extract", "print an instruction with what it is computed from as a module"),
    Command("diff", "compare the structure of two modules"),
    Command("bisect", "find the pass, and its change, that makes a module go wrong"),
    Command("shrink", "make a module that goes wrong as small as it can be"),
    Command("bench", "measure compilation and execution of a module"),
    Command("cache", "list, measure, clear or ship the cache of compiled code"),
    Command("scan", "say which names of TensorFlow a program uses that xlalite lacks"),
    Command("flags", "list the flags of XLALITE_FLAGS and what they are set to"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `xlalite` with arguments (by default those of the process) and gives the exit code."""
    _prepare_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    shows_traceback = _take_traceback_option(words)
    program = "xlalite"
    limit = Deadline()
    try:
        if not words or words[0] in ("-h", "--help", "help"):
            sys.stdout.write(_help_text())
            return 0 if words else WRONG_INPUT
        if words[0] in ("-V", "--version"):
            print(f"xlalite {__version__}")
            return 0
        limit.start(words)
        _load_files(words)
        command = _find(words[0])
        program = f"xlalite {command.name}"
        code = command.load()(words[1:])
        sys.stdout.flush()
    except REPORTED as error:
        if isinstance(error, BrokenPipeError):
            return _stop_writing()
        if shows_traceback:
            raise
        _report(program, error)
        return WRONG_INPUT
    except KeyboardInterrupt:
        return limit.report(program) if limit.has_passed else INTERRUPTED
    finally:
        limit.cancel()
    return code


def _prepare_streams() -> None:
    """Opens nothing in the place of standard streams that whoever started us has closed, before a file gets there.

    What standard output has no letter for is escaped, as Python does in standard error.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _take_traceback_option(words: list[str]) -> bool:
    """Removes `--traceback`, which every command has, up to a `--` behind which words belong to another program."""
    end = words.index("--") if "--" in words else len(words)
    if "--traceback" not in words[:end]:
        return False
    words.remove("--traceback")
    return True


def _load_files(words: list[str]) -> None:
    """Removes each `--load FILE`, which every command has, and runs the files, which register passes and the like.

    Processes that the command starts, as `bisect` does, run them, too.

    Raises:
        UsageError: A file cannot be run.
    """
    paths = [path for path in os.environ.get(LOAD, "").split(os.pathsep) if path]
    paths += map(os.path.abspath, take_option(words, "--load"))
    if not paths:
        return
    os.environ[LOAD] = os.pathsep.join(dict.fromkeys(paths))
    from xlalite.cli.loading import load_file

    for path in dict.fromkeys(paths):
        load_file(path)


def _find(name: str) -> Command:
    for command in COMMANDS:
        if command.name == name:
            return command
    names = [command.name for command in COMMANDS]
    hint = did_you_mean(name, [*names, "--help", "--version"], f"the commands are {', '.join(names)}")
    kind = "option" if name.startswith("-") else "command"
    raise UsageError(f"there is no {kind} {name!r}{hint}")


def _report(program: str, error: BaseException) -> None:
    """Writes one message: what went wrong, and where the evidence is."""
    lines = [f"{program}: {painted('error:', BAD, sys.stderr)} {message_of(error)}"]
    lines += [f"  {note}" for note in getattr(error, "__notes__", ())]
    if isinstance(error, UsageError):
        lines.append(f"  '{program} --help' shows how it is used")
    print("\n".join(lines), file=sys.stderr)


def _stop_writing() -> int:
    """Whoever read our output has gone, as `head` does; Python must not complain when it closes standard output."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _help_text() -> str:
    width = max(len(command.name) for command in COMMANDS)
    commands = "\n".join(f"  {command.name:{width}}  {command.summary}" for command in COMMANDS)
    return _HELP.format(version=__version__, commands=commands)


_HELP = """\
xlalite {version}: reads, optimises, compiles, runs and explains XLA's HLO.

usage: xlalite COMMAND [options]
       xlalite --version

commands:
{commands}

'xlalite COMMAND --help' shows the options of a command. A FILE holds HLO text,
StableHLO text or an HLO proto; '-' is standard input. All commands take the
flags of XLALITE_FLAGS in XLA's spelling, as in --xla_dump_to=DIR, and
--traceback, which shows where in xlalite an error was raised. --load FILE.py
runs a file first, which may register passes, rules and custom calls.
--timeout SECONDS ends a command that takes longer, with exit code 124.
"""
