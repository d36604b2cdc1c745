"""Reads `--passes=dce,fusion{max_members=16}`: passes by name with options from their fields, and pipelines by name."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping

from xlalite.cli.errors import UsageError
from xlalite.hlo.wording import did_you_mean
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.pipeline import Stage, pass_names
from xlalite.passes.pipelines import finishing, normalization, simplification, target_independent

PIPELINES: dict[str, Callable[[], Stage]] = {
    "normalization": normalization,
    "simplification": simplification,
    "finishing": finishing,
    "target-independent": target_independent,
}
"""Pipelines that may stand in a list of passes."""

_ITEM = re.compile(r"\s*(?P<name>[^,{}]+?)\s*(?:\{(?P<options>[^{}]*)\}\s*)?(?:,|$)")
_NOT_AN_OPTION = "fuel"
_SWITCH_WORDS = {"true": True, "1": True, "false": False, "0": False}


def parse_passes(text: str, passes: Mapping[str, type[HloPass]]) -> tuple[Stage, ...]:
    """The passes and pipelines of a list, in order; passes are those of a backend.

    Raises:
        UsageError: A pass or option does not exist (the nearest is named), or the text is no such list.
    """
    stages: list[Stage] = []
    position = 0
    while position < len(text):
        match = _ITEM.match(text, position)
        if match is None:
            raise UsageError(f"--passes: expected pass or pass{{option=value,...}}, found {text[position:]!r}")
        stages.append(_stage(match["name"], match["options"], passes))
        position = match.end()
    if not stages:
        raise UsageError("--passes: expected the name of a pass; --list-passes shows them")
    return tuple(stages)


def list_passes(passes: Mapping[str, type[HloPass]]) -> str:
    """Every pass of a backend with its first sentence and its options, then the pipelines."""
    lines = []
    for name, hlo_pass in sorted(passes.items()):
        lines.append(f"{name:28} {_first_line(hlo_pass)}")
        lines += [f"{'':28}   {option}" for option in _described_options(hlo_pass)]
    lines.append("\npipelines:")
    for name, make in PIPELINES.items():
        lines.append(f"{name:28} {_first_line(make)}")
    return "\n".join(lines) + "\n"


def _stage(name: str, options: str | None, passes: Mapping[str, type[HloPass]]) -> Stage:
    if name in PIPELINES:
        if options is not None:
            raise UsageError(f"--passes: the pipeline {name} takes no options; it is {', '.join(_members(name))}")
        return PIPELINES[name]()
    if name not in passes:
        hint = did_you_mean(name, [*passes, *PIPELINES], "--list-passes shows them, --load FILE.py brings your own")
        raise UsageError(f"--passes: there is no pass {name!r}{hint}")
    return _with_options(passes[name], options or "")


def _members(pipeline: str) -> tuple[str, ...]:
    return pass_names(PIPELINES[pipeline]())


def _with_options(hlo_pass: type[HloPass], text: str) -> HloPass:
    fields = _options_of(hlo_pass)
    values: dict[str, object] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        name, equals, value = item.partition("=")
        if name not in fields:
            hint = did_you_mean(name, fields, f"it has {', '.join(fields) or 'none'}")
            raise UsageError(f"--passes: {hlo_pass.name} has no option {name!r}{hint}")
        values[name] = _value(hlo_pass, name, fields[name], value if equals else "true")
    made: HloPass = dataclasses.replace(hlo_pass(), **values)  # type: ignore[arg-type]  # read by the field's type
    return made


def _value(hlo_pass: type[HloPass], name: str, kind: object, text: str) -> object:
    where = f"--passes: {hlo_pass.name}{{{name}={text}}}"
    if kind is bool:
        if text.lower() not in _SWITCH_WORDS:
            raise UsageError(f"{where}: expected true or false")
        return _SWITCH_WORDS[text.lower()]
    if kind is str:
        return text
    number = int if kind is int else float
    try:
        return number(text)
    except ValueError:
        raise UsageError(f"{where}: expected {'an integer' if kind is int else 'a number'}") from None


def _options_of(hlo_pass: type[HloPass]) -> Mapping[str, object]:
    """Names and types of the fields that a command line can set."""
    types = typing.get_type_hints(hlo_pass)
    return {
        field.name: types[field.name]
        for field in dataclasses.fields(hlo_pass)
        if field.name != _NOT_AN_OPTION and types[field.name] in (bool, int, float, str)
    }


def _described_options(hlo_pass: type[HloPass]) -> Iterator[str]:
    example = hlo_pass()
    for name, kind in _options_of(hlo_pass).items():
        default = getattr(example, name)
        shown = str(default).lower() if kind is bool else default
        yield f"{{{name}={shown}}}"


def _first_line(documented: object) -> str:
    return (inspect.getdoc(documented) or "").split("\n", 1)[0]
