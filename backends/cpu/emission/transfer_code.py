"""Code of infeed, outfeed, send and recv: copies of arrays go to the host or to another device, and come from there.

What is not there yet, or is another value than the program expects, is left to the evaluator, which waits in Python for
the host, or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.codegen.llvm import I32, I64, PTR, FunctionBuilder, Operand, Value, constant
from xlalite.backends.cpu.emission.collective_code import rank_of
from xlalite.backends.cpu.native.letters import description
from xlalite.backends.cpu.native.rendezvous import HOST_PUT, HOST_TAKE, RECEIVE, SEND
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.host_transfer import device_pairs
from xlalite.hlo.records import dataclass
from xlalite.hlo.surroundings.host_transfers import INFEED, OUTFEED, channel_queue
from xlalite.hlo.types.shape import Shape


def why_not_transferred(instruction: HloInstruction) -> str | None:
    """Why no code can be written for a transfer; None if it can."""
    shapes = [instruction.shape, *(operand.shape for operand in instruction.operands)]
    if any(leaf.is_dynamic for shape in shapes for _, leaf in shape.leaves()):
        return "its sizes are known at run time"
    devices = _numbered_devices(instruction)
    strange = [target for pair in device_pairs(instruction) or () for target in pair if target >= devices]
    return f"it needs device {strange[0]}, there are {devices}" if strange else None


@dataclass(frozen=True, slots=True)
class TransferCode:
    """The code of one transfer.

    Attributes:
        fb: Where it is written.
        instruction: The transfer.
        operands: Addresses of the arrays among the operands' leaves.
        results: Addresses of the arrays of the result.
        argument_array: Writes a table of addresses.
        ask_evaluator: Writes what happens instead when a letter does not go or come: gives a status.
    """

    fb: FunctionBuilder
    instruction: HloInstruction
    operands: Sequence[Value]
    results: Sequence[Value]
    argument_array: Callable[[Sequence[Value]], Value]
    ask_evaluator: Callable[[], Value]

    def emit(self) -> Value:
        """Writes the code; gives a status."""
        status = self._transfer()
        is_done = self.fb.if_else(self.fb.icmp("eq", status, 0), likely=True)
        with is_done.then():
            is_done.yield_(status)
        with is_done.otherwise():
            is_done.yield_(self.ask_evaluator())
        return is_done.results[0]

    def _transfer(self) -> Value:
        instruction = self.instruction
        match instruction.opcode:
            case "infeed":
                return self._call(HOST_TAKE, INFEED, instruction.shape.elements[0], self.results)
            case "outfeed":
                return self._call(HOST_PUT, OUTFEED, instruction.operand(0).shape, self.operands)
            case "send":
                return self._send()
            case "recv":
                return self._recv()
            case "recv-done":
                return self._recv_done()
        return constant(I32, 0)

    @property
    def _channel(self) -> int:
        return self.instruction.attrs.channel_id or 0

    def _send(self) -> Value:
        fb, shape, pairs = self.fb, self.instruction.operand(0).shape, device_pairs(self.instruction)
        *kept, number = self.results
        self._copy(shape, self.operands, kept)
        fb.store(constant(I32, 0), number, 4)
        if pairs is None:
            return self._call(HOST_PUT, channel_queue(self._channel), shape, self.operands)
        status, (own, first) = constant(I32, 0), self._own_number()
        for source, target in pairs:
            sends = fb.if_else(fb.icmp("eq", own, source))
            with sends.then():
                to = self._call(SEND, (self._channel, fb.add(first, target)), shape, self.operands)
                sends.yield_(fb.or_(status, to))
            with sends.otherwise():
                sends.yield_(status)
            (status,) = sends.results
        return status

    def _recv(self) -> Value:
        """As the evaluator does: a value from a device is waited for by recv-done, which the number tells."""
        fb, shape, pairs = self.fb, self.instruction.shape.elements[0], device_pairs(self.instruction)
        *data, number = self.results
        if pairs is None:
            fb.store(constant(I32, 0), number, 4)
            return self._call(HOST_TAKE, channel_queue(self._channel), shape, data)
        for array, size in zip(data, _sizes(shape), strict=True):
            fb.memset(array, 0, size)
        own, _ = self._own_number()
        expects = constant(I32, 0)
        for target in sorted({target for _, target in pairs}):
            expects = fb.or_(expects, fb.zext(fb.icmp("eq", own, target), I32))
        fb.store(expects, number, 4)
        return constant(I32, 0)

    def _recv_done(self) -> Value:
        fb, shape = self.fb, self.instruction.shape.elements[0]
        *data, number = self.operands
        expects = fb.if_else(fb.icmp("ne", fb.load(I32, number, 4), 0))
        with expects.then():
            expects.yield_(self._call(RECEIVE, (self._channel,), shape, self.results))
        with expects.otherwise():
            self._copy(shape, data, self.results)
            expects.yield_(constant(I32, 0))
        return expects.results[0]

    def _copy(self, shape: Shape, arrays: Sequence[Value], to: Sequence[Value]) -> None:
        for source, target, size in zip(arrays, to, _sizes(shape), strict=True):
            self.fb.memcpy(target, source, size)

    def _own_number(self) -> tuple[Value, Value]:
        """The number of the device in pairs, and the rank of that which is number 0 there."""
        assert self.instruction.module is not None, "what is compiled stands in a module"
        rank, partitions = rank_of(self.fb), self.instruction.module.config.num_partitions
        own = rank if partitions == 1 else self.fb.urem(rank, partitions)
        return own, self.fb.sub(rank, own)

    def _call(self, name: str, queue: Sequence[Operand], shape: Shape, arrays: Sequence[Value]) -> Value:
        fb = self.fb
        described = fb.module.constant_bytes(description(shape))
        function = fb.module.declare(name, I32, (PTR, *[I64] * len(queue), PTR, PTR))
        return fb.call(function, fb.parameters[3], *queue, described, self.argument_array(arrays))


def _numbered_devices(instruction: HloInstruction) -> int:
    assert instruction.module is not None, "what is compiled stands in a module"
    config = instruction.module.config
    return config.replica_count if config.num_partitions == 1 else config.num_partitions


def _sizes(shape: Shape) -> list[int]:
    return [leaf.size_bytes for _, leaf in shape.leaves() if leaf.is_array]
