"""What a dump says about itself: one JSON record for each module, gathered in `index.json`.

Every process writes the records of its own modules only; the index is made of all records in the directory, so that
several processes, or several runs, share a directory. Other tools may read `index.json`; `format` tells its version.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from xlalite.hlo.errors import DumpError
from xlalite.hlo.records import dataclass
from xlalite.passes.core.pass_record import PassRecord

FORMAT = 3
"""Version of records and index."""

RECORD_SUFFIX = "record.json"
REPORT_SUFFIX = "cluster_report.txt"
DECISIONS_SUFFIX = "decisions.json"
GIVEN_SUFFIX = "before_optimizations.txt"

GIVEN = "hlo-before-optimizations"
DECISIONS = "decisions"
"""What records call the files that every dump has; for all others the backend has a name."""

_PASS_NUMBER = re.compile(r"\d{4}\.")


class Status(enum.Enum):
    """How a compilation ended."""

    COMPILED = "compiled"
    FAILED = "failed"
    UNFINISHED = "unfinished"
    UNREAD = "recorded by another version"


@dataclass(frozen=True, slots=True)
class ModuleEntry:
    """One compilation.

    Attributes:
        prefix: How the names of its files start: `module_0003.NAME`.
        name: The module's name.
        status: How it ended.
        error: Why it failed.
        process: Number of the process.
        command: The process's command line.
        started: When, in ISO 8601.
        compile_ms: How long it took, dumping included.
        passes: What each pass did.
        files: File names by what they show: names of stages, `decisions`.
        phases: Milliseconds of each phase of which the backend said that it ended; `dumps` is the writing of files.
    """

    prefix: str
    name: str
    status: Status
    error: str = ""
    process: int = 0
    command: str = ""
    started: str = ""
    compile_ms: float = 0.0
    passes: tuple[PassRecord, ...] = ()
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    phases: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The entry for JSON."""
        return {
            **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)},
            "status": self.status.value,
            "passes": [dataclasses.asdict(entry) for entry in self.passes],
            "files": dict(self.files),
            "phases": dict(self.phases),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ModuleEntry:
        """The entry that `as_json` wrote."""
        passes = tuple(map(PassRecord.from_json, data["passes"]))
        return ModuleEntry(**{**data, "status": Status(data["status"]), "passes": passes})


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """A session's report on its clusters.

    Attributes:
        name: The session: `session_0000`.
        file: The text.
        decisions: The file with the decisions.
    """

    name: str
    file: str
    decisions: str


@dataclass(frozen=True, slots=True)
class DumpContents:
    """Everything in a directory of dumps, in order of the numbers in the names."""

    modules: tuple[ModuleEntry, ...] = ()
    reports: tuple[ReportEntry, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What `index.json` holds."""
        return {
            "format": FORMAT,
            "modules": [entry.as_json() for entry in self.modules],
            "reports": [dataclasses.asdict(entry) for entry in self.reports],
        }


def read_contents(directory: Path) -> DumpContents:
    """The records in a directory; modules without one, whose process died, count as unfinished.

    Of those that another version recorded only the files are known.

    Raises:
        DumpError: The directory cannot be read.
    """
    names = _file_names(directory)
    modules = {entry.prefix: entry for entry in _records(directory, names)}
    for name in names:
        prefix = name.removesuffix(f".{GIVEN_SUFFIX}")
        if prefix != name and prefix not in modules:
            modules[prefix] = _without_record(prefix, names)
    reports = [
        ReportEntry(name.removesuffix(f".{REPORT_SUFFIX}"), name, name.replace(REPORT_SUFFIX, DECISIONS_SUFFIX))
        for name in names
        if name.endswith(f".{REPORT_SUFFIX}")
    ]
    return DumpContents(tuple(modules[prefix] for prefix in sorted(modules)), tuple(reports))


def highest_number(directory: Path, kind: str) -> int:
    """The highest number among the names `KIND_0003.…` in a directory; -1 when there is none."""
    pattern = re.compile(rf"{kind}_(\d+)\.")
    matches = map(pattern.match, _file_names(directory))
    return max((int(match[1]) for match in matches if match), default=-1)


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that readers see the old text or the new one, never a part.

    Raises:
        DumpError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise DumpError(f"dump of {path.name}: cannot write to directory {path.parent}: {error.strerror}") from error


def _file_names(directory: Path) -> list[str]:
    try:
        return sorted(path.name for path in directory.iterdir()) if directory.exists() else []
    except OSError as error:
        raise DumpError(f"dump directory {directory}: cannot be read: {error.strerror}") from error


def _records(directory: Path, names: list[str]) -> Iterator[ModuleEntry]:
    for name in names:
        if name.endswith(f".{RECORD_SUFFIX}"):
            data = _read_object(directory / name)
            if data.pop("format", None) == FORMAT:
                yield ModuleEntry.from_json(data)


def _read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one for a file that is damaged or has gone."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _without_record(prefix: str, names: list[str]) -> ModuleEntry:
    """What is there of a module without a record that can be read; nobody says what the backend's files show."""
    shown = {GIVEN_SUFFIX: GIVEN, DECISIONS_SUFFIX: DECISIONS}
    suffixes = [name.removeprefix(f"{prefix}.") for name in names if name.startswith(f"{prefix}.")]
    files = {shown.get(one, one): f"{prefix}.{one}" for one in suffixes if not _PASS_NUMBER.match(one)}
    status = Status.UNREAD if RECORD_SUFFIX in suffixes else Status.UNFINISHED
    return ModuleEntry(prefix, prefix.partition(".")[2], status, files=files)
