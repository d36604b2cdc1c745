"""Exchange with the host and between devices: infeed, outfeed, send, recv.

A send and a recv with the frontend attribute `_xla_send_recv_source_target_pairs` connect devices: partitions, or
replicas when there is one partition only. All others go to the host, which also stands for what is in the same channel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext, Trait
from xlalite.hlo.ops.asynchronous import tuple_element, zero_value
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import BOOL, INT, SHAPE, STRING
from xlalite.hlo.surroundings.devices import Device, current_device
from xlalite.hlo.surroundings.host_transfers import current_transfers
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal, Token, Value
from xlalite.hlo.types.shape import Shape


def _require_token(context: ShapeContext, position: int) -> None:
    found = context.operands[position]
    context.require(found.is_token, f"operand {position} must be a token, found {found.text()}")


def _received(value: Value, shape: Shape, opcode: str) -> Value:
    """A value from the host, which must have the shape that the program expects."""
    literal = Literal(value)
    if not literal.shape.compatible(shape):
        raise EvaluationError(f"{opcode}: the host gave {literal.shape.text()}, the program expects {shape.text()}")
    return literal.to_value()


@dataclass(frozen=True, slots=True)
class InfeedAttrs:
    """Configuration that the host understands."""

    infeed_config: str = attribute(STRING, default="")


def _infeed_shape(context: ShapeContext) -> Shape:
    _require_token(context, 0)
    declared = context.declared
    context.require(
        declared is not None and declared.is_tuple and len(declared.elements) == 2 and declared.elements[1].is_token,
        "the result shape must be given as (data, token[])",
    )
    assert declared is not None, "required above"
    return declared


def _infeed(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    data = current_transfers("infeed").take_infeed()
    return _received(data, instruction.shape.elements[0], "infeed"), Token()


@dataclass(frozen=True, slots=True)
class OutfeedAttrs:
    """Shape with layout of the data, and configuration that the host understands."""

    outfeed_shape: Shape | None = attribute(SHAPE, default=None)
    outfeed_config: str = attribute(STRING, default="")


def _outfeed_shape(context: ShapeContext) -> Shape:
    _require_token(context, 1)
    wanted = context.attrs.outfeed_shape
    context.require(
        wanted is None or wanted.compatible(context.operands[0]),
        f"outfeed_shape {wanted.text() if wanted is not None else ''} differs from operand 0",
    )
    return Shape.token()


def _outfeed(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    current_transfers("outfeed").outfeed.append(operands[0])
    return Token()


@dataclass(frozen=True, slots=True)
class ChannelAttrs:
    """Number of the channel, and whether the other end is the host."""

    channel_id: int | None = attribute(INT, default=None)
    is_host_transfer: bool = attribute(BOOL, default=False)


def _send_shape(context: ShapeContext) -> Shape:
    _require_token(context, 1)
    return Shape.tuple([context.operands[0], Shape.array(DType.U32), Shape.token()])


_PAIRS_NAME = "_xla_send_recv_source_target_pairs"
_PAIR = r"\{\s*(\d+)\s*,\s*(\d+)\s*\}"


def device_pairs(instruction: HloInstruction) -> list[tuple[int, int]] | None:
    """(source, target) device numbers of a send or recv; None if the other end is the host."""
    text = dict(instruction.frontend_attributes).get(_PAIRS_NAME)
    if text is None or instruction.attrs.is_host_transfer:
        return None
    return [(int(source), int(target)) for source, target in re.findall(_PAIR, text)]


def _own_number(device: Device) -> int:
    return device.replica if device.num_partitions == 1 else device.partition


def _rank(device: Device, number: int, instruction: HloInstruction) -> int:
    count = device.replica_count if device.num_partitions == 1 else device.num_partitions
    if number >= count:
        raise EvaluationError(f"{instruction.opcode} (%{instruction.name}) needs device {number}, there are {count}")
    return number if device.num_partitions == 1 else device.replica * device.num_partitions + number


def _send(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    pairs, channel = device_pairs(instruction), instruction.attrs.channel_id or 0
    if pairs is None:
        current_transfers("send").send(channel, operands[0])
    else:
        device = current_device(instruction)
        for source, target in pairs:
            if source == _own_number(device):
                device.send(channel, _rank(device, target, instruction), operands[0])
    return operands[0], np.zeros((), np.uint32), Token()


def _under_way(context: ShapeContext, what: str) -> Shape:
    """The operand of a -done operation: (data, u32[], token[])."""
    operand = context.operands[0]
    context.require(
        operand.is_tuple and len(operand.elements) == 3 and operand.elements[2].is_token,
        f"the operand must be a {what}, found {operand.text()}",
    )
    return operand


def _send_done_shape(context: ShapeContext) -> Shape:
    _under_way(context, "send")
    return Shape.token()


def _send_done(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    return Token()


def _recv_shape(context: ShapeContext) -> Shape:
    _require_token(context, 0)
    declared = context.declared
    context.require(
        declared is not None and declared.is_tuple and len(declared.elements) == 3,
        "the result shape must be given as (data, u32[], token[])",
    )
    assert declared is not None, "required above"
    context.require(
        declared.elements[1].compatible(Shape.array(DType.U32)) and declared.elements[2].is_token,
        f"the result shape must be (data, u32[], token[]), found {declared.text()}",
    )
    return declared


def _recv(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """The value is there at once if it comes from the host; one from a device is waited for by recv-done.

    The second element, which has no meaning elsewhere, tells recv-done whether to wait.
    """
    shape, pairs = instruction.shape.elements[0], device_pairs(instruction)
    if pairs is None:
        data = current_transfers("recv").receive(instruction.attrs.channel_id or 0)
        return _received(data, shape, "recv"), np.zeros((), np.uint32), Token()
    expects = any(target == _own_number(current_device(instruction)) for _, target in pairs)
    return zero_value(shape), np.full((), expects, np.uint32), Token()


def _recv_done_shape(context: ShapeContext) -> Shape:
    operand = _under_way(context, "recv")
    return Shape.tuple([operand.elements[0], Shape.token()])


def _recv_done(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    data = tuple_element(operands[0], 0)
    if array_value(tuple_element(operands[0], 1)):
        sent = current_device(instruction).receive(instruction, instruction.attrs.channel_id or 0)
        data = _received(sent, instruction.shape.elements[0], "recv-done")
    return data, Token()


OPS = (
    OpDef(
        "infeed",
        "(the next value from the host, token)",
        1,
        _infeed_shape,
        _infeed,
        attrs=InfeedAttrs,
        traits=Trait.SIDE_EFFECT,
        explicit_shape=True,
    ),
    OpDef("outfeed", "gives a value to the host", 2, _outfeed_shape, _outfeed, OutfeedAttrs, Trait.SIDE_EFFECT),
    OpDef("send", "puts a value into a channel", 2, _send_shape, _send, ChannelAttrs, Trait.SIDE_EFFECT),
    OpDef(
        "send-done", "a token once the value is sent", 1, _send_done_shape, _send_done, ChannelAttrs, Trait.SIDE_EFFECT
    ),
    OpDef(
        "recv",
        "takes a value from a channel",
        1,
        _recv_shape,
        _recv,
        attrs=ChannelAttrs,
        traits=Trait.SIDE_EFFECT,
        explicit_shape=True,
    ),
    OpDef(
        "recv-done",
        "(the value, token) once it is there",
        1,
        _recv_done_shape,
        _recv_done,
        ChannelAttrs,
        Trait.SIDE_EFFECT,
    ),
)
