"""The protocol buffers that jaxlib sends with a program and wants with an executable.

Source: `compile_options.proto`, `xla_data.proto` and `hlo.proto` of OpenXLA; what is not needed is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

from xlalite.backends.base import CompileOptions
from xlalite.client.compilation import compile_options
from xlalite.flags import flags_from_environment
from xlalite.hlo.errors import ParseError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.module_writer import write_module
from xlalite.hlo.proto.schema import declare_messages
from xlalite.hlo.proto.wire import decode, encode
from xlalite.hlo.records import dataclass

declare_messages("""
CompileOptionsProto:
    3 executable_build_options ExecutableBuildOptionsProto; 7 env_option_overrides OptionEntry*
ExecutableBuildOptionsProto:
    4 num_replicas int64; 5 num_partitions int64; 9 device_assignment DeviceNumbersProto
DeviceNumbersProto:
    1 replica_count int32; 2 computation_count int32; 3 computation_devices ComputationDevice*
ComputationDevice:
    1 replica_device_ids int64*
OptionEntry:
    1 key string; 2 value OptionOverrideProto
OptionOverrideProto:
    1 string_field string?; 2 bool_field bool?; 3 int_field int64?; 4 double_field double?
HloModuleProtoWithConfig:
    1 hlo_module HloModuleProto; 2 config HloModuleConfigProto
HloModuleConfigProto:
    1 entry_computation_layout ProgramShapeProto
""")


@dataclass(frozen=True)
class ProgramOptions:
    """What is asked of a program.

    Attributes:
        devices: Numbers of the devices, the replicas of each partition in a row.
        replica_count: Number of replicas.
        num_partitions: Number of partitions.
        overrides: The compiler's options by name.
        donates: Whether results may take the memory of arguments.
    """

    devices: tuple[tuple[int, ...], ...] = ((0,),)
    replica_count: int = 1
    num_partitions: int = 1
    overrides: Mapping[str, str | bool | int | float] = field(default_factory=dict)
    donates: bool = True

    @property
    def device_numbers(self) -> tuple[int, ...]:
        """The devices by rank (`replica * num_partitions + partition`)."""
        return tuple(row[replica] for replica in range(self.replica_count) for row in self.devices)

    @property
    def compile_options(self) -> CompileOptions:
        """How the program is compiled: as the flags in the environment say, but for what jax asks of this one.

        Raises:
            FlagError: A flag does not exist, or a value is not what it takes.
        """
        options = compile_options(flags_from_environment())
        asked = self.overrides.get("xla_allow_excess_precision", options.debug.allow_excess_precision)
        debug = replace(options.debug, allow_excess_precision=str(asked).lower() in ("true", "1"))
        return replace(options, donate_arguments=self.donates, debug=debug)

    def assignment(self) -> bytes:
        """The devices as a message."""
        message = ProtoMessage("DeviceNumbersProto")
        message.put("replica_count", self.replica_count).put("computation_count", self.num_partitions)
        for row in self.devices:
            message.append("computation_devices").put_all("replica_device_ids", row)
        return encode(message)


def read_options(data: bytes) -> ProgramOptions:
    """The options in a `CompileOptionsProto`.

    Raises:
        ParseError: The bytes are no such message, or its numbers contradict each other.
    """
    message = decode(data, "CompileOptionsProto")
    build = message.message("executable_build_options")
    replicas, partitions = max(1, build.integer("num_replicas")), max(1, build.integer("num_partitions"))
    rows: tuple[tuple[int, ...], ...]
    if build.has("device_assignment"):
        assignment = build.message("device_assignment")
        rows = tuple(row.integers("replica_device_ids") for row in assignment.messages("computation_devices"))
    else:
        rows = tuple(tuple(range(row, replicas * partitions, partitions)) for row in range(partitions))
    if len(rows) != partitions or any(len(row) != replicas for row in rows):
        raise ParseError(f"the device assignment does not name devices for {replicas} x {partitions} programs")
    entries = message.messages("env_option_overrides")
    return ProgramOptions(rows, replicas, partitions, {e.text("key"): _value(e.message("value")) for e in entries})


def _value(message: ProtoMessage) -> str | bool | int | float:
    if message.has("string_field"):
        return message.text("string_field")
    if message.has("bool_field"):
        return message.boolean("bool_field")
    return message.integer("int_field") if message.has("int_field") else message.number("double_field")


def module_with_config(module: HloModule, complete: Callable[[ProtoMessage], None] | None = None) -> bytes:
    """An `HloModuleProtoWithConfig`: the form in which jaxlib shows an optimised program; something may be added."""
    written = write_module(module)
    if complete is not None:
        complete(written)
    message = ProtoMessage("HloModuleProtoWithConfig").put("hlo_module", written)
    message.open("config").put("entry_computation_layout", written.message("host_program_shape"))
    return encode(message)
