"""Writes what a compilation leaves behind into files named as XLA names them.

`module_0003.NAME.before_optimizations.txt`, `module_0003.NAME.0012.PIPELINE.after_X.before_Y.txt`; what a backend
leaves behind it names itself. A record of the whole goes into the directory's index (`records.py`, `index.py`). What
cannot be written is missing, with one warning for the directory: a dump never ends the program that it shows.
"""

from __future__ import annotations

import contextlib
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

from xlalite.hlo import log
from xlalite.hlo.digest import blake2b
from xlalite.hlo.errors import DumpError, XlaliteError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.decision import Decision
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.instrumentation import PIPELINE_START
from xlalite.passes.core.pass_record import PassRecord
from xlalite.passes.dump.index import note_change, warn_of
from xlalite.passes.dump.records import (
    DECISIONS,
    DECISIONS_SUFFIX,
    FORMAT,
    GIVEN,
    GIVEN_SUFFIX,
    RECORD_SUFFIX,
    REPORT_SUFFIX,
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
    """Writes the dump of one compilation: an observer of its passes, and a context that ends with its record."""

    def __init__(self, options: DebugOptions, directory: str, prefix: str, module_name: str) -> None:
        """Starts the clock; writes nothing yet.

        Args:
            options: Which passes to show, and how.
            directory: Where to write; `-` prints to standard output instead.
            prefix: How file names start: `module_0003.NAME`.
            module_name: Name of the module.
        """
        self.directory = directory
        self.prefix = prefix
        self._options = options
        self._module_name = module_name
        self._files: dict[str, str] = {}
        self._passes: list[PassRecord] = []
        self._previous: dict[str, str] = {}
        self._text: str | None = None
        # The file that shows the module as it is now; None when it changed since the last file.
        self._shown_in: str | None = None
        self._phases: dict[str, float] = {}
        self._start = self._phase_start = time.perf_counter()
        self._started = time.strftime("%Y-%m-%dT%H:%M:%S%z")

    def __enter__(self) -> ModuleDumper:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: object) -> None:
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
            tuple(self._passes),
            self._files,
            {name: round(ms, 3) for name, ms in self._phases.items()},
        )
        directory = Path(self.directory)
        record = {"format": FORMAT, **entry.as_json()}
        try:
            write_atomically(directory / f"{self.prefix}.{RECORD_SUFFIX}", json.dumps(record) + "\n")
            note_change(directory)
        except DumpError as error:
            warn_of(error, directory)

    def end_phase(self, name: str) -> None:
        """Says what the compilation did since the last phase ended, or since it began."""
        now = time.perf_counter()
        self._phases[name] = self._phases.get(name, 0.0) + 1e3 * (now - self._phase_start)
        self._phase_start = now

    def write(self, name: str, suffix: str, content: str | bytes) -> str | None:
        """Writes the file PREFIX.SUFFIX, which the record mentions under a name.

        Returns:
            The file's name, or None if it cannot be written.
        """
        file = self._write(suffix, content)
        if file is not None:
            self._files[name] = file
        return file

    def write_given(self, module: HloModule) -> None:
        """Writes the module before the first pass."""
        self._shown_in = self.write(GIVEN, GIVEN_SUFFIX, self._text_of(module))
        self.write_forms(module, GIVEN_SUFFIX)

    def write_forms(self, module: HloModule, suffix: str) -> None:
        """Writes the module as whatever the options want besides the text, beside the file of a suffix."""
        for form in self._options.dump_forms:
            if self.directory != STANDARD_OUTPUT:
                self._write_form(module, form, suffix.removesuffix(".txt"))

    def _write_form(self, module: HloModule, form: str, stem: str) -> None:
        if form == "proto":
            self._write(f"{stem}.hlo.pb", module.to_proto())
            return
        if form == "dot":
            from xlalite.hlo.tools.graph.dot import graph_dot  # and with it networkx

            self._write(f"{stem}.dot", graph_dot(module))
            return
        from xlalite.hlo.tools.graph.page import graph_page

        name = self._write(f"{stem}.html", graph_page(module))
        if form == "url" and name is not None:
            log.warning("%s: %s", module.name, (Path(self.directory) / name).absolute().as_uri())

    def write_decisions(self, decisions: Sequence[Decision]) -> None:
        """Writes the decisions as JSON."""
        self.write(DECISIONS, DECISIONS_SUFFIX, _decisions_text(decisions))

    def before_pass(self, module: HloModule, record: PassRecord) -> None:
        """Writes the module as it enters a pipeline if `pipeline-start` is asked for; keeps its text if the pass is."""
        if record.pipeline not in self._previous:
            self._previous[record.pipeline] = PIPELINE_START
            if self._options.dumps_pass(record.pipeline, PIPELINE_START):
                self._write_state(self._name_before(record), self._text_now(module))
        if self._options.dumps_pass(record.pipeline, record.name):
            self._text_now(module)

    def after_pass(self, module: HloModule, record: PassRecord) -> None:
        """Writes the module if the pass changed it and its name is asked for."""
        before, after = self._write_change(module, record) if record.changed else (None, None)
        self._passes.append(replace(record, before=before, after=after))
        self._previous[record.pipeline] = record.name

    def failed_pass(self, module: HloModule, record: PassRecord) -> str | None:
        """Writes the module as the failing pass left it; None when it is too broken to print or cannot be written."""
        suffix = f"{record.number:04d}.{record.pipeline}.failed_{record.name}"
        try:
            text = self._text_of(module)
        except XlaliteError:
            return None
        name = self._write(f"{_file_safe(suffix, _SUFFIX_BYTES)}.txt", text)
        if name is None:
            return None
        return STANDARD_OUTPUT if self.directory == STANDARD_OUTPUT else str(Path(self.directory) / name)

    def _write(self, suffix: str, content: str | bytes) -> str | None:
        name = f"{self.prefix}.{suffix}"
        try:
            _write(self.directory, name, content)
        except DumpError as error:
            warn_of(error, self.directory)
            return None
        return name

    def _write_change(self, module: HloModule, record: PassRecord) -> tuple[str, str] | tuple[None, None]:
        """The files that show the module before and after the pass, if both are there."""
        text, self._text = self._text, None
        if not self._options.dumps_pass(record.pipeline, record.name):
            self._shown_in = None
            return None, None
        assert text is not None, "before_pass keeps it"
        if self._shown_in is None:
            self._write_state(self._name_before(record), text)
        before = self._shown_in
        suffix = f"{record.number:04d}.{record.pipeline}.after_{record.name}.before_{record.following}"
        self._write_state(suffix, self._text_now(module))
        self.write_forms(module, _file_safe(suffix, _SUFFIX_BYTES))
        if before is None or self._shown_in is None:
            return None, None
        return before, self._shown_in

    def _write_state(self, suffix: str, text: str) -> None:
        """Writes the text of the module as it is now."""
        self._shown_in = self._write(f"{_file_safe(suffix, _SUFFIX_BYTES)}.txt", text)

    def _text_of(self, module: HloModule) -> str:
        return module.to_string(self._options.text_preset)

    def _text_now(self, module: HloModule) -> str:
        if self._text is None:
            self._text = self._text_of(module)
        return self._text

    def _name_before(self, record: PassRecord) -> str:
        previous = self._previous[record.pipeline]
        return f"{record.number - 1:04d}.{record.pipeline}.after_{previous}.before_{record.name}"


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
    if options.dump_max_modules is not None and _dumped(options.dump_to) >= options.dump_max_modules:
        return None
    name = _file_safe(module_name, _NAME_BYTES)
    prefix = _claim(options.dump_to, "module", f".{name}", GIVEN_SUFFIX)
    return None if prefix is None else ModuleDumper(options, options.dump_to, prefix, module_name)


def _dumped(directory: str) -> int:
    """How many modules have been dumped into a directory."""
    return 0 if directory == STANDARD_OUTPUT else highest_number(Path(directory), "module") + 1


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
    digest = blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
    return f"{data[: limit_bytes - len(digest) - 1].decode(errors='ignore')}-{digest}"
