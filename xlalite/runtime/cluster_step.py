"""Steps that run a cluster: compiled where that pays, otherwise operation by operation."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from xlalite.framework.host import Array
from xlalite.framework.lowering import Argument, ConstantArgument, ParameterArgument, VariableArgument
from xlalite.framework.tensor import Tensor
from xlalite.hlo.decision import Decision
from xlalite.hlo.errors import CodegenError, LoweringError
from xlalite.hlo.shape import Shape
from xlalite.runtime.compilation import compile_operations
from xlalite.runtime.compilation_cache import CompilationCache, CompiledCluster, Signature
from xlalite.runtime.compile_policy import CompilePolicy, Verdict
from xlalite.runtime.host_step import Registers, Step
from xlalite.runtime.options import CompileMode, RuntimeOptions
from xlalite.runtime.recompilation import explain_compilation
from xlalite.runtime.trace import StepTrace, tensor_label
from xlalite.runtime.variables import VariableStore, VariableValue

if TYPE_CHECKING:
    from xlalite.clustering.result import Cluster

_LOG = logging.getLogger("xlalite")
_REMEMBERED_SIGNATURES = 256
_NO_LOCK = contextlib.nullcontext()

Fallback = Callable[[], Sequence[Step]]


class ClusterStep:
    """Runs a cluster.

    Variables are read at entry and written at exit. A step that updates variables runs under the store's lock.

    Attributes:
        cluster: The cluster.
        decisions: What was compiled, what was not, and why.
        policy: How often it ran and was compiled.
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
        self.decisions: list[Decision] = []
        self.policy = CompilePolicy(options.compile_mode, options.lazy_compile_threshold)
        self._number = number
        self._cache = cache
        self._options = options
        self._make_fallback = fallback
        self._fallback: Sequence[Step] | None = None
        self._compile_lock = threading.Lock()
        self._cannot_compile = False
        self._earlier: list[Signature] = []
        constant = set(cluster.constant_inputs)
        positions = [i for i, tensor in enumerate(cluster.inputs) if not tensor.dtype.is_host_only]
        self._array_tensors = tuple(cluster.inputs[i] for i in positions if i not in constant)
        self._constant_tensors = tuple(cluster.inputs[i] for i in positions if i in constant)
        self._arrays = tuple(registers[tensor] for tensor in self._array_tensors)
        self._constants = tuple(registers[tensor] for tensor in self._constant_tensors)
        self._outputs = tuple(registers[tensor] for tensor in cluster.outputs)
        self._variables = tuple(data.name for data in cluster.variables)

    def run(self, registers: Registers, store: VariableStore, trace: StepTrace | None) -> None:
        """Computes the outputs and updates the variables."""
        self.policy.runs += 1
        began = trace.now() if trace is not None else 0
        arrays: list[Array] = [registers[number] for number in self._arrays]  # type: ignore[misc]  # not host-only
        constants: list[Array] = [np.asarray(registers[number]) for number in self._constants]
        obtained: CompiledCluster | None = None
        obtained_for: Signature = ()
        while True:
            # Others may update variables for long; a cluster without any need not wait for them.
            with store.lock if self._variables else _NO_LOCK:
                values = [store.find(name) for name in self._variables]
                signature = self._signature(arrays, constants, values)
                compiled = obtained if obtained_for == signature else self._cache.find(signature)
                if compiled is not None:
                    compiled_at = trace.now() if trace is not None else 0
                    if compiled.updates:
                        results = self._run_updating(compiled, arrays, values, store)
                        break
                    for value in values:
                        if value is not None:
                            value.readers += 1
            if compiled is not None:
                results = self._run_reading(compiled, arrays, values, store)
                break
            # Variables may get other shapes while their cluster is compiled, so everything is looked at again after.
            obtained, obtained_for = self._obtain(signature, arrays, constants), signature
            if obtained is None:
                self._trace_compile(trace, began)
                self._run_fallback(registers, store, trace)
                return
        for number, result in zip(self._outputs, results, strict=False):
            registers[number] = result
        if trace is not None:
            self._trace_compile(trace, began, compiled_at)
            inputs = [*map(tensor_label, self._array_tensors), *self._variables]
            trace.record(f"{self.cluster.name}/xla_run", "_XlaRun", inputs, compiled_at, results[: len(self._outputs)])

    def _signature(
        self, arrays: Sequence[Array], constants: Sequence[Array], values: Sequence[VariableValue | None]
    ) -> Signature:
        parts: list[Hashable] = [self._number]
        parts += [array.shape for array in arrays]
        parts += [(*array.shape, array.tobytes()) for array in constants]
        parts += [None if value is None else value.array.shape for value in values]
        return tuple(parts)

    def _run_updating(
        self,
        compiled: CompiledCluster,
        arrays: Sequence[Array],
        values: list[VariableValue | None],
        store: VariableStore,
    ) -> Sequence[Array]:
        """Runs code that overwrites variables; under the store's lock."""
        names = self._variables
        for position in compiled.donated:
            value = values[position]
            assert value is not None, "a variable without a value donates nothing"
            if value.is_shared or value.readers:
                values[position] = store.exclusive(names[position], value)
        taken = [values[position].array for position in compiled.variables]  # type: ignore[union-attr]  # have a value
        results: Sequence[Array] = compiled.function(*arrays, *taken)  # type: ignore[assignment]  # a flat tuple
        for position, new in zip(compiled.updates, results[compiled.output_count :], strict=True):
            old = values[position]
            if old is None or new is not old.array:
                store.put(names[position], new)
        return results

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
            if values:
                with store.lock:
                    for value in values:
                        if value is not None:
                            value.readers -= 1

    def _obtain(
        self, signature: Signature, arrays: Sequence[Array], constants: Sequence[Array]
    ) -> CompiledCluster | None:
        """Compiled code for the signature, or None to run the operations one by one."""
        with self._compile_lock:
            found = self._cache.find(signature)
            if found is not None or self._cannot_compile:
                return found
            was_megamorphic = self.policy.is_megamorphic
            verdict = self.policy.decide(signature)
            if verdict is not Verdict.COMPILE:
                if verdict is not Verdict.MEGAMORPHIC or not was_megamorphic:
                    self._note_fallback(verdict)
                return None
            return self._compile(signature, arrays, constants)

    def _compile(
        self, signature: Signature, arrays: Sequence[Array], constants: Sequence[Array]
    ) -> CompiledCluster | None:
        decision = explain_compilation(self.cluster.name, self._argument_names(), signature, self._earlier)
        arguments = self._lowering_arguments(signature, arrays, constants)
        try:
            compiled = compile_operations(
                self.cluster.name, self.cluster.operations, arguments, self.cluster.outputs, self._options, decision
            )
        except (LoweringError, CodegenError) as error:
            if self._options.compile_mode is CompileMode.STRICT:
                raise
            self._cannot_compile = True
            reason = str(error).splitlines()[0]
            self.decisions.append(Decision("compilation", (self.cluster.name,), "runs op by op", reason))
            _LOG.warning("%s cannot be compiled and runs op by op: %s", self.cluster.name, error)
            return None
        self.policy.compilations += 1
        self.decisions.append(decision)
        self._earlier = [*self._earlier[-_REMEMBERED_SIGNATURES:], signature]
        self._cache.add(signature, compiled)
        _LOG.info("%s in %.1f ms", decision, 1e3 * compiled.compile_seconds)
        return compiled

    def _note_fallback(self, verdict: Verdict) -> None:
        decision = Decision("compilation", (self.cluster.name,), "runs op by op", verdict.value)
        if decision not in self.decisions:
            self.decisions.append(decision)
        if verdict is Verdict.MEGAMORPHIC:
            again = [each for each in self.decisions if each.verdict == "compiled again"]
            _LOG.warning("%s is not compiled any more: its inputs keep changing; %s", self.cluster.name, again[-1])

    def _argument_names(self) -> list[str]:
        return [tensor.name for tensor in (*self._array_tensors, *self._constant_tensors)] + list(self._variables)

    def _lowering_arguments(
        self, signature: Signature, arrays: Sequence[Array], constants: Sequence[Array]
    ) -> list[Argument]:
        arguments: list[Argument] = [
            ParameterArgument(tensor, Shape.array(tensor.dtype.hlo, array.shape))
            for tensor, array in zip(self._array_tensors, arrays, strict=True)
        ]
        arguments += map(ConstantArgument, self._constant_tensors, constants)
        dims_of_variables = signature[len(signature) - len(self._variables) :]
        for data, dims in zip(self.cluster.variables, dims_of_variables, strict=True):
            shape = Shape.array(data.dtype.hlo, dims) if isinstance(dims, tuple) else None
            arguments.append(VariableArgument(data, shape))
        return arguments

    def _run_fallback(self, registers: Registers, store: VariableStore, trace: StepTrace | None) -> None:
        if self._fallback is None:
            self._fallback = self._make_fallback()
        for step in self._fallback:
            step.run(registers, store, trace)
        # Compiled code gives arrays of their own; so that whoever takes them need not ask how they were made:
        for number in self._outputs:
            registers[number] = np.array(registers[number])

    def _trace_compile(self, trace: StepTrace | None, began: int, ended: int | None = None) -> None:
        if trace is None:
            return
        inputs = [*map(tensor_label, (*self._constant_tensors, *self._array_tensors)), *self._variables]
        trace.record(f"{self.cluster.name}/xla_compile", "_XlaCompile", inputs, began, (), ended)
