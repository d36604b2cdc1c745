"""The arrays of a scheduled program and when each must keep its contents.

A *value* is what one instruction writes into memory of its own. Instructions that only rename memory (tuples, reshapes,
calls, parameters of called computations) have the value of what they name. A `while` defines one value for each leaf of
its state that the body changes; leaves that the body passes through are the initial value itself.

Times are those of the flattened schedule, doubled: an instruction at time t reads at 2t and writes at 2t + 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Memory, Trait
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import ShapeIndex
from xlalite.passes.analysis.call_sites import FlatSchedule, flatten_schedule

Position = tuple[HloInstruction, ShapeIndex]


@dataclass(eq=False, slots=True)
class BufferValue:
    """One array in memory.

    Attributes:
        position: The instruction that defines it, and where in its result.
        size_bytes: Its size.
        start: When it is written (doubled time).
    """

    position: Position
    size_bytes: int
    start: int
    _last_reader: HloInstruction | None = None
    _end: int = 0
    _end_without_last_reader: int = 0

    @property
    def instruction(self) -> HloInstruction:
        """The instruction that defines it."""
        return self.position[0]

    def read(self, time: int, reader: HloInstruction | None) -> None:
        """Notes that it is read at a doubled time; only the last readers decide how long it lives."""
        if time + 2 > self._end:
            if reader is not self._last_reader:
                self._end_without_last_reader = self._end
            self._last_reader, self._end = reader, time + 2
        elif reader is not self._last_reader:
            self._end_without_last_reader = max(self._end_without_last_reader, time + 2)

    def end(self, ignoring: HloInstruction | None = None) -> int:
        """One past the last time at which its contents matter, but for the reads by `ignoring` themselves.

        Until `ignoring` reads it, it matters: nobody else may write in between.
        """
        ignores_last = ignoring is not None and ignoring is self._last_reader
        return max(self.start + 1, self._end_without_last_reader, self._end - 2 if ignores_last else self._end)

    def __repr__(self) -> str:
        index = "".join(f"{{{i}}}" for i in self.position[1])
        return f"{self.instruction.name}{index}@[{self.start},{self.end()})"


class BufferValues:
    """All values of a scheduled module.

    Attributes:
        schedule: The flattened schedule.
        values: All values, by definition time.
    """

    def __init__(self, module: HloModule) -> None:
        """Analyses the module.

        Raises:
            PassError: A computation is called from two places.
        """
        self.module = module
        self.schedule: FlatSchedule = flatten_schedule(module)
        self._by_position: dict[Position, BufferValue] = {}
        self._resolved: dict[Position, Position] = {}
        self._passed_through: dict[Position, bool] = {}
        self._note_what_loops_pass_through()
        self._define_all()
        self._read_all()
        self.values: tuple[BufferValue, ...] = tuple(sorted(self._by_position.values(), key=lambda v: v.start))

    def of(self, instruction: HloInstruction, index: ShapeIndex = ()) -> BufferValue:
        """The value at a position."""
        return self._by_position[self.resolve((instruction, index))]

    def positions(self) -> Iterator[Position]:
        """All positions that hold arrays."""
        for instruction in self.schedule.spans:
            for index, leaf in instruction.shape.leaves():
                if leaf.is_array:
                    yield instruction, index

    def resolve(self, position: Position) -> Position:
        """The position that defines the value which stands at a position."""
        path = []
        while position not in self._resolved:
            path.append(position)
            following = self._renamed(position)
            if following is None:
                self._resolved[position] = position
                break
            position = following
        definition = self._resolved[position]
        for passed in path:
            self._resolved[passed] = definition
        return definition

    def is_passed_through(self, loop: HloInstruction, index: ShapeIndex) -> bool:
        """Whether the body of a `while` returns a leaf of its state as it got it."""
        return self._passed_through[loop, index]

    def _note_what_loops_pass_through(self) -> None:
        """Inner loops first: what a loop passes through may go through loops inside it."""
        for loop in self.schedule.spans:
            if loop.opcode == "while":
                for index, _ in loop.shape.leaves():
                    self._passed_through[loop, index] = self._returns_as_given(loop, index)

    def _returns_as_given(self, loop: HloInstruction, index: ShapeIndex) -> bool:
        body = loop.called_computations[1]
        position: Position | None = (body.root, index)
        while position is not None and position[0] is not body.parameters[0]:
            position = self._renamed(position)
        return position is not None and position[1] == index

    def _renamed(self, position: Position) -> Position | None:
        """The position whose memory this one names; None when it defines a value."""
        instruction, index = position
        match instruction.opcode:
            case "tuple":
                return instruction.operand(index[0]), index[1:]
            case "get-tuple-element":
                return instruction.operand(0), (instruction.attrs.index, *index)
            case "call":
                return instruction.called_computations[0].root, index
            case "parameter":
                return self._renamed_parameter(instruction, index)
            case "while":
                return (instruction.operand(0), index) if self.is_passed_through(instruction, index) else None
            case _:
                return (instruction.operand(0), index) if instruction.op.memory is Memory.NAMES_OPERAND else None

    def _renamed_parameter(self, parameter: HloInstruction, index: ShapeIndex) -> Position | None:
        computation = parameter.parent
        assert computation is not None, "instructions of a module belong to a computation"
        caller = self.schedule.callers.get(computation)
        if caller is None:
            return None
        if caller.opcode == "while":
            if self.is_passed_through(caller, index):
                return caller.operand(0), index
            body = caller.called_computations[1]
            return None if computation is body else (body.parameters[0], index)
        if caller.opcode == "call":
            return caller.operand(parameter.attrs.number), index
        return caller.operand(1 + caller.called_computations.index(computation)), index

    def _define_all(self) -> None:
        for position in self.positions():
            if self.resolve(position) == position:
                instruction, index = position
                size = instruction.shape.subshape(index).size_bytes
                self._by_position[position] = BufferValue(position, size, self._definition_time(instruction))

    def _definition_time(self, instruction: HloInstruction) -> int:
        computation = instruction.parent
        assert computation is not None, "instructions of a module belong to a computation"
        if instruction.opcode == "parameter":
            caller = self.schedule.callers.get(computation)
            # A loop-carried value lives from the start of the loop, before its condition is tested.
            return -1 if caller is None else 2 * self.schedule.spans[caller].start
        if instruction.opcode == "constant":
            return -1
        return 2 * self.schedule.spans[instruction].end + 1

    def _read_all(self) -> None:
        for instruction, span in self.schedule.spans.items():
            if instruction.op.has(Trait.CONTROL_FLOW):
                self._read_by_caller(instruction, 2 * span.start)
                continue
            if instruction.op.memory is Memory.NAMES_OPERAND:
                continue
            for operand in instruction.operands:
                self._read(operand, 2 * span.end, instruction)
        for computation, span in self.schedule.computation_spans.items():
            at_end = 2 * span.end if computation in self.schedule.callers else 2 * self.schedule.length
            self._read(computation.root, at_end, None)

    def _read_by_caller(self, instruction: HloInstruction, time: int) -> None:
        """Operands of calls are read inside; what a loop starts from, and a selector, are read when it begins.

        The state of a loop is its result where the condition ends it: it matters while that is computed.
        """
        if instruction.opcode == "conditional":
            self._read(instruction.operand(0), time, instruction)
        if instruction.opcode == "while":
            self._read(instruction.operand(0), time, instruction)
            condition, body = instruction.called_computations
            self._read(body.parameters[0], 2 * self.schedule.computation_spans[condition].end, None)

    def _read(self, operand: HloInstruction, time: int, reader: HloInstruction | None) -> None:
        for index, leaf in operand.shape.leaves():
            if leaf.is_array:
                value = self.of(operand, index)
                value.read(max(time, self._outlives(value, operand, time)), reader)

    def _outlives(self, value: BufferValue, reader: HloInstruction, time: int) -> int:
        """A value from outside a loop that is read inside must last until the loop is over."""
        if value.instruction.parent is reader.parent:
            return time
        home = set(self.schedule.enclosing_loops(value.instruction))
        last = time
        for loop in self.schedule.enclosing_loops(reader):
            if loop not in home:
                last = max(last, 2 * self.schedule.spans[loop].end)
        return last


def running_computations(module: HloModule) -> tuple[HloComputation, ...]:
    """The computations that run as part of the program, callees first."""
    schedule = flatten_schedule(module)
    return tuple(c for c in module.computations() if c in schedule.computation_spans)
