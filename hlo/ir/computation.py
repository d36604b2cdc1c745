"""Computations: functions made of instructions, with one root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.instruction import HloInstruction, tick
from xlalite.hlo.ir.traversal import dependencies_first
from xlalite.hlo.types.shape import ProgramShape

if TYPE_CHECKING:
    from xlalite.hlo.ir.module import HloModule


class HloComputation:
    """A function from parameters to the value of its root.

    The order of `instructions` is the order of insertion, or the schedule once the module is scheduled.

    Attributes:
        name: Unique in the module.
        module: The module it belongs to, None while it is loose.
        execution_thread: XLA's execution thread, or "".
    """

    __slots__ = (
        "__weakref__",
        "_callees",
        "_instructions",
        "_name_counts",
        "_names",
        "_order",
        "_parameters",
        "_root",
        "_snapshot",
        "execution_thread",
        "module",
        "name",
    )

    def __init__(self, name: str) -> None:
        """Makes an empty computation; it has no root until one is added or set."""
        self.name = name
        self.module: HloModule | None = None
        self.execution_thread = ""
        self._instructions: dict[HloInstruction, None] = {}
        # What follows from the instructions, made when it is asked for and thrown away when they change.
        self._snapshot: tuple[HloInstruction, ...] | None = None
        self._order: tuple[HloInstruction, ...] | None = None
        self._callees: tuple[HloComputation, ...] | None = None
        self._names: dict[str, HloInstruction] = {}
        self._name_counts: dict[str, int] = {}
        self._parameters: dict[int, HloInstruction] = {}
        self._root: HloInstruction | None = None

    @property
    def instructions(self) -> tuple[HloInstruction, ...]:
        """All instructions; safe to iterate over while the computation changes."""
        if self._snapshot is None:
            self._snapshot = tuple(self._instructions)
        return self._snapshot

    @property
    def callees(self) -> tuple[HloComputation, ...]:
        """The computations that instructions here call, each once."""
        if self._callees is None:
            self._callees = tuple(
                dict.fromkeys(one for caller in self.instructions for one in caller.called_computations)
            )
        return self._callees

    @property
    def root(self) -> HloInstruction:
        """The instruction whose value the computation returns."""
        if self._root is None:
            raise XlaliteError(f"computation {self.name} has no root")
        return self._root

    @property
    def has_root(self) -> bool:
        """Whether a root is set."""
        return self._root is not None

    @property
    def parameters(self) -> tuple[HloInstruction, ...]:
        """The parameters by number."""
        return tuple(self._parameters[number] for number in sorted(self._parameters))

    @property
    def parameter_count(self) -> int:
        """How many parameters there are."""
        return len(self._parameters)

    @property
    def program_shape(self) -> ProgramShape:
        """The signature."""
        return ProgramShape(tuple(parameter.shape for parameter in self.parameters), self.root.shape)

    @property
    def is_entry(self) -> bool:
        """Whether it is its module's entry computation."""
        return self.module is not None and self.module.entry_computation is self

    def __len__(self) -> int:
        return len(self._instructions)

    def __contains__(self, instruction: HloInstruction) -> bool:
        return instruction.parent is self

    def find(self, name: str) -> HloInstruction:
        """The instruction with a name.

        Raises:
            KeyError: There is none.
        """
        return self._names[name.removeprefix("%")]

    def add(self, instruction: HloInstruction) -> HloInstruction:
        """Adds a loose instruction at the end, renames it if its name is taken, and returns it."""
        if instruction.parent is not None:
            raise XlaliteError(f"%{instruction.name} already belongs to computation {instruction.parent.name}")
        if instruction.opcode == "parameter":
            number = instruction.attrs.number
            if number in self._parameters:
                raise XlaliteError(f"computation {self.name} already has parameter({number})")
            self._parameters[number] = instruction
        instruction.name = self.unique_name(instruction.name)
        instruction.parent = self
        self._names[instruction.name] = instruction
        self._instructions[instruction] = None
        self._forget(instruction)
        return instruction

    def set_root(self, instruction: HloInstruction) -> None:
        """Makes an instruction of this computation the root."""
        if instruction.parent is not self:
            raise XlaliteError(f"%{instruction.name} cannot be the root of {self.name}: it belongs elsewhere")
        for one in (self._root, instruction):
            if one is not None:
                one.stamp = tick()
        self._root = instruction

    def remove(self, instruction: HloInstruction) -> None:
        """Throws away an instruction that has no users and is not the root.

        Raises:
            XlaliteError: It is still used, is the root, or belongs elsewhere.
        """
        if instruction.parent is not self or instruction.user_count or instruction is self._root:
            raise XlaliteError(f"removing %{instruction.name} from {self.name}: it is still used or not here")
        if instruction.opcode == "parameter":
            del self._parameters[instruction.attrs.number]
        instruction.detach()
        del self._instructions[instruction]
        del self._names[instruction.name]
        instruction.parent = None
        self._forget(instruction)

    def unique_name(self, wanted: str) -> str:
        """A name that no instruction here has: the wanted one, or it with a number."""
        if wanted not in self._names:
            return wanted
        stem, _, suffix = wanted.rpartition(".")
        base = stem if stem and suffix.isdigit() else wanted
        count = self._name_counts.get(base, 0)
        while True:
            count += 1
            candidate = f"{base}.{count}"
            if candidate not in self._names:
                self._name_counts[base] = count
                return candidate

    def rename(self, instruction: HloInstruction, name: str) -> None:
        """Gives an instruction another name, made unique."""
        del self._names[instruction.name]
        instruction.name = self.unique_name(name)
        self._names[instruction.name] = instruction

    def post_order(self) -> tuple[HloInstruction, ...]:
        """All instructions, operands and control predecessors before users; deterministic.

        Raises:
            XlaliteError: The instructions form a cycle.
        """
        if self._order is None:
            self._order = dependencies_first(self.instructions)
        return self._order

    def set_order(self, order: Sequence[HloInstruction]) -> None:
        """Reorders the instructions; `order` must hold exactly the ones that are here.

        Raises:
            XlaliteError: It does not.
        """
        if len(order) != len(self._instructions) or any(i.parent is not self for i in order):
            raise XlaliteError(f"computation {self.name}: the order must hold each of its instructions once")
        self._instructions = dict.fromkeys(order)
        if len(self._instructions) != len(order):
            raise XlaliteError(f"computation {self.name}: the order holds an instruction twice")
        self._snapshot = None
        self._order = self._order if order is self._order else None
        self.forget_calls()

    def forget_order(self) -> None:
        """Called by an instruction here that depends on others than before."""
        self._order = None

    def forget_calls(self) -> None:
        """Called by an instruction here that calls others than before."""
        self._callees = None
        if self.module is not None:
            self.module.forget_calls()

    def _forget(self, changed: HloInstruction) -> None:
        """Notices that an instruction has come or gone."""
        self._snapshot = self._order = None
        if changed.called_computations:
            self.forget_calls()

    def clone(
        self,
        name: str | None = None,
        called: Callable[[HloComputation], HloComputation] = lambda computation: computation,
    ) -> HloComputation:
        """A loose copy with the same instruction names.

        Args:
            name: Name of the copy; this one's when absent.
            called: Gives the computation to call in place of each called one.
        """
        twin = HloComputation(name if name is not None else self.name)
        twin.execution_thread = self.execution_thread
        copies: dict[HloInstruction, HloInstruction] = {}
        for instruction in self.post_order():
            copies[instruction] = instruction.clone(
                [copies[operand] for operand in instruction.operands],
                called_computations=[called(c) for c in instruction.called_computations],
            )
        for instruction in self.instructions:
            twin.add(copies[instruction])
            for predecessor in instruction.control_predecessors:
                copies[instruction].add_control_predecessor(copies[predecessor])
        twin.set_root(copies[self.root])
        return twin

    def to_string(self, preset: str = "default") -> str:
        """The computation as HLO text, its name included.

        Raises:
            ValueError: There is no such preset.
        """
        from xlalite.hlo.text.printer import print_computation

        return print_computation(self, preset)

    def to_networkx(self) -> Any:
        """The instructions, by name, as a `networkx.DiGraph`, from operands to users."""
        from xlalite.hlo.tools.graph.network import computation_network

        return computation_network(self)

    def _repr_html_(self) -> str:
        """The computation as notebooks show it."""
        from xlalite.hlo.tools.graph.notebook import notebook_html

        return notebook_html(self)

    def __repr__(self) -> str:
        return f"HloComputation({self.name}, {len(self._instructions)} instructions)"
