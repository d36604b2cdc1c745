"""`xlalite.jit`: a NumPy function, compiled for the shapes and element types that it is called with."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from xlalite.backends.base import Executable
from xlalite.client.structures import LEAF, flatten, rebuild
from xlalite.client.traced_array import TracedArray, as_tensor
from xlalite.flags import debug_options, flags_from_environment
from xlalite.framework.compilability import why_not_compilable
from xlalite.framework.dtypes import as_dtype
from xlalite.framework.graph import Graph
from xlalite.framework.host import Array
from xlalite.framework.lowering import ParameterArgument
from xlalite.framework.tensor import Tensor
from xlalite.hlo.decision import Decision
from xlalite.hlo.errors import TracingError
from xlalite.hlo.shape import Shape
from xlalite.ops.array import placeholder
from xlalite.runtime.compilation import compile_operations
from xlalite.runtime.options import RuntimeOptions
from xlalite.runtime.pruning import needed_operations
from xlalite.runtime.recompilation import explain_compilation


@dataclass(frozen=True, slots=True)
class _Compiled:
    """One signature of a function.

    Attributes:
        executable: Its program: the leaves of the arguments in, those of the result out.
        function: Its quickest callable.
        assemble: The result's structure, given its leaves.
    """

    executable: Executable
    function: Callable[..., Any]
    assemble: Callable[[Sequence[Any]], Any]


class JitFunction:
    """A function that is traced and compiled once for each signature; safe for concurrent calls.

    Attributes:
        decisions: What was compiled, and which argument differed from the nearest signature.
    """

    def __init__(self, function: Callable[..., Any], static_argnames: Sequence[str], num_threads: int | None) -> None:
        """Wraps `function`."""
        functools.update_wrapper(self, function)
        self.decisions: list[Decision] = []
        self._function = function
        self._static = frozenset(static_argnames)
        self._num_threads = num_threads
        self._compiled: dict[Hashable, _Compiled] = {}
        self._flat: dict[Hashable, _Compiled] = {}
        self._signatures: list[tuple[Hashable, ...]] = []
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Runs the function on arrays, numbers and nestings of them.

        Raises:
            TracingError: The function does something that cannot be recorded.
        """
        if named:
            compiled, arrays = self._find(arguments, named)
            return compiled.assemble(compiled.function(*arrays))
        # The usual call, of arrays only, needs no look into the structure of its arguments.
        kinds = tuple([(each.shape, each.dtype) if type(each) is np.ndarray else None for each in arguments])
        known = self._flat.get(kinds)
        if known is not None:
            return known.assemble(known.function(*arguments))
        compiled, arrays = self._find(arguments, named)
        if None not in kinds:
            self._flat[kinds] = compiled
        return compiled.assemble(compiled.function(*arrays))

    def __repr__(self) -> str:
        """The function, and for which signatures it is compiled."""
        shapes = "; ".join(str(compiled.executable.program_shape) for compiled in self._compiled.values())
        return f"<jit of {self._function.__name__}, compiled for {shapes or 'nothing yet'}>"

    def executable(self, *arguments: Any, **named: Any) -> Executable:
        """The program for arguments of this kind, compiled if it was not."""
        return self._find(arguments, named)[0].executable

    def clear_cache(self) -> None:
        """Forgets all compiled programs."""
        with self._lock:
            self._compiled.clear()
            self._flat.clear()

    def _find(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[_Compiled, list[Array]]:
        static = {name: value for name, value in named.items() if name in self._static}
        dynamic = {name: value for name, value in named.items() if name not in self._static}
        leaves, structure = flatten((arguments, dynamic))
        arrays = [_as_array(leaf) for leaf in leaves]
        kinds = tuple(
            [(*each.shape, each.dtype, type(leaf) in _NUMBERS) for each, leaf in zip(arrays, leaves, strict=True)]
        )
        try:
            key = (structure, tuple(sorted(static.items())), kinds)
            found = self._compiled.get(key)
        except TypeError as error:
            raise TracingError(f"{self._function.__name__}: static arguments must be hashable: {error}") from None
        if found is None:
            with self._lock:
                found = self._compiled.get(key)
                if found is None:
                    found = self._compiled[key] = self._compile(structure, leaves, arrays, static, (key[:2], *kinds))
        return found, arrays

    def _compile(
        self,
        structure: Hashable,
        leaves: Sequence[Any],
        arrays: Sequence[Array],
        static: Mapping[str, Any],
        signature: tuple[Hashable, ...],
    ) -> _Compiled:
        name = self._function.__name__
        flags = flags_from_environment()
        options = RuntimeOptions(
            num_threads=self._num_threads or flags.xlalite_num_threads or None, debug=debug_options(flags)
        )
        with Graph().as_default():
            inputs = [placeholder(array.dtype, array.shape, f"argument_{i}") for i, array in enumerate(arrays)]
            traced = [TracedArray(tensor, type(leaf) in _NUMBERS) for tensor, leaf in zip(inputs, leaves, strict=True)]
            positional, named = rebuild(structure, traced)
            result = self._function(*positional, **named, **static)
            results, result_structure = flatten(result)
            outputs = [_as_output(name, value) for value in results]
        operations = needed_operations(outputs, (), inputs)
        for operation in operations:
            reason = why_not_compilable(operation)
            if reason is not None:
                raise TracingError(f"{name} cannot be compiled: {reason}\n  in {operation.describe()}")
        earlier = [each for each in self._signatures if len(each) == len(signature)]
        decision = explain_compilation(name, [tensor.op.name for tensor in inputs], signature, earlier)
        arguments = [
            ParameterArgument(tensor, Shape.array(tensor.dtype.hlo, array.shape))
            for tensor, array in zip(inputs, arrays, strict=True)
        ]
        compiled = compile_operations(name, operations, arguments, outputs, options, decision)
        if len(self._compiled) == _MAX_SIGNATURES:
            del self._compiled[next(iter(self._compiled))]
            self._flat.clear()
        self._signatures = [*self._signatures[1 - _MAX_SIGNATURES :], signature]
        self.decisions.append(decision)
        return _Compiled(compiled.executable, compiled.function, _assembler(result_structure))


@overload
def jit(
    function: Callable[..., Any], *, static_argnames: Sequence[str] = (), num_threads: int | None = None
) -> JitFunction: ...
@overload
def jit(
    function: None = None, *, static_argnames: Sequence[str] = (), num_threads: int | None = None
) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    function: Callable[..., Any] | None = None, *, static_argnames: Sequence[str] = (), num_threads: int | None = None
) -> Any:
    """Compiles a function of arrays at its first call with each combination of shapes and element types.

    The function sees arrays without values; NumPy's operators, ufuncs and common functions, and xlalite's own, are
    recorded. Loops and branches of Python are run while recording.

    Args:
        function: The function; without it, a decorator is returned.
        static_argnames: Keyword arguments that are passed as they are; each value is compiled by itself.
        num_threads: Threads that a call may use.
    """
    if function is None:
        return lambda given: JitFunction(given, static_argnames, num_threads)
    return JitFunction(function, static_argnames, num_threads)


_NUMBERS = frozenset({bool, int, float, complex})
_MAX_SIGNATURES = 256


def _as_array(leaf: Any) -> Array:
    array: Array = leaf if type(leaf) is np.ndarray else np.asarray(leaf)
    if array.dtype.kind in "OSUMm":
        raise TracingError(f"cannot compile for an argument of type {type(leaf).__name__} ({array.dtype}): {leaf!r}")
    as_dtype(array.dtype)
    return array


def _as_output(name: str, value: Any) -> Tensor:
    if value is None or isinstance(value, str | bytes):
        raise TracingError(f"{name} returned {value!r}; arrays, numbers and nestings of them are expected")
    return as_tensor(value)


def _assembler(structure: Hashable) -> Callable[[Sequence[Array]], Any]:
    if structure is LEAF:
        return lambda values: _as_result(values[0])
    return lambda values: rebuild(structure, [_as_result(value) for value in values])


def _as_result(value: Array) -> Any:
    return value if value.shape else value[()]
