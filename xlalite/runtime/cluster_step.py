"""Steps that run a cluster: compiled where that pays, otherwise operation by operation."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.signatures import Signature
from xlalite.hlo.records import dataclass
from xlalite.runtime.cluster_compiler import ClusterCompiler
from xlalite.runtime.cluster_trace import ClusterTrace
from xlalite.runtime.compilation import CompilationCache, CompiledCluster
from xlalite.runtime.operation_step import PlanRegisters, PlanStep
from xlalite.runtime.options import RuntimeOptions
from xlalite.runtime.trace import StepTrace, tensor_label
from xlalite.runtime.variables import VariableStore, VariableValue

if TYPE_CHECKING:
    from xlalite.clustering.clusters import Cluster

_SHAPE = operator.attrgetter("shape")

Fallback = Callable[[], Sequence[PlanStep]]


@dataclass(frozen=True, slots=True)
class _Settled:
    """A run that updated all variables in place: the next one with such arrays need not look at any of them.

    Attributes:
        signature: What it was compiled for.
        shapes: Those of the arrays.
        taken: The variables' arrays.
    """

    signature: Signature
    shapes: list[tuple[int, ...]]
    taken: list[Array]


class ClusterStep:
    """Runs a cluster.

    Variables are read at entry and written at exit. A step that updates variables runs under the store's lock.

    Attributes:
        cluster: The cluster.
        compiler: Compiles it, and knows what was compiled and why.
        host_runs: How often its operations ran one by one.
    """

    def __init__(
        self,
        cluster: Cluster,
        number: int,
        registers: dict[Tensor, int],
        fallback: Fallback,
        cache: CompilationCache,
        options: RuntimeOptions,
    ) -> None:
        """Connects the cluster to the registers of a plan.

        Args:
            cluster: The cluster.
            number: Distinguishes its signatures from those of the session's other clusters.
            registers: Where each tensor that enters or leaves the cluster lies.
            fallback: Makes the steps that run the operations one by one.
            cache: The session's compiled clusters.
            options: How to compile.
        """
        self.cluster = cluster
        self.compiler = ClusterCompiler(cluster, cache, options)
        self._policy = self.compiler.policy
        self._lookup_lock = threading.Lock()
        self.host_runs = 0
        self._number = number
        self._cache = cache
        self._make_fallback = fallback
        self._fallback: Sequence[PlanStep] | None = None
        self._arrays = tuple(registers[tensor] for tensor in self.compiler.array_tensors)
        self._constants = tuple(registers[tensor] for tensor in self.compiler.constant_tensors)
        self._outputs = tuple(registers[tensor] for tensor in cluster.outputs)
        self._places = tuple(enumerate(self._outputs))
        self._variables = tuple(data.name for data in cluster.variables)
        self._needs_only_arrays = not self._variables and not self._constants

    @property
    def runs(self) -> int:
        """How often it ran, compiled or not."""
        return self.compiler.policy.runs

    def run(self, registers: PlanRegisters, store: VariableStore, trace: StepTrace | None) -> None:
        """Computes the outputs and updates the variables."""
        self._policy.runs += 1
        arrays: list[Array] = [registers[number] for number in self._arrays]  # type: ignore[misc]  # not host-only
        if self._needs_only_arrays and trace is None:
            ready = self._cache.find((self._number, *map(_SHAPE, arrays)))
            if ready is not None:
                made: Sequence[Array] = ready.function(*arrays)  # type: ignore[assignment]  # a flat tuple
                for position, number in self._places:
                    registers[number] = made[position]
                return
        if trace is None and self in store.settled:
            again = self._run_again(arrays, store)
            if again is not None:
                for position, number in self._places:
                    registers[number] = again[position]
                return
        traced = None if trace is None else ClusterTrace(trace, self.cluster.name)
        constants = [np.asarray(registers[number]) for number in self._constants] if self._constants else ()
        obtained: CompiledCluster | None = None
        obtained_for: Signature = ()
        while True:
            # Others may update variables for long; a cluster without any need not wait for them.
            with store.lock if self._variables else self._lookup_lock:
                values = [*map(store.find, self._variables)]
                known = [(*array.shape, array.tobytes()) for array in constants] if constants else ()
                try:
                    signature: Signature = (self._number, *map(_SHAPE, arrays), *known, *map(_SHAPE, values))
                except AttributeError:  # a variable without a value
                    shapes = [value and value.shape for value in values]
                    signature = (self._number, *map(_SHAPE, arrays), *known, *shapes)
                compiled = obtained if obtained_for == signature else self._cache.find(signature)
                if compiled is not None:
                    if traced is not None:
                        compiled = traced.with_clocks(compiled)
                    if compiled.updates:
                        results, taken = self._run_updating(compiled, arrays, values, store)
                        if taken is not None and traced is None and not constants:
                            store.settled[self] = _Settled(signature, [*map(_SHAPE, arrays)], taken)
                        break
                    if values:
                        store.begin_reading(values)
            if compiled is not None:
                if not values:
                    results = compiled.function(*arrays)  # type: ignore[assignment]  # a flat tuple
                else:
                    results = self._run_reading(compiled, arrays, values, store)
                break
            # Variables may get other shapes while their cluster is compiled, so everything is looked at again after.
            with nullcontext() if traced is None else traced.compilations:
                obtained, obtained_for = self.compiler.obtain(signature, arrays, constants), signature
            if obtained is None:
                if traced is not None:
                    traced.record_compile(self._trace_inputs(with_constants=True))
                self._run_fallback(registers, store, trace)
                return
        for position, number in self._places:
            registers[number] = results[position]
        if traced is not None:
            traced.record_compile(self._trace_inputs(with_constants=True))
            traced.record_run(self._trace_inputs(with_constants=False), results[: len(self._outputs)])

    def _run_again(self, arrays: list[Array], store: VariableStore) -> Sequence[Array] | None:
        """Runs code that overwrites variables once more, if nothing has changed since."""
        with store.lock:
            settled: _Settled | None = store.settled.get(self)
            if settled is None or settled.shapes != [*map(_SHAPE, arrays)]:
                return None
            compiled = self._cache.find(settled.signature)
            if compiled is None:
                return None
            return compiled.function(*arrays, *settled.taken)  # type: ignore[return-value]  # a flat tuple

    def _run_updating(
        self,
        compiled: CompiledCluster,
        arrays: Sequence[Array],
        values: list[VariableValue | None],
        store: VariableStore,
    ) -> tuple[Sequence[Array], list[Array] | None]:
        """Runs code that overwrites variables, under the store's lock.

        Returns:
            The results, and the arrays of the variables if all new values lie where the old ones did.
        """
        names = self._variables
        for position in compiled.donated:
            value: VariableValue = values[position]  # type: ignore[assignment]  # one without a value donates nothing
            if value.is_shared or value.readers:
                values[position] = store.exclusive(names[position], value)
        taken = [values[position].array for position in compiled.variables]  # type: ignore[union-attr]  # have a value
        results: Sequence[Array] = compiled.function(*arrays, *taken)  # type: ignore[assignment]  # a flat tuple
        is_in_place = True
        for number, position in compiled.updates:
            old, new = values[position], results[number]
            if old is None or new is not old.array:
                store.put(names[position], new)
                is_in_place = False
        return results, taken if is_in_place else None

    def _run_reading(
        self,
        compiled: CompiledCluster,
        arrays: Sequence[Array],
        values: Sequence[VariableValue | None],
        store: VariableStore,
    ) -> Sequence[Array]:
        """Runs code that updates nothing; others may run meanwhile, and find that its variables have a reader."""
        taken = [values[position].array for position in compiled.variables]  # type: ignore[union-attr]  # have a value
        try:
            return compiled.function(*arrays, *taken)  # type: ignore[return-value]  # a flat tuple
        finally:
            with store.lock:
                for value in values:
                    if value is not None:
                        value.readers -= 1

    def _run_fallback(self, registers: PlanRegisters, store: VariableStore, trace: StepTrace | None) -> None:
        self.host_runs += 1
        if self._fallback is None:
            self._fallback = self._make_fallback()
        for step in self._fallback:
            step.run(registers, store, trace)
        # Compiled code gives arrays of their own; so that whoever takes them need not ask how they were made:
        for number in self._outputs:
            registers[number] = np.array(registers[number])

    def _trace_inputs(self, *, with_constants: bool) -> list[str]:
        constants = self.compiler.constant_tensors if with_constants else ()
        return [*map(tensor_label, (*constants, *self.compiler.array_tensors)), *self._variables]
