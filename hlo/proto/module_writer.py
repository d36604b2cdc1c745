"""Modules to `HloModuleProto`, in XLA's order and with XLA's numbers."""

from __future__ import annotations

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.proto.attribute_table import in_call_order, write_attrs
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.metadata import write_extra_attributes, write_frontend_attributes, write_metadata
from xlalite.hlo.proto.module_header import write_header
from xlalite.hlo.proto.names import unique_names, write_name
from xlalite.hlo.proto.shapes import write_shape, write_signature
from xlalite.hlo.proto.shardings import write_sharding
from xlalite.hlo.types.shape import Shape

_OWNS_ITS_BODY = "fusion"
_NO_METADATA = Metadata()


def write_module(module: HloModule) -> ProtoMessage:
    """The `HloModuleProto` of a module."""
    return _ModuleWriter(module).write()


class _ModuleWriter:
    """Writes one module."""

    __slots__ = ("computations", "ids", "module", "names", "shapes")

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.computations = {computation: number for number, computation in enumerate(module.computations())}
        self.ids: dict[HloInstruction, int] = {}
        self.names = unique_names(self.computations)
        self.shapes: dict[int, tuple[Shape, ProtoMessage]] = {}

    def write(self) -> ProtoMessage:
        module = self.module
        entry = module.entry_computation
        message = ProtoMessage("HloModuleProto").put("name", module.name)
        message.put("entry_computation_name", entry.name).put("entry_computation_id", self.computations[entry])
        bodies = {
            called
            for computation in self.computations
            for instruction in computation.instructions
            if instruction.opcode == _OWNS_ITS_BODY
            for called in instruction.called_computations
        }
        for computation in self.computations:
            self.write_computation(computation, message.append("computations"), is_body=computation in bodies)
        if module.config.is_scheduled:
            sequences = message.open("schedule")
            for computation, number in self.computations.items():
                if computation not in bodies:
                    sequence = sequences.append("sequences").put("key", number).open("value")
                    sequence.put_all("instruction_ids", [self.ids[one] for one in computation.instructions])
        write_header(module, message)
        return message

    def write_computation(self, computation: HloComputation, message: ProtoMessage, *, is_body: bool) -> None:
        number = self.computations[computation]
        message.put("name", computation.name).put("id", number).put("is_fusion_computation", is_body)
        message.put("execution_thread", computation.execution_thread)
        for position, instruction in enumerate(computation.instructions):
            # As in XLA: the number of the computation in the upper half.
            self.ids[instruction] = number << 32 | position
        for instruction in computation.post_order():
            self.write_instruction(instruction, message.append("instructions"))
        message.put("root_id", self.ids[computation.root])
        names = tuple(parameter.name for parameter in computation.parameters)
        write_signature(computation.program_shape, names, message.open("program_shape"))

    def write_instruction(self, instruction: HloInstruction, message: ProtoMessage) -> None:
        op = instruction.op
        write_name(instruction, self.names, message)
        message.put("opcode", op.name).put("id", self.ids[instruction])
        message.put("shape", self.shape(instruction.shape))
        if instruction.operands:
            message.put_all("operand_ids", [self.ids[operand] for operand in instruction.operands])
        if instruction.control_predecessors:
            message.put_all("control_predecessor_ids", [self.ids[one] for one in instruction.control_predecessors])
        called = [self.computations[one] for one in instruction.called_computations]
        if called:
            message.put_all("called_computation_ids", in_call_order(op, called))
        write_attrs(op, instruction.attrs, tuple(operand.shape for operand in instruction.operands), message)
        if instruction.metadata is not _NO_METADATA and instruction.metadata != _NO_METADATA:
            write_metadata(instruction.metadata, message.open("metadata"))
        if instruction.sharding:
            write_sharding(instruction.sharding, message.open("sharding"))
        if instruction.frontend_attributes:
            write_frontend_attributes(instruction.frontend_attributes, message.open("frontend_attributes"))
        if instruction.backend_config:
            message.put("backend_config", instruction.backend_config.encode("utf-8", "surrogateescape"))
        write_extra_attributes(instruction.extra_attributes, message)

    def shape(self, shape: Shape) -> ProtoMessage:
        """The message of a shape; equal objects share one."""
        known = self.shapes.get(id(shape))
        if known is None:
            message = ProtoMessage("ShapeProto")
            write_shape(shape, message)
            known = self.shapes[id(shape)] = (shape, message)
        return known[1]
