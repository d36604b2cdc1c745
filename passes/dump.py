"""Writes what a compilation leaves behind into files named as XLA names them.

`module_0003.NAME.before_optimizations.txt`, `module_0003.NAME.0012.PIPELINE.after_X.before_Y.txt`,
`module_0003.NAME.cpu_after_optimizations-buffer-assignment.txt`: one dumper a module, one `write` an artefact.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from xlalite.hlo.errors import DumpError, XlaliteError
from xlalite.hlo.module import HloModule
from xlalite.passes.debug_options import DebugOptions
from xlalite.passes.instrumentation import PIPELINE_START, PassRecord, PassRun

STANDARD_OUTPUT = "-"

# Numbers the modules of a process, so that two modules of one name get two files.
_module_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class ModuleDumper:
    """Writes the artefacts of one module.

    Attributes:
        directory: Where to; `-` prints to standard output instead.
        prefix: How each file name starts: `module_0003.NAME`.
        text_preset: The printing preset for HLO.
    """

    directory: str
    prefix: str
    text_preset: str = "default"

    def write(self, suffix: str, content: str | bytes) -> str:
        """Writes the file PREFIX.SUFFIX and returns its path; text is UTF-8.

        Raises:
            DumpError: The directory cannot be made or written to.
        """
        name = f"{self.prefix}.{suffix}"
        if self.directory == STANDARD_OUTPUT:
            shown = content if isinstance(content, str) else f"{len(content)} bytes"
            print(f"*** {name}\n{shown}", file=sys.stdout)
            return STANDARD_OUTPUT
        path = Path(self.directory) / name
        data = content.encode("utf-8") if isinstance(content, str) else content
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise DumpError(
                f"dump of {name}: cannot write to directory {self.directory}: {error.strerror or error}"
            ) from error
        return str(path)

    def write_module(self, suffix: str, module: HloModule) -> str:
        """Writes the module as HLO text to PREFIX.SUFFIX.txt and returns the path.

        Raises:
            DumpError: The directory cannot be made or written to.
        """
        return self.write(f"{suffix}.txt", module.to_string(self.text_preset))


def module_dumper(options: DebugOptions, module_name: str) -> ModuleDumper | None:
    """The dumper for the next module, or None when the options want no dump of it.

    The directory is made and tried at once: a compilation should not run for a minute and then fail to write.

    Raises:
        DumpError: The directory cannot be made or written to.
    """
    if not options.dumps_module(module_name):
        return None
    assert options.dump_to is not None, "dumps_module says so"
    number = next(_module_numbers)
    if options.dump_to != STANDARD_OUTPUT:
        _require_writable(Path(options.dump_to))
    preset = "short_parsable" if options.dump_large_constants else "default"
    return ModuleDumper(options.dump_to, f"module_{number:04d}.{_file_safe(module_name)}", preset)


class DumpObserver:
    """Writes the module after each changing pass that the options ask for, and after a failure.

    Attributes:
        files: (pass number, path) of the dumps so far, in order; number 0 is the start of a pipeline.
    """

    def __init__(self, dumper: ModuleDumper, options: DebugOptions) -> None:
        """Observes for one module."""
        self.files: list[tuple[int, str]] = []
        self._dumper = dumper
        self._options = options
        self._started: set[str] = set()

    def before_pass(self, module: HloModule, run: PassRun) -> None:
        """Writes the module as it enters a pipeline, when `pipeline-start` is asked for."""
        if run.pipeline in self._started:
            return
        self._started.add(run.pipeline)
        if self._options.dumps_pass(run.pipeline, PIPELINE_START):
            suffix = f"{run.number - 1:04d}.{run.pipeline}.after_{PIPELINE_START}.before_{run.pass_name}"
            self.files.append((0, self._dumper.write_module(_file_safe(suffix), module)))

    def after_pass(self, module: HloModule, record: PassRecord) -> None:
        """Writes the module if the pass changed it and its name is asked for."""
        run = record.run
        if record.changed and self._options.dumps_pass(run.pipeline, run.pass_name):
            suffix = f"{run.number:04d}.{run.pipeline}.after_{run.pass_name}.before_{run.following}"
            self.files.append((run.number, self._dumper.write_module(_file_safe(suffix), module)))

    def failed_pass(self, module: HloModule, run: PassRun) -> str | None:
        """Writes the module as the failing pass left it; None when it is too broken to print or cannot be written."""
        suffix = f"{run.number:04d}.{run.pipeline}.failed_{run.pass_name}"
        try:
            return self._dumper.write_module(_file_safe(suffix), module)
        except XlaliteError:
            return None


def _require_writable(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DumpError(f"dump directory {directory}: cannot be made: {error.strerror or error}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise DumpError(f"dump directory {directory}: not writable")


def _file_safe(name: str) -> str:
    """The name with everything but letters, digits, `_`, `-`, `.` replaced, and short enough for a file system."""
    return re.sub(r"[^\w.-]", "_", name)[:180]
