"""Writes what a compilation leaves behind into files named as XLA names them.

`module_0003.NAME.before_optimizations.txt`, `module_0003.NAME.0012.PIPELINE.after_X.before_Y.txt`,
`module_0003.NAME.cpu_after_optimizations-buffer-assignment.txt`: one dumper a module, one `write` an artefact. A record
of the whole goes into the directory's index (`dump_records.py`, `dump_index.py`). What cannot be written is missing,
with one warning for the directory: a dump never ends the program that it shows.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from xlalite.hlo.errors import DumpError, XlaliteError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.decision import Decision
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.instrumentation import PIPELINE_START
from xlalite.passes.core.pass_record import PassRecord
from xlalite.passes.dump.index import note_change, warn_of
from xlalite.passes.dump.records import (
    DECISIONS_SUFFIX,
    FORMAT,
    RECORD_SUFFIX,
    REPORT_SUFFIX,
    Artefact,
    ModuleEntry,
    Status,
    highest_number,
    write_atomically,
)

STANDARD_OUTPUT = "-"

# File systems take names of 255 bytes: `module_0003.`, the module's name, the rest, and what a temporary file adds.
_NAME_BYTES = 100
_SUFFIX_BYTES = 110
_DIGEST_BYTES = 4


class ModuleDumper:
    """Writes the artefacts of one module.

    Attributes:
        directory: Where to; `-` prints to standard output instead.
        prefix: How each file name starts: `module_0003.NAME`.
        shown_in: The file that shows the module as it is now; None when it changed since the last file.
    """

    def __init__(self, directory: str, prefix: str, module_name: str, text_preset: str) -> None:
        """Starts the clock; writes nothing yet.

        Args:
            directory: Where to write.
            prefix: How file names start.
            module_name: Name of the module.
            text_preset: The printing preset for HLO.
        """
        self.directory = directory
        self.prefix = prefix
        self.shown_in: str | None = None
        self._module_name = module_name
        self._text_preset = text_preset
        self._files: dict[str, str] = {}
        self._start = time.perf_counter()
        self._started = time.strftime("%Y-%m-%dT%H:%M:%S%z")

    def write(self, suffix: str, content: str | bytes) -> str | None:
        """Writes the file PREFIX.SUFFIX and returns its name, or None if it cannot be written; text is UTF-8."""
        name = f"{self.prefix}.{suffix}"
        try:
            _write(self.directory, name, content)
        except DumpError as error:
            warn_of(error, self.directory)
            return None
        return name

    def write_artefact(self, artefact: Artefact, content: str | bytes) -> str | None:
        """Writes an artefact under its name, and mentions it in the record; returns the name."""
        name = self.write(artefact.suffix, content)
        if name is not None:
            self._files[artefact.key] = name
        return name

    def write_module(self, artefact: Artefact, module: HloModule) -> None:
        """Writes the module as HLO text."""
        self.shown_in = self.write_artefact(artefact, self.text_of(module))

    def write_state(self, suffix: str, text: str) -> None:
        """Writes the text of the module as it is now to PREFIX.SUFFIX.txt."""
        self.shown_in = self.write(f"{suffix}.txt", text)

    def path_of(self, name: str) -> str:
        """Where a file that was written is."""
        return STANDARD_OUTPUT if self.directory == STANDARD_OUTPUT else str(Path(self.directory) / name)

    def text_of(self, module: HloModule) -> str:
        """The module as the dumps show it."""
        return module.to_string(self._text_preset)

    def write_decisions(self, decisions: Sequence[Decision]) -> None:
        """Writes the decisions as JSON."""
        self.write_artefact(Artefact.DECISIONS, _decisions_text(decisions))

    def finish(self, passes: Sequence[PassRecord], error: BaseException | None = None) -> None:
        """Writes the record of the compilation, which ended well or with an error, and brings the index up to date."""
        if self.directory == STANDARD_OUTPUT:
            return
        entry = ModuleEntry(
            self.prefix,
            self._module_name,
            Status.COMPILED if error is None else Status.FAILED,
            "" if error is None else str(error),
            os.getpid(),
            " ".join(sys.argv),
            self._started,
            round(1e3 * (time.perf_counter() - self._start), 3),
            tuple(passes),
            self._files,
        )
        directory = Path(self.directory)
        record = {"format": FORMAT, **entry.as_json()}
        try:
            write_atomically(directory / f"{self.prefix}.{RECORD_SUFFIX}", json.dumps(record) + "\n")
            note_change(directory)
        except DumpError as error:
            warn_of(error, directory)


class DumpObserver:
    """Writes the module before and after each changing pass that the options ask for, and after a failure."""

    def __init__(self, dumper: ModuleDumper, options: DebugOptions) -> None:
        """Observes for one module."""
        self._dumper = dumper
        self._options = options
        self._files: dict[int, tuple[str, str]] = {}
        self._previous: dict[str, str] = {}
        self._text: str | None = None

    def entries(self, records: Sequence[PassRecord]) -> tuple[PassRecord, ...]:
        """What the passes did, with the files that show it."""
        nowhere = (None, None)
        files = (self._files.get(record.number, nowhere) for record in records)
        return tuple(replace(record, before=b, after=a) for record, (b, a) in zip(records, files, strict=True))

    def before_pass(self, module: HloModule, record: PassRecord) -> None:
        """Writes the module as it enters a pipeline if `pipeline-start` is asked for; keeps its text if the pass is."""
        if record.pipeline not in self._previous:
            self._previous[record.pipeline] = PIPELINE_START
            if self._options.dumps_pass(record.pipeline, PIPELINE_START):
                self._dumper.write_state(self._name_before(record), self._text_now(module))
        if self._options.dumps_pass(record.pipeline, record.name):
            self._text_now(module)

    def after_pass(self, module: HloModule, record: PassRecord) -> None:
        """Writes the module if the pass changed it and its name is asked for."""
        if record.changed:
            self._note_change(module, record)
        self._previous[record.pipeline] = record.name

    def failed_pass(self, module: HloModule, record: PassRecord) -> str | None:
        """Writes the module as the failing pass left it; None when it is too broken to print or cannot be written."""
        suffix = f"{record.number:04d}.{record.pipeline}.failed_{record.name}"
        try:
            text = self._dumper.text_of(module)
        except XlaliteError:
            return None
        name = self._dumper.write(f"{_file_safe(suffix, _SUFFIX_BYTES)}.txt", text)
        return None if name is None else self._dumper.path_of(name)

    def _note_change(self, module: HloModule, record: PassRecord) -> None:
        dumper, text = self._dumper, self._text
        self._text = None
        if not self._options.dumps_pass(record.pipeline, record.name):
            dumper.shown_in = None
            return
        assert text is not None, "before_pass keeps it"
        if dumper.shown_in is None:
            dumper.write_state(self._name_before(record), text)
        suffix = f"{record.number:04d}.{record.pipeline}.after_{record.name}.before_{record.following}"
        before = dumper.shown_in
        dumper.write_state(_file_safe(suffix, _SUFFIX_BYTES), self._text_now(module))
        if before is not None and dumper.shown_in is not None:
            self._files[record.number] = (before, dumper.shown_in)

    def _text_now(self, module: HloModule) -> str:
        if self._text is None:
            self._text = self._dumper.text_of(module)
        return self._text

    def _name_before(self, record: PassRecord) -> str:
        previous = self._previous[record.pipeline]
        suffix = f"{record.number - 1:04d}.{record.pipeline}.after_{previous}.before_{record.name}"
        return _file_safe(suffix, _SUFFIX_BYTES)


class ReportDumper:
    """Writes what a session decided about its clusters, each time over what it wrote before."""

    def __init__(self, directory: str, name: str) -> None:
        """Writes into a directory under a name such as `session_0000`."""
        self._directory = directory
        self._name = name

    def write(self, text: str, decisions: Sequence[Decision]) -> None:
        """Writes the report as text and the decisions as JSON, and brings the index up to date."""
        if self._directory == STANDARD_OUTPUT:
            _write(self._directory, f"{self._name}.{REPORT_SUFFIX}", text)
            return
        directory = Path(self._directory)
        try:
            write_atomically(directory / f"{self._name}.{DECISIONS_SUFFIX}", _decisions_text(decisions))
            write_atomically(directory / f"{self._name}.{REPORT_SUFFIX}", text)
            note_change(directory)
        except DumpError as error:
            warn_of(error, directory)


def module_dumper(options: DebugOptions, module_name: str) -> ModuleDumper | None:
    """The dumper for the next module; None when the options want no dump of it, or the directory cannot be used."""
    if not options.dumps_module(module_name):
        return None
    assert options.dump_to is not None, "dumps_module says so"
    name = _file_safe(module_name, _NAME_BYTES)
    prefix = _claim(options.dump_to, "module", f".{name}", Artefact.HLO.suffix)
    return None if prefix is None else ModuleDumper(options.dump_to, prefix, module_name, options.text_preset)


def session_dumper(options: DebugOptions) -> ReportDumper | None:
    """The dumper for the cluster report of the next session; None when the options want none, or it cannot be made."""
    if options.dump_to is None:
        return None
    name = _claim(options.dump_to, "session", "", REPORT_SUFFIX)
    return None if name is None else ReportDumper(options.dump_to, name)


_numbers: dict[tuple[str, str], Iterator[int]] = {}
_numbers_lock = threading.Lock()


def _claim(directory: str, kind: str, rest: str, first_suffix: str) -> str | None:
    """A prefix for file names, `KIND_0003REST`, that is ours alone: its first file is made at once, empty.

    None when the directory cannot be made or written to.
    """
    while True:
        try:
            prefix = f"{kind}_{_next_number(directory, kind):04d}{rest}"
            if directory != STANDARD_OUTPUT:
                (Path(directory) / f"{prefix}.{first_suffix}").open("x").close()
        except FileExistsError:  # by another process, since the numbers were looked at
            continue
        except DumpError as error:
            warn_of(error, directory)
            return None
        except OSError as error:
            warn_of(DumpError(f"dump directory {directory}: cannot be written: {error.strerror}"), directory)
            return None
        return prefix


def _next_number(directory: str, kind: str) -> int:
    """Counts on from the highest number that was in the directory when this process first used it."""
    with _numbers_lock:
        numbers = _numbers.get((directory, kind))
        if numbers is None:
            first = 0
            if directory != STANDARD_OUTPUT:
                _require_writable(Path(directory))
                first = highest_number(Path(directory), kind) + 1
            numbers = _numbers[directory, kind] = itertools.count(first)
        return next(numbers)


def _write(directory: str, name: str, content: str | bytes) -> None:
    if directory == STANDARD_OUTPUT:
        shown = content if isinstance(content, str) else f"{len(content)} bytes"
        print(f"*** {name}\n{shown}", file=sys.stdout)
        return
    path = Path(directory) / name
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        with contextlib.suppress(OSError):  # a disk that is full has room for a part
            path.unlink()
        raise DumpError(f"dump of {name}: cannot write to directory {directory}: {error.strerror or error}") from error


def _decisions_text(decisions: Sequence[Decision]) -> str:
    return json.dumps([decision.as_dict() for decision in decisions], indent=1) + "\n"


def _require_writable(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DumpError(f"dump directory {directory}: cannot be made: {error.strerror or error}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise DumpError(f"dump directory {directory}: not writable")


def _file_safe(name: str, limit_bytes: int) -> str:
    """The name with everything but letters, digits, `_`, `-`, `.` replaced; what is too long ends with a digest."""
    data = re.sub(r"[^\w.-]", "_", name).encode()
    if len(data) <= limit_bytes:
        return data.decode()
    digest = hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
    return f"{data[: limit_bytes - len(digest) - 1].decode(errors='ignore')}-{digest}"
