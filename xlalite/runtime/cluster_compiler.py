"""Compiles a cluster for one signature after another, and keeps account of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import Argument, ConstantArgument, ParameterArgument, VariableArgument
from xlalite.framework.meaning.signatures import Signature
from xlalite.hlo import log
from xlalite.hlo.errors import CodegenError, LoweringError, PassError, VerificationError, XlaliteError
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.types.shape import Shape
from xlalite.runtime.compilation import CompilationCache, CompiledCluster, compile_operations
from xlalite.runtime.compile_policy import CompilePolicy, Verdict
from xlalite.runtime.options import CompileMode, RuntimeOptions
from xlalite.runtime.recompilation import STAGE, CompilationHistory

if TYPE_CHECKING:
    from xlalite.clustering.clusters import Cluster

_FALLBACK = "runs op by op"
_IN_BACKGROUND = "it is compiled in the background"


class ClusterCompiler:
    """Decides when a cluster is compiled, and does it.

    A signature is, after the cluster's number, the sizes of `array_tensors`, (sizes..., bytes) of `constant_tensors`,
    and the sizes of the cluster's variables, None for one without a value.

    Attributes:
        array_tensors: Inputs that become parameters.
        constant_tensors: Inputs whose values must be known.
        history: What was compiled, what was not, and why.
        policy: How often the cluster ran and was compiled.
    """

    def __init__(self, cluster: Cluster, cache: CompilationCache, options: RuntimeOptions) -> None:
        """Compiles nothing yet."""
        constant = set(cluster.constant_inputs)
        self.array_tensors = tuple(tensor for i, tensor in enumerate(cluster.inputs) if i not in constant)
        self.constant_tensors = tuple(tensor for i, tensor in enumerate(cluster.inputs) if i in constant)
        self.policy = CompilePolicy(
            options.compile_mode,
            options.lazy_compile_threshold,
            runs_once=cluster.only_initializes,
            max_compilations=options.max_compilations,
        )
        self.history = CompilationHistory(cluster.name)
        self._cluster = cluster
        self._cache = cache
        self._options = options
        self._lock = threading.Lock()
        self._cannot_compile = False
        self._awaited: set[Signature] = set()

    def obtain(
        self, signature: Signature, arrays: Sequence[Array], constants: Sequence[Array]
    ) -> CompiledCluster | None:
        """Compiled code for a signature, or None to run the operations one by one.

        Raises:
            XlaliteError: The sizes do not fit, a variable that is read has no value, or, in strict mode, the cluster
                cannot be compiled.
        """
        with self._lock:
            found = self._cache.find(signature)
            if found is not None or self._cannot_compile:
                return found
            was_megamorphic = self.policy.is_megamorphic
            verdict = self.policy.decide(signature)
            if verdict is Verdict.COMPILE:
                if self._options.compile_mode is CompileMode.ASYNC:
                    self._compile_later(signature, arrays, constants)
                    return None
                return self._compile(signature, self._lowering_arguments(signature, arrays, constants))
            if not was_megamorphic:
                self._note_fallback(verdict.value)
                if verdict is Verdict.MEGAMORPHIC:
                    self._warn_of_changing_inputs()
            return None

    def _compile_later(self, signature: Signature, arrays: Sequence[Array], constants: Sequence[Array]) -> None:
        if signature in self._awaited:
            return
        self._awaited.add(signature)
        self._note_fallback(_IN_BACKGROUND)
        arguments = self._lowering_arguments(signature, arrays, [constant.copy() for constant in constants])

        def compile_now() -> None:
            try:
                self._compile(signature, arguments)
            except XlaliteError as error:  # the operations meet it, too, and tell the caller
                log.info("%s was not compiled in the background: %s", self._cluster.name, error)
            except Exception as error:  # nobody waits for this thread, who would see it
                self._cannot_compile = True
                self._note_fallback(f"the compiler failed: {type(error).__name__}: {error}".splitlines()[0])
                log.exception("%s cannot be compiled and runs op by op", self._cluster.name)
            finally:
                self._awaited.discard(signature)

        self._cache.run_in_background(compile_now)

    def _compile(self, signature: Signature, arguments: Sequence[Argument]) -> CompiledCluster | None:
        cluster = self._cluster
        decision = self.history.explain(self._argument_names(), signature)
        start = time.perf_counter()
        try:
            compiled = self._cache.obtain(
                signature,
                lambda: compile_operations(
                    cluster.name, cluster.operations, arguments, cluster.outputs, self._options, decision
                ),
            )
        except (LoweringError, VerificationError, PassError, CodegenError) as error:
            if self._options.compile_mode is CompileMode.STRICT:
                raise
            self._cannot_compile = True
            self._note_fallback(str(error).splitlines()[0])
            log.warning("%s cannot be compiled and runs op by op: %s", cluster.name, error)
            return None
        seconds = time.perf_counter() - start
        self.policy.compilations += 1
        self.history.add(signature, decision)
        self.history.seconds += seconds
        log.info("%s in %.1f ms", decision, 1e3 * seconds)
        return compiled

    def _note_fallback(self, reason: str) -> None:
        decision = Decision(STAGE, (self._cluster.name,), _FALLBACK, reason)
        if decision not in self.history.decisions:
            self.history.decisions.append(decision)

    def _warn_of_changing_inputs(self) -> None:
        again = [each for each in self.history.decisions if each.verdict == "compiled again"]
        log.warning("%s is not compiled any more: its inputs keep changing; %s", self._cluster.name, again[-1])

    def _argument_names(self) -> list[str]:
        tensors = (*self.array_tensors, *self.constant_tensors)
        return [tensor.name for tensor in tensors] + [data.name for data in self._cluster.variables]

    def _lowering_arguments(
        self, signature: Signature, arrays: Sequence[Array], constants: Sequence[Array]
    ) -> list[Argument]:
        arguments: list[Argument] = [
            ParameterArgument(tensor, Shape.array(tensor.dtype.hlo, array.shape))
            for tensor, array in zip(self.array_tensors, arrays, strict=True)
        ]
        arguments += map(ConstantArgument, self.constant_tensors, constants)
        variables = self._cluster.variables
        for data, dims in zip(variables, signature[len(signature) - len(variables) :], strict=True):
            shape = Shape.array(data.dtype.hlo, dims) if isinstance(dims, tuple) else None
            arguments.append(VariableArgument(data, shape))
        return arguments
