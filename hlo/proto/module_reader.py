"""`HloModuleProto` to modules.

Operands, control predecessors and called computations are given by number and must come before whoever names them.
"""

from __future__ import annotations

from xlalite.hlo.errors import ParseError, XlaliteError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import calls_itself, post_order
from xlalite.hlo.ops import OPS
from xlalite.hlo.proto.attribute_table import in_call_order, is_attribute_text, read_attrs
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.metadata import read_extra_attributes, read_frontend_attributes, read_metadata
from xlalite.hlo.proto.module_header import read_header
from xlalite.hlo.proto.names import is_own_name, read_instruction_name, read_name
from xlalite.hlo.proto.shapes import read_shape
from xlalite.hlo.proto.shardings import read_sharding
from xlalite.hlo.types.shape import ProgramShape, Shape


def read_module(message: ProtoMessage) -> HloModule:
    """The module that an `HloModuleProto` says.

    Raises:
        ParseError: It says none; says where.
    """
    return _ModuleReader(message).read()


class _ModuleReader:
    """Reads one module."""

    __slots__ = ("computations", "message", "metadata", "module", "shapes", "signatures")

    def __init__(self, message: ProtoMessage) -> None:
        self.message = message
        self.module = HloModule(read_name(message))
        self.computations: dict[int, HloComputation] = {}
        self.signatures: dict[HloComputation, ProgramShape] = {}
        # Equal messages are shared by the decoder; the value keeps the key's object alive.
        self.shapes: dict[int, tuple[ProtoMessage, Shape]] = {}
        self.metadata: dict[int, tuple[ProtoMessage, Metadata]] = {}

    def read(self) -> HloModule:
        message = self.message
        sequences = {
            sequence.integer("key"): sequence for sequence in message.message("schedule").messages("sequences")
        }
        for one in message.messages("computations"):
            number = one.integer("id")
            if number in self.computations:
                raise one.error(f"there is already a computation with id {number}")
            self.computations[number] = self.read_computation(one, sequences.pop(number, None))
        for number, sequence in sequences.items():
            raise sequence.error(f"schedule: there is no computation with id {number}")
        entry = self.computations.get(message.integer("entry_computation_id"))
        if entry is None:
            raise message.error(
                f"entry_computation_id: there is no computation with id {message.integer('entry_computation_id')}"
            )
        for computation in self.printing_order():
            self.module.add(computation, entry=computation is entry)
        read_header(message, self.module)
        return self.module

    def read_computation(self, message: ProtoMessage, sequence: ProtoMessage | None) -> HloComputation:
        computation = HloComputation(read_name(message))
        computation.execution_thread = message.text("execution_thread")
        known: dict[int, HloInstruction] = {}
        for one in message.messages("instructions"):
            number = one.integer("id")
            if number in known:
                raise one.error(f"there is already an instruction with id {number} in {computation.name}")
            try:
                known[number] = computation.add(self.read_instruction(one, known))
            except ParseError:
                raise
            except XlaliteError as error:
                raise one.error(f"%{one.text('name')[:80]}: {error}") from error
        root = known.get(message.integer("root_id"))
        if root is None:
            raise message.error(f"root_id: computation {computation.name} has no such instruction")
        computation.set_root(root)
        numbers = [parameter.attrs.number for parameter in computation.parameters]
        if numbers != list(range(len(numbers))):
            raise message.error(f"the parameters are numbered {numbers[:10]}, expected 0, 1, ... without gaps")
        if sequence is not None:
            _set_schedule(computation, known, sequence)
        self.signatures[computation] = computation.program_shape
        return computation

    def printing_order(self) -> tuple[HloComputation, ...]:
        """The order of the computations in XLA's text: callees first, in the order of their callers' numbers."""
        callees: dict[HloComputation, tuple[HloComputation, ...]] = {}
        for message in self.message.messages("computations"):
            by_id = sorted(message.messages("instructions"), key=lambda instruction: instruction.integer("id"))
            numbers = (number for instruction in by_id for number in instruction.integers("called_computation_ids"))
            computation = self.computations[message.integer("id")]
            callees[computation] = tuple(self.computations[number] for number in dict.fromkeys(numbers))
        called = {callee for some in callees.values() for callee in some}
        starts = [*(one for one in callees if one not in called), *callees]
        return post_order(starts, callees.__getitem__, calls_itself)

    def read_instruction(self, message: ProtoMessage, known: dict[int, HloInstruction]) -> HloInstruction:
        opcode = message.text("opcode")
        op = OPS.get(opcode)
        if op is None:
            raise message.error(f"unknown operation {opcode[:60]!r}")
        operands = [_lookup(known, number, message, "operand") for number in message.integers("operand_ids")]
        shapes = tuple(operand.shape for operand in operands)
        attrs = read_attrs(op, message, shapes)
        called = in_call_order(op, self.read_called(message))
        names, is_list = op.calls.names, op.calls.list_name is not None
        if not (is_list or len(called) == len(names) or (op.calls.optional and not called)):
            raise message.error(f"{opcode} calls {len(names)} computations, found {len(called)}")
        declared = self.read_shape(message.message("shape"))
        inferred = op.infer_shape(shapes, attrs, [self.signatures[one] for one in called], declared)
        if inferred is not declared and not inferred.compatible(declared):
            raise message.error(f"{opcode}: found result shape {declared.text()}, expected {inferred.text()}")
        instruction = HloInstruction(
            op, declared, operands, attrs, called, read_instruction_name(message), self.read_metadata(message)
        )
        self.annotate(instruction, message)
        for number in message.integers("control_predecessor_ids"):
            instruction.add_control_predecessor(_lookup(known, number, message, "control predecessor"))
        return instruction

    def read_called(self, message: ProtoMessage) -> tuple[HloComputation, ...]:
        called = []
        for number in message.integers("called_computation_ids"):
            computation = self.computations.get(number)
            if computation is None:
                raise message.error(f"called_computation_ids: there is no computation with id {number} above")
            called.append(computation)
        return tuple(called)

    def annotate(self, instruction: HloInstruction, message: ProtoMessage) -> None:
        if message.has("sharding"):
            instruction.sharding = read_sharding(message.message("sharding"))
        if message.has("frontend_attributes"):
            instruction.frontend_attributes = read_frontend_attributes(message.message("frontend_attributes"))
        instruction.backend_config = self.read_backend_config(message).decode("utf-8", "surrogateescape")
        instruction.extra_attributes = tuple(
            pair
            for pair in read_extra_attributes(message)
            if not is_own_name(pair[0]) and not is_attribute_text(pair[0])
        )

    def read_backend_config(self, message: ProtoMessage) -> bytes:
        """The configuration, which may lie in the instruction or in the module's list of payloads."""
        if not message.has("backend_config_payload"):
            return message.data("backend_config")
        payload = message.message("backend_config_payload")
        if not payload.has("id"):
            return payload.data("value")
        payloads: list[bytes] = self.message.values.get("payloads", [])
        number = payload.integer("id")
        if not 0 <= number < len(payloads):
            raise payload.error(f"there is no payload {number}, the module has {len(payloads)}")
        return payloads[number]

    def read_shape(self, message: ProtoMessage) -> Shape:
        known = self.shapes.get(id(message))
        if known is None:
            known = self.shapes[id(message)] = (message, read_shape(message))
        return known[1]

    def read_metadata(self, message: ProtoMessage) -> Metadata:
        holder = message.message("metadata")
        known = self.metadata.get(id(holder))
        if known is None:
            known = self.metadata[id(holder)] = (holder, read_metadata(holder))
        return known[1]


def _set_schedule(computation: HloComputation, known: dict[int, HloInstruction], sequence: ProtoMessage) -> None:
    order = sequence.message("value")
    try:
        computation.set_order(
            [_lookup(known, number, order, "instruction") for number in order.integers("instruction_ids")]
        )
    except ParseError:
        raise
    except XlaliteError as error:
        raise order.error(f"schedule: {error}") from error


def _lookup(known: dict[int, HloInstruction], number: int, message: ProtoMessage, what: str) -> HloInstruction:
    instruction = known.get(number)
    if instruction is None:
        raise message.error(f"{what} {number}: there is no instruction with this id above")
    return instruction
