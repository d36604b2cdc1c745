"""Modules: a set of computations with an entry, and what goes with them as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal as LiteralType, overload

from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import callees_first
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision, Number
from xlalite.hlo.types.shape import ProgramShape, ShapeIndex


@dataclass(frozen=True, slots=True)
class InputOutputAlias:
    """An output that lies in the memory of a parameter."""

    output_index: ShapeIndex
    parameter_number: int
    parameter_index: ShapeIndex = ()
    kind: LiteralType["may-alias", "must-alias"] = "may-alias"


@dataclass(frozen=True, slots=True)
class ModuleConfig:
    """What the header of a module says.

    Attributes:
        is_scheduled: Whether the order of instructions in each computation is the order of execution.
        entry_layout: Shapes with layouts of the entry's parameters and result; None means the default layouts.
        input_output_alias: Outputs that share memory with parameters.
        buffer_donors: (parameter number, index) of inputs whose memory may be used for anything.
        replica_count: Number of replicas.
        num_partitions: Number of partitions.
        frontend_attributes: (name, value) pairs.
        extra: (name, text) pairs of other header attributes, verbatim.
    """

    is_scheduled: bool = False
    entry_layout: ProgramShape | None = None
    input_output_alias: tuple[InputOutputAlias, ...] = ()
    buffer_donors: tuple[tuple[int, ShapeIndex], ...] = ()
    replica_count: int = 1
    num_partitions: int = 1
    frontend_attributes: tuple[tuple[str, str], ...] = ()
    extra: tuple[tuple[str, str], ...] = ()


_NO_CONFIG = ModuleConfig()


class HloModule:
    """A program: computations, one of them the entry.

    Attributes:
        name: Name in the header.
        config: What the header says.
        decisions: What passes decided about this module, in order.
        tables: Text of the source location tables that followed the header, verbatim.
    """

    __slots__ = (
        "__weakref__",
        "_computations",
        "_entry",
        "_name_counts",
        "_order",
        "config",
        "decisions",
        "name",
        "tables",
    )

    def __init__(self, name: str, config: ModuleConfig = _NO_CONFIG) -> None:
        self.name = name
        self.config = config
        self.decisions: list[Decision] = []
        self.tables = ""
        self._computations: dict[str, HloComputation] = {}
        self._name_counts: dict[str, int] = {}
        self._entry: HloComputation | None = None
        self._order: tuple[HloComputation, ...] | None = None

    @property
    def entry_computation(self) -> HloComputation:
        """The computation that runs when the module runs."""
        if self._entry is None:
            raise XlaliteError(f"module {self.name} has no entry computation")
        return self._entry

    def computations(self) -> tuple[HloComputation, ...]:
        """All computations, callees before callers, the entry last; those that nobody calls come first."""
        if self._order is None:
            starts = [*self._computations.values()]
            if self._entry is not None:
                starts.remove(self._entry)
                starts.append(self._entry)
            self._order = callees_first(starts)
        return self._order

    def instructions(self) -> Iterator[HloInstruction]:
        """All instructions of all computations, each in its order; the module may change meanwhile.

        What has been removed before its turn is left out, what is added to a computation already begun too.
        """
        for computation in self.computations():
            for instruction in computation.instructions:
                if instruction.parent is computation:
                    yield instruction

    def find(self, name: str) -> HloComputation:
        """The computation with a name.

        Raises:
            KeyError: There is none.
        """
        return self._computations[name.removeprefix("%")]

    def add(self, computation: HloComputation, *, entry: bool = False) -> HloComputation:
        """Adds a loose computation, renames it if its name is taken, and returns it."""
        if computation.module is not None:
            raise XlaliteError(f"computation {computation.name} already belongs to a module")
        computation.name = self.unique_name(computation.name)
        computation.module = self
        self._computations[computation.name] = computation
        self._order = None
        if entry:
            self._entry = computation
        return computation

    def set_entry(self, computation: HloComputation) -> None:
        """Makes a computation of this module the entry."""
        if computation.module is not self:
            raise XlaliteError(f"computation {computation.name} cannot be the entry: it belongs elsewhere")
        self._entry = computation
        self._order = None

    def remove(self, computation: HloComputation) -> None:
        """Throws away a computation; the caller makes sure that nobody calls it."""
        if computation is self._entry:
            raise XlaliteError(f"computation {computation.name} is the entry and cannot be removed")
        del self._computations[computation.name]
        computation.module = None
        self._order = None

    def forget_calls(self) -> None:
        """Called by a computation whose instructions call others than before."""
        self._order = None

    def unique_name(self, wanted: str) -> str:
        """A name that no computation here has: the wanted one, or it with a number."""
        candidate = wanted
        while candidate in self._computations:
            count = self._name_counts[wanted] = self._name_counts.get(wanted, 0) + 1
            candidate = f"{wanted}.{count}"
        return candidate

    def update_config(self, **changes: object) -> None:
        """Changes fields of the configuration."""
        self.config = replace(self.config, **changes)  # type: ignore[arg-type]

    def record(
        self,
        decided_by: str,
        subject: tuple[str, ...],
        verdict: str,
        reason: str,
        numbers: Mapping[str, Number] = MappingProxyType({}),
    ) -> None:
        """Appends a decision record."""
        self.decisions.append(Decision(decided_by, subject, verdict, reason, numbers))

    def clone(self, name: str | None = None) -> HloModule:
        """A copy that shares nothing that can change; decisions so far are copied too."""
        twin = HloModule(name if name is not None else self.name, self.config)
        twin.decisions = list(self.decisions)
        twin.tables = self.tables
        copies: dict[HloComputation, HloComputation] = {}
        for computation in self.computations():
            copies[computation] = computation.clone(called=copies.__getitem__)
        for computation in self._computations.values():
            twin.add(copies[computation], entry=computation is self._entry)
        return twin

    def to_string(self, preset: str = "default") -> str:
        """The module as HLO text.

        Args:
            preset: `default`, `lossless`, `short_parsable`, `canonical` or `fingerprint`.

        Raises:
            ValueError: There is no such preset.
        """
        from xlalite.hlo.text.printer import print_module

        return print_module(self, preset)

    def to_proto(self) -> bytes:
        """The module as a serialized `HloModuleProto`, as XLA reads it."""
        from xlalite.hlo.proto.serialization import write_proto

        return write_proto(self)

    @overload
    def to_stablehlo(self, form: LiteralType["text"] = "text") -> str: ...
    @overload
    def to_stablehlo(self, form: LiteralType["bytecode"]) -> bytes: ...
    def to_stablehlo(self, form: LiteralType["text", "bytecode"] = "text") -> str | bytes:
        """The module as StableHLO, as jax and MLIR read it.

        Args:
            form: `text`, or `bytecode`: a portable artifact.

        Raises:
            LoweringError: StableHLO cannot say it; names the instruction.
            ValueError: There is no such form.
        """
        from xlalite.hlo.stablehlo.writing.writer import write_stablehlo

        return write_stablehlo(self, form)

    def to_networkx(self) -> Any:
        """The instructions as a `networkx.DiGraph`, from operands to users; `hlo/tools/graph/network.py` says more."""
        from xlalite.hlo.tools.graph.network import module_network

        return module_network(self)

    def _repr_html_(self) -> str:
        """The module as notebooks show it."""
        from xlalite.hlo.tools.graph.notebook import notebook_html

        return notebook_html(self)

    def __str__(self) -> str:
        """The module as HLO text with the default preset."""
        return self.to_string()

    def __repr__(self) -> str:
        return f"HloModule({self.name}, {len(self._computations)} computations)"
