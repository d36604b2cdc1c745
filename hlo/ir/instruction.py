"""Instructions: the nodes of HLO.

One class serves all operations; what differs lies in the `OpDef` and the attributes dataclass. Instructions compare by
identity. Operands change only through the mutators here, which keep the user lists right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ir.op import Attrs, OpDef, Trait
from xlalite.hlo.ir.traversal import callees, reachable
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import NoAttrs
from xlalite.hlo.types.shape import Shape

if TYPE_CHECKING:
    from xlalite.hlo.ir.computation import HloComputation
    from xlalite.hlo.ir.module import HloModule


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where an instruction came from.

    Attributes:
        op_type: Type of the framework operation.
        op_name: Name of the framework operation.
        source_file: The user's file.
        source_line: The user's line; 0 when unknown.
        extra: Other fields of XLA's metadata, as (name, text of the value).
    """

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    extra: tuple[tuple[str, str], ...] = ()


_NO_METADATA = Metadata()

tick: Callable[[], int] = count(1).__next__
"""The time, which goes on by one each time it is asked for; that of all modules and threads of the process."""


class HloInstruction:
    """One operation applied to operands.

    Attributes:
        name: Unique in its computation, without `%`.
        op: The operation's declaration.
        opcode: XLA's name of the operation.
        shape: Type of the value.
        attrs: The operation's attributes, an instance of `op.attrs`.
        parent: The computation it belongs to, None while it is loose.
        control_predecessors: Instructions that must run before it.
        metadata: Where it came from.
        sharding: Sharding text, verbatim, or "".
        frontend_attributes: (name, value) pairs.
        backend_config: Text of the backend's configuration, or "".
        extra_attributes: (name, text) pairs of attributes that xlalite does not know, verbatim.
        stamp: The time of the last change of it: of operands, users, calls, control dependencies, of being the root.
    """

    __slots__ = (
        "__weakref__",
        "_called",
        "_control_successors",
        "_operands",
        "_replaced",
        "_users",
        "attrs",
        "backend_config",
        "control_predecessors",
        "extra_attributes",
        "frontend_attributes",
        "metadata",
        "name",
        "op",
        "opcode",
        "parent",
        "shape",
        "sharding",
        "stamp",
    )

    def __init__(
        self,
        op: OpDef,
        shape: Shape,
        operands: Sequence[HloInstruction] = (),
        attrs: Attrs = None,
        called_computations: Sequence[HloComputation] = (),
        name: str = "",
        metadata: Metadata = _NO_METADATA,
    ) -> None:
        """Makes a loose instruction; `HloComputation.add` gives it a home and a unique name.

        The shape is taken as it is; `create` infers it.
        """
        self.name = name or op.name
        self.op = op
        self.opcode = op.name
        self.shape = shape
        self.attrs: Attrs = attrs if attrs is not None else NoAttrs()
        self._operands: tuple[HloInstruction, ...] = tuple(operands)
        # Operands that `_operands` does not show yet: one of a thousand changes without a look at the others.
        self._replaced: dict[int, HloInstruction] = {}
        # Where each user has this one among its operands: a position, or several.
        self._users: dict[HloInstruction, int | list[int]] = {}
        self._called: tuple[HloComputation, ...] = tuple(called_computations)
        self.parent: HloComputation | None = None
        self.control_predecessors: tuple[HloInstruction, ...] = ()
        self._control_successors: dict[HloInstruction, None] = {}
        self.metadata = metadata
        self.sharding = ""
        self.frontend_attributes: tuple[tuple[str, str], ...] = ()
        self.backend_config = ""
        self.extra_attributes: tuple[tuple[str, str], ...] = ()
        self.stamp = tick()
        for position, operand in enumerate(self._operands):
            operand._add_use(self, position)

    @property
    def operands(self) -> tuple[HloInstruction, ...]:
        """The operands."""
        if self._replaced:
            shown = list(self._operands)
            for position, operand in self._replaced.items():
                shown[position] = operand
            self._operands, self._replaced = tuple(shown), {}
        return self._operands

    @property
    def called_computations(self) -> tuple[HloComputation, ...]:
        """Computations that the instruction calls."""
        return self._called

    @called_computations.setter
    def called_computations(self, called: tuple[HloComputation, ...]) -> None:
        self._called = called
        self.stamp = tick()
        if self.parent is not None:
            self.parent.forget_calls()

    @property
    def users(self) -> tuple[HloInstruction, ...]:
        """Instructions that have this one as an operand, each once, in the order they became users."""
        return tuple(self._users)

    @property
    def user_count(self) -> int:
        """Number of instructions that use this one."""
        return len(self._users)

    @property
    def use_count(self) -> int:
        """Number of operand slots that hold this one."""
        return len(self._users) + sum([len(at) - 1 for at in self._users.values() if not isinstance(at, int)])

    @property
    def control_successors(self) -> tuple[HloInstruction, ...]:
        """Instructions that must run after this one by a control dependency."""
        return tuple(self._control_successors)

    @property
    def is_controlled(self) -> bool:
        """Whether a control dependency leads to it or from it."""
        return bool(self.control_predecessors or self._control_successors)

    @property
    def module(self) -> HloModule | None:
        """The module it belongs to, None while it is loose."""
        return self.parent.module if self.parent is not None else None

    @property
    def is_root(self) -> bool:
        """Whether it is its computation's root."""
        return self.parent is not None and self.parent.root is self

    def operand(self, position: int) -> HloInstruction:
        """The operand at a position."""
        return self.operands[position]

    def operand_positions(self, operand: HloInstruction) -> tuple[int, ...]:
        """The positions at which `operand` stands."""
        found = operand._users.get(self, ())
        return (found,) if isinstance(found, int) else tuple(sorted(found))

    @property
    def has_side_effect(self) -> bool:
        """Whether it, or a computation that it calls, has a side effect."""
        return self._has_any(Trait.SIDE_EFFECT)

    @property
    def is_pure(self) -> bool:
        """Whether its value follows from its operands, and nobody can notice when, where or how often it is computed.

        What is not pure is computed where the program says and when it says so: never by the compiler, never ahead of
        a branch or a loop that may not run.
        """
        return not self._has_any(Trait.IMPURE)

    def _has_any(self, traits: Trait) -> bool:
        """Whether it, or what runs on its behalf, has one of some traits or an effect of its own."""
        if self.op.traits.meets(traits) or getattr(self.attrs, "has_side_effect", False):
            return True
        return bool(self.called_computations) and any(
            inner.op.traits.meets(traits) or getattr(inner.attrs, "has_side_effect", False)
            for computation in reachable(self.called_computations, callees)
            for inner in computation.instructions
        )

    def replace_operand(self, position: int, new: HloInstruction) -> None:
        """Puts `new` at a position; users of both stay right. The shapes must be compatible.

        Raises:
            ShapeError: The shapes differ.
        """
        operands = self.operands
        old = operands[position]
        if not old.shape.compatible(new.shape):
            raise ShapeError(
                f"replacing operand {position} of {self.name}: found {new.shape.text()} (%{new.name}), "
                f"expected {old.shape.text()} as of %{old.name}"
            )
        self.set_operands((*operands[:position], new, *operands[position + 1 :]))

    def set_operands(self, operands: Sequence[HloInstruction]) -> None:
        """Gives the instruction another operand list, of any length; users of all stay right."""
        for old in self.operands:
            old._users.pop(self, None)
            old.stamp = tick()
        self._operands = tuple(operands)
        for position, new in enumerate(self._operands):
            new._add_use(self, position)
        self._depends_otherwise()

    def replace_all_uses_with(self, new: HloInstruction, *, except_users: Iterable[HloInstruction] = ()) -> bool:
        """Makes every user use `new`, and `new` the root if this was; says whether anything changed.

        Control dependencies stay with this instruction.

        Raises:
            ShapeError: The shapes differ.
        """
        if new is self:
            return False
        if not self.shape.compatible(new.shape):
            raise ShapeError(
                f"replacing %{self.name} by %{new.name}: found {new.shape.text()}, expected {self.shape.text()}"
            )
        spared = set(except_users)
        changed = False
        for user in self.users:
            if user in spared:
                continue
            found = self._users.pop(user)
            for position in (found,) if isinstance(found, int) else found:
                user._replaced[position] = new
                new._add_use(user, position)
            user._depends_otherwise()
            changed = True
        self.stamp = tick()
        if self.parent is not None and self.parent.root is self and self.parent is new.parent:
            self.parent.set_root(new)
            changed = True
        return changed

    def add_control_predecessor(self, predecessor: HloInstruction) -> None:
        """Makes `predecessor` run before this instruction."""
        if predecessor not in self.control_predecessors:
            self.control_predecessors = (*self.control_predecessors, predecessor)
            predecessor._control_successors[self] = None
            predecessor.stamp = tick()
            self._depends_otherwise()

    def drop_control_predecessor(self, predecessor: HloInstruction) -> None:
        """Removes a control dependency, if it is there."""
        self.control_predecessors = tuple(p for p in self.control_predecessors if p is not predecessor)
        predecessor._control_successors.pop(self, None)
        predecessor.stamp = tick()
        self._depends_otherwise()

    def detach(self) -> None:
        """Lets go of operands and control dependencies, before the instruction is thrown away."""
        self.set_operands(())
        for predecessor in self.control_predecessors:
            self.drop_control_predecessor(predecessor)
        for successor in self.control_successors:
            successor.drop_control_predecessor(self)

    def clone(
        self,
        operands: Sequence[HloInstruction] | None = None,
        *,
        shape: Shape | None = None,
        attrs: Attrs = None,
        called_computations: Sequence[HloComputation] | None = None,
        name: str | None = None,
    ) -> HloInstruction:
        """A loose copy, with metadata and annotations; control dependencies are not copied.

        A sharding belongs to a shape: it stays behind when the copy has another.
        """
        twin = HloInstruction(
            self.op,
            shape if shape is not None else self.shape,
            self.operands if operands is None else operands,
            attrs if attrs is not None else self.attrs,
            self.called_computations if called_computations is None else called_computations,
            name if name is not None else self.name,
            self.metadata,
        )
        twin.copy_annotations(self)
        if shape is not None and not shape.compatible(self.shape):
            twin.sharding = ""
        return twin

    def copy_annotations(self, source: HloInstruction) -> None:
        """Takes over what `source` carries besides its meaning: metadata, sharding, attributes kept verbatim."""
        self.metadata = source.metadata
        self.sharding = source.sharding
        self.frontend_attributes = source.frontend_attributes
        self.backend_config = source.backend_config
        self.extra_attributes = source.extra_attributes

    def with_attrs(self, **changes: object) -> Attrs:
        """The attributes with some fields changed; the instruction keeps its own."""
        return replace(self.attrs, **changes)

    def _depends_otherwise(self) -> None:
        """Notices that it depends on others than before."""
        self.stamp = tick()
        if self.parent is not None:
            self.parent.forget_order()

    def _add_use(self, user: HloInstruction, position: int) -> None:
        self.stamp = tick()
        found = self._users.get(user)
        if found is None:
            self._users[user] = position
        elif isinstance(found, int):
            self._users[user] = [found, position]
        else:
            found.append(position)

    def to_string(self, preset: str = "default") -> str:
        """The instruction as one line of HLO text, without `ROOT`.

        Raises:
            ValueError: There is no such preset.
        """
        from xlalite.hlo.text.printer import print_instruction

        return print_instruction(self, preset)

    def __str__(self) -> str:
        """The instruction as one line of HLO text."""
        return self.to_string()

    def __repr__(self) -> str:
        operands = ", ".join("%" + operand.name for operand in self.operands)
        return f"%{self.name} = {self.shape.text()} {self.opcode}({operands})"
