"""The declaration of a graph operation, and the table of all declarations.

An operation is declared once, in `xlalite/ops/declarations/<family>.py`, as one `OpSpec`. Graph construction,
clustering, lowering, gradients and op-by-op execution read that declaration and know no operation by name.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.errors import NotFoundError
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.records import dataclass

if TYPE_CHECKING:
    import numpy as np

    from xlalite.framework.graph.indexed_slices import IndexedSlices
    from xlalite.framework.graph.operation import Operation
    from xlalite.framework.graph.tensor import HandleData, Tensor
    from xlalite.framework.meaning.host import HostContext, HostValue
    from xlalite.framework.meaning.lowering import LoweringContext
    from xlalite.hlo.building.builder import Handle

OutputType: TypeAlias = tuple[DType, TensorShape]
InferFunction: TypeAlias = "Callable[[Operation], Sequence[OutputType]]"
LowerFunction: TypeAlias = "Callable[[LoweringContext, Operation, tuple[Handle, ...]], Sequence[Handle]]"
HostKernel: TypeAlias = "Callable[[HostContext, Operation, tuple[HostValue, ...]], Sequence[HostValue]]"
Gradient: TypeAlias = "Tensor | IndexedSlices"
GradientFunction: TypeAlias = "Callable[[Operation, tuple[Tensor | None, ...]], Sequence[Gradient | None]]"


StateFunction: TypeAlias = "Callable[[Operation], OperationState]"


@dataclass(frozen=True, slots=True)
class OperationState:
    """What an operation keeps in a session.

    Attributes:
        data: The variable that holds it.
        first: Makes its first value.
    """

    data: HandleData
    first: Callable[[], np.ndarray[Any, Any]]


class VariableAccess(enum.Enum):
    """What an operation does to the variables whose handles it takes."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    MODIFY = "modify"


