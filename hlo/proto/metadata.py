"""What instructions carry besides their meaning, as messages."""

from __future__ import annotations

import re
from collections.abc import Callable

from xlalite.hlo.ir.instruction import Metadata
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.spelling.codecs import format_float
from xlalite.hlo.text.annotation_text import FrontendAttributes
from xlalite.hlo.types.quoting import quote, unquote

_INTEGER = re.compile(r"-?\d{1,9}", re.ASCII)
_STRING = re.compile(r"""(["'])(?:[^"'\\]|\\.)*\1""", re.DOTALL)
_INTEGERS = ("source_end_line", "source_column", "source_end_column")
_LATE_INTEGERS = ("stack_frame_id", "size_of_generated_code_in_bytes", "size_of_memory_working_set_in_bytes")
_STRINGS = ("deduplicated_name", "scheduling_name")


def read_metadata(message: ProtoMessage) -> Metadata:
    """The metadata that an `OpMetadata` says; fields in the order of XLA's text.

    Raises:
        ParseError: A field has a value that it cannot have.
    """
    extra = [(name, str(message.integer(name))) for name in _INTEGERS if message.integer(name)]
    profile = ",".join(map(str, message.integers("profile_type")))
    if profile:
        extra.append(("profile_type", "{" + profile + "}"))
    extra += [(name, quote(message.text(name))) for name in _STRINGS if message.text(name)]
    extra += [(name, str(message.integer(name))) for name in _LATE_INTEGERS if message.integer(name)]
    extra += [(text.text("name"), text.text("text")) for text in message.messages("xlalite_text")]
    return Metadata(
        message.text("op_type"),
        message.text("op_name"),
        message.text("source_file"),
        message.integer("source_line"),
        tuple(extra),
    )


def write_metadata(metadata: Metadata, message: ProtoMessage) -> None:
    """Fills an `OpMetadata`."""
    message.put("op_type", metadata.op_type).put("op_name", metadata.op_name)
    message.put("source_file", metadata.source_file).put("source_line", metadata.source_line)
    for name, text in metadata.extra:
        if name in (*_INTEGERS, *_LATE_INTEGERS) and _INTEGER.fullmatch(text) and int(text):
            message.put(name, int(text))
        elif name in _STRINGS and _STRING.fullmatch(text) and len(text) > 2:
            message.put(name, unquote(text))
        elif name == "profile_type" and (numbers := _braced_integers(text)):
            message.put_all(name, numbers)
        else:
            message.append("xlalite_text").put("name", name).put("text", text)


def read_frontend_attributes(message: ProtoMessage) -> FrontendAttributes:
    """The pairs of a `FrontendAttributes`, sorted by name as XLA keeps them."""
    return tuple(sorted({entry.text("key"): entry.text("value") for entry in message.messages("map")}.items()))


def write_frontend_attributes(pairs: FrontendAttributes, message: ProtoMessage) -> None:
    """Fills a `FrontendAttributes`."""
    for name, value in pairs:
        message.append("map").put("key", name).put("value", value)


def read_extra_attributes(message: ProtoMessage) -> tuple[tuple[str, str], ...]:
    """The attributes of an instruction that xlalite only carries through, as the text has them."""
    found = [
        (name, text) for name, (field, read, _) in _CARRIED.items() if message.has(field) and (text := read(message))
    ]
    found += [(text.text("name"), text.text("text")) for text in message.messages("xlalite_text")]
    return tuple(found)


def write_extra_attributes(attributes: tuple[tuple[str, str], ...], message: ProtoMessage) -> None:
    """Fills the fields of an instruction for the attributes that have one; the others are kept as text."""
    for name, text in attributes:
        carried = _CARRIED.get(name)
        if carried is not None:
            field, read, write = carried
            if write(text, message) and read(message) == text:
                continue
            message.values.pop(field, None)
        message.append("xlalite_text").put("name", name).put("text", text)


# parameter_replication={true,false}


def _read_replication(message: ProtoMessage) -> str:
    flags = message.message("parameter_replication").booleans("replicated_at_leaf_buffers")
    return "{" + ",".join("true" if flag else "false" for flag in flags) + "}" if flags else ""


def _write_replication(text: str, message: ProtoMessage) -> bool:
    words = text.strip("{} ").replace(" ", "").split(",")
    if not {"true", "false"}.issuperset(words):
        return False
    message.open("parameter_replication").put_all("replicated_at_leaf_buffers", [word == "true" for word in words])
    return True


# statistics={visualizing_index=1,stat-1=33,stat-2=44}


def _read_statistics(message: ProtoMessage) -> str:
    shown = message.message("statistics_viz")
    stats = shown.messages("statistics")
    if not stats:
        return ""
    parts = [f"visualizing_index={shown.integer('stat_index_to_visualize')}"]
    parts += [f"{stat.text('stat_name')}={format_float(stat.number('stat_val'))}" for stat in stats]
    return "{" + ",".join(parts) + "}"


def _write_statistics(text: str, message: ProtoMessage) -> bool:
    parts = [part.partition("=") for part in text.strip("{}").split(",")]
    if parts[0][0] != "visualizing_index" or not _INTEGER.fullmatch(parts[0][2]):
        return False
    shown = message.open("statistics_viz").put("stat_index_to_visualize", int(parts[0][2]))
    for name, _, value in parts[1:]:
        number = _number(value)
        if number is None:
            return False
        shown.append("statistics").put("stat_name", name).put("stat_val", number)
    return True


# result_accuracy={mode=highest} or {tolerance={atol=0,rtol=0,ulps=2}}

_TOLERANCE = re.compile(r"\{tolerance=\{atol=([^,{}]+),rtol=([^,{}]+),ulps=(\d{1,18})\}\}", re.ASCII)


def _read_accuracy(message: ProtoMessage) -> str:
    accuracy = message.message("result_accuracy")
    if not accuracy.has("tolerance"):
        mode = accuracy.word("mode").lower()
        return "" if mode == "default" else "{mode=" + mode + "}"
    allowed = accuracy.message("tolerance")
    absolute, relative = format_float(allowed.number("atol")), format_float(allowed.number("rtol"))
    return "{tolerance={" + f"atol={absolute},rtol={relative},ulps={allowed.integer('ulps')}" + "}}"


def _write_accuracy(text: str, message: ProtoMessage) -> bool:
    accuracy = message.open("result_accuracy")
    if text == "{mode=highest}":
        accuracy.put_word("mode", "HIGHEST")
        return True
    match = _TOLERANCE.fullmatch(text)
    absolute, relative = (_number(match[1]), _number(match[2])) if match else (None, None)
    if match is None or absolute is None or relative is None:
        return False
    allowed = accuracy.open("tolerance").put("atol", absolute).put("rtol", relative)
    allowed.put("ulps", int(match[3]))
    return True


_CARRIED: dict[str, tuple[str, Callable[[ProtoMessage], str], Callable[[str, ProtoMessage], bool]]] = {
    "parameter_replication": ("parameter_replication", _read_replication, _write_replication),
    "statistics": ("statistics_viz", _read_statistics, _write_statistics),
    "result_accuracy": ("result_accuracy", _read_accuracy, _write_accuracy),
}


def _braced_integers(text: str) -> list[int]:
    words = text.strip("{}").split(",")
    return [int(word) for word in words] if all(map(_INTEGER.fullmatch, words)) else []


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
