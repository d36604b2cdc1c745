"""What holds for a module as a whole: its configuration as fields of `HloModuleProto`."""

from __future__ import annotations

from dataclasses import replace

from xlalite.hlo.ir.module import HloModule, InputOutputAlias, ModuleConfig
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.metadata import read_frontend_attributes, write_frontend_attributes
from xlalite.hlo.proto.shapes import read_signature, write_signature
from xlalite.hlo.proto.stack_frames import read_stack_frames, write_stack_frames
from xlalite.hlo.types.shape import ProgramShape

_KINDS = {"may-alias": "MAY_ALIAS", "must-alias": "MUST_ALIAS"}
# What no field of XLA's message holds travels as text.
_TABLES = "tables"
_COUNTS = ("replica_count", "num_partitions")
_EXTRA = "extra:"


def read_header(message: ProtoMessage, module: HloModule) -> None:
    """Sets the configuration of a module whose computations are there.

    Raises:
        ParseError: A field has an impossible value.
    """
    texts = {text.text("name"): text for text in message.messages("xlalite_text")}
    counts = _read_counts(message, texts)
    module.config = ModuleConfig(
        is_scheduled=message.has("schedule"),
        entry_layout=_read_layout(message, module),
        input_output_alias=tuple(map(_read_alias, message.message("input_output_alias").messages("entries"))),
        buffer_donors=tuple(
            (donor.integer("parameter_number"), donor.integers("parameter_shape_index"))
            for donor in message.message("buffer_donor").messages("entries")
        ),
        replica_count=counts[0],
        num_partitions=counts[1],
        frontend_attributes=read_frontend_attributes(message.message("frontend_attributes")),
        extra=tuple(
            (name.removeprefix(_EXTRA), text.text("text")) for name, text in texts.items() if name.startswith(_EXTRA)
        ),
    )
    written = texts.get(_TABLES)
    module.tables = written.text("text") if written else read_stack_frames(message.message("stack_frame_index"))


def write_header(module: HloModule, message: ProtoMessage) -> None:
    """Fills the fields of a module's message that do not concern its computations."""
    config, entry = module.config, module.entry_computation
    layout = config.entry_layout or entry.program_shape
    write_signature(layout, tuple(p.name for p in entry.parameters), message.open("host_program_shape"))
    for alias in config.input_output_alias:
        entry_message = message.open("input_output_alias").append("entries")
        entry_message.put_all("output_shape_index", alias.output_index)
        entry_message.put("parameter_number", alias.parameter_number)
        entry_message.put_all("parameter_shape_index", alias.parameter_index)
        entry_message.put_word("kind", _KINDS[alias.kind])
    for number, index in config.buffer_donors:
        donor = message.open("buffer_donor").append("entries").put("parameter_number", number)
        donor.put_all("parameter_shape_index", index)
    if config.frontend_attributes:
        write_frontend_attributes(config.frontend_attributes, message.open("frontend_attributes"))
    texts = [(name, str(getattr(config, name))) for name in _COUNTS if getattr(config, name) != 1]
    texts += [(_EXTRA + name, text) for name, text in config.extra]
    if module.tables:
        stack_frames = message.open("stack_frame_index")
        if not write_stack_frames(module.tables, stack_frames):
            del message.values["stack_frame_index"]
            texts.append((_TABLES, module.tables))
    for name, text in texts:
        message.append("xlalite_text").put("name", name).put("text", text)


def _read_alias(message: ProtoMessage) -> InputOutputAlias:
    alias = InputOutputAlias(
        message.integers("output_shape_index"),
        message.integer("parameter_number"),
        message.integers("parameter_shape_index"),
    )
    match message.word("kind"):
        case "MAY_ALIAS":
            return alias
        case "MUST_ALIAS":
            return replace(alias, kind="must-alias")
        case word:
            raise message.error(f"kind: found {word}, expected MAY_ALIAS or MUST_ALIAS")


def _read_counts(message: ProtoMessage, texts: dict[str, ProtoMessage]) -> tuple[int, int]:
    """Numbers of replicas and partitions: as written, else those of the assignment of devices."""
    assignment = message.message("device_assignment")
    found = [assignment.integer("replica_count") or 1, assignment.integer("computation_count") or 1]
    for position, name in enumerate(_COUNTS):
        if name in texts:
            text = texts[name].text("text")
            if not (text.isascii() and text.isdigit() and len(text) < 10):
                raise texts[name].error(f"{name}: found {text[:40]!r}, expected a number")
            found[position] = int(text)
    return found[0], found[1]


def _read_layout(message: ProtoMessage, module: HloModule) -> ProgramShape | None:
    """The entry's layout if it says something new."""
    if not message.has("host_program_shape"):
        return None
    layout, signature = read_signature(message.message("host_program_shape")), module.entry_computation.program_shape
    found, expected = ((*one.parameters, one.result) for one in (layout, signature))
    if len(found) != len(expected):
        raise message.error(
            f"host_program_shape: found {len(found) - 1} parameters, the entry computation has {len(expected) - 1}"
        )
    for one, other in zip(found, expected, strict=True):
        if not one.compatible(other):
            raise message.error(f"host_program_shape: found {one.text()}, expected {other.text()}")
    same = all(a.with_default_layout() == b.with_default_layout() for a, b in zip(found, expected, strict=True))
    return None if same else layout