class OpGroup(enum.Enum):
    """What kind of work an operation does; the values are TensorFlow's names for the lists of such operations."""

    ELEMENTWISE = "PW"
    REDUCTION = "RED"
    ELEMENTWISE_WITH_REDUCTION = "PWRED"
    MOVEMENT = "MISC"
    BATCH_NORM = "BN"
    SORTING = "SORT"
    WINDOW_WITH_ELEMENTWISE = "REDUCEWINDOWPW"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OpSpec:
    """One graph operation.

    Attributes:
        name: The operation's type, as TensorFlow spells it.
        infer: Element types and (partial) shapes of the outputs; raises ShapeError or ElementTypeError.
        inputs: Names of the inputs in order; at most one ends in `*` and stands for any number of them.
        attrs: Names of the attributes that every such operation has.
        defaults: Values of those that may be left out, as TensorFlow has them.
        lower: Builds HLO for concrete shapes; None when the operation cannot be compiled. It receives the handles of
            the array inputs in order and returns one for each array output; variable handles and inputs named in
            `constant_inputs` or `preferred_constant_inputs` are left out, the context gives their values.
        host_kernel: Computes the outputs from host values; required when `lower` is None, otherwise a faster way.
        gradient: Gradients for the inputs, given those of the outputs (None: no gradient arrives there); returns one
            tensor, its rows (`IndexedSlices`) or None for each input. None instead of a function: nothing flows back,
            which is no error.
        group: The list of operations to cluster that it belongs to; None when it is in no list but that of all.
        constant_inputs: Names of inputs whose values must be known when the operation is compiled.
        preferred_constant_inputs: Names of inputs that make better code when their values are known, but need not be.
        further_constant_inputs: Positions of inputs that must be known because of what this very operation is.
        is_stateful: Whether two runs may differ or leave a trace, so that it is never folded or merged.
        variable_access: What it does to variables.
        state: What it keeps in the session between its runs: a variable of its own, and the first value; None for
            nothing. Such an operation modifies a variable.
        handle: The variable that its first output is the handle of; None when it is no new handle.
        is_metadata: Whether it reads only the shape of its inputs.
        is_constant: Whether its value is part of the graph.
        is_default: Whether it stands for a value that is expected to be fed, so that the graph alone does not tell it.
        passes_on: Whether its outputs are its inputs: nothing is left to do once it is compiled.
        gradient_passes_on: Whether its gradient hands on what arrives, so that rows of a tensor stay rows.
        why_host: For an operation without `lower`, why it cannot be compiled.
        why_not_compilable: Why this very operation cannot be compiled although others can; None when it can.
    """

    name: str = field(kw_only=False)
    infer: InferFunction = field(kw_only=False)
    gradient: GradientFunction | None
    group: OpGroup | None
    inputs: tuple[str, ...] = ()
    attrs: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)
    lower: LowerFunction | None = None
    host_kernel: HostKernel | None = None
    constant_inputs: tuple[str, ...] = ()
    preferred_constant_inputs: tuple[str, ...] = ()
    further_constant_inputs: Callable[[Operation], Sequence[int]] | None = None
    is_stateful: bool = False
    variable_access: VariableAccess = VariableAccess.NONE
    state: StateFunction | None = None
    handle: Callable[[Operation], HandleData] | None = None
    is_metadata: bool = False
    is_constant: bool = False
    is_default: bool = False
    passes_on: bool = False
    gradient_passes_on: bool = False
    why_host: str = ""
    why_not_compilable: Callable[[Operation], str | None] | None = None

    def __post_init__(self) -> None:
        assert self.lower is not None or (self.host_kernel is not None and self.why_host), (
            f"{self.name}: an operation that cannot be compiled needs a host kernel and a reason"
        )
        known = {name.rstrip("*") for name in self.inputs}
        assert {*self.constant_inputs, *self.preferred_constant_inputs} <= known, f"{self.name}: constant inputs"
        assert set(self.defaults) <= set(self.attrs), f"{self.name}: defaults"
        assert sum(name.endswith("*") for name in self.inputs) <= 1, f"{self.name}: more than one variadic input"

    @property
    def is_compilable(self) -> bool:
        """Whether the operation can be lowered to HLO at all."""
        return self.lower is not None

    def accepts_input_count(self, count: int) -> bool:
        """Whether an operation may have that many inputs."""
        if any(name.endswith("*") for name in self.inputs):
            return count >= len(self.inputs) - 1
        return count == len(self.inputs)

    def input_range(self, name: str, count: int) -> range:
        """Positions of the input called `name` in an operation with `count` inputs."""
        extra = count - len(self.inputs)
        position = 0
        for declared in self.inputs:
            width = 1 + extra if declared.endswith("*") else 1
            if declared.rstrip("*") == name:
                return range(position, position + width)
            position += width
        raise AssertionError(f"{self.name} has no input called {name}")

    def constant_input_positions(self, operation: Operation) -> tuple[int, ...]:
        """Positions of the inputs of an operation whose values must be known when it is compiled."""
        count = len(operation.inputs)
        named = tuple(i for name in self.constant_inputs for i in self.input_range(name, count))
        return named if self.further_constant_inputs is None else (*named, *self.further_constant_inputs(operation))

    def preferred_constant_positions(self, count: int) -> tuple[int, ...]:
        """Positions of the inputs that had better be known in an operation with `count` inputs."""
        return tuple(i for name in self.preferred_constant_inputs for i in self.input_range(name, count))


_SPECS: dict[str, OpSpec] = {}

OP_SPECS: Mapping[str, OpSpec] = MappingProxyType(_SPECS)
"""All declared operations by name; complete once `xlalite.ops` is imported."""


def register(spec: OpSpec) -> OpSpec:
    """Adds a declaration to the table; gives it back."""
    assert spec.name not in _SPECS, f"operation {spec.name} is declared twice"
    _SPECS[spec.name] = spec
    return spec


def find_spec(name: str) -> OpSpec:
    """The declaration of an operation type.

    Raises:
        NotFoundError: no such operation is declared.
    """
    spec = _SPECS.get(name)
    if spec is None:
        raise NotFoundError(None, None, f"operation type {name!r} is not declared")
    return spec
