"""`xlalite.jit`: a NumPy function, compiled for the shapes and element types that it is called with."""

from __future__ import annotations

import functools
import inspect
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType, MethodType
from typing import Any, overload

import numpy as np

from xlalite.backends.base import Executable
from xlalite.flags import debug_options, extra_passes, flags_from_environment
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.source_location import user_line
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.compilability import why_not_compilable
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import ParameterArgument, lower_operations
from xlalite.framework.meaning.signatures import Signature, SignatureCache
from xlalite.framework.structure import LEAF, flatten, rebuild
from xlalite.hlo.errors import TracingError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.record_tables import RecordTable
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.types.shape import Shape
from xlalite.ops.functions.array import placeholder
from xlalite.runtime.compilation import compile_module, compile_operations
from xlalite.runtime.options import RuntimeOptions
from xlalite.runtime.pruning import needed_operations
from xlalite.runtime.recompilation import REMEMBERED_SIGNATURES, STRUCTURE_CHANGED, CompilationHistory
from xlalite.tracing.compiled import Compiled, assembler
from xlalite.tracing.donation import OUT, Donation, donation_of, into, unused_donation
from xlalite.tracing.lowered import Lowered
from xlalite.tracing.namespace import name_of, with_these_names
from xlalite.tracing.promotion import as_tensor, refuse_mask
from xlalite.tracing.source_transformation import with_staged_control
from xlalite.tracing.state import is_tracing, tracing
from xlalite.tracing.symbolic_sizes import SymbolicSizes
from xlalite.tracing.traced_array import TracedArray, is_numeric


@dataclass(frozen=True, slots=True)
class _Given:
    """The arguments of a call.

    Attributes:
        structure: The structure of positional and named arguments, without the static ones.
        fixed: Static arguments by position.
        static: Static arguments by name.
        leaves: The values in the structure.
        arrays: The leaves as arrays.
    """

    structure: Hashable
    fixed: Mapping[int, Any]
    static: Mapping[str, Any]
    leaves: Sequence[Any]
    arrays: Sequence[Array]


@dataclass(frozen=True, slots=True)
class _Traced:
    """What a function does.

    Attributes:
        operations: In an order in which producers come first.
        arguments: The leaves of the arguments.
        outputs: The leaves of the result, and what else the program gives.
        donation: Which of them lie in the memory of arguments.
        structure: The structure of the result.
    """

    operations: Sequence[Operation]
    arguments: Sequence[ParameterArgument]
    outputs: Sequence[Tensor]
    donation: Donation
    structure: Hashable

    def module(self, name: str) -> HloModule:
        """The same as a program."""
        return lower_operations(self.operations, self.arguments, self.outputs, name).module


class JitFunction:
    """A function that is traced and compiled once for each signature; safe for concurrent calls."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnames: Sequence[str] = (),
        static_argnums: Sequence[int] = (),
        num_threads: int | None = None,
        control_flow: bool = False,
        donate_argnames: Sequence[str] = (),
        donate_argnums: Sequence[int] = (),
        dynamic: Mapping[str, Mapping[int, str]] = MappingProxyType({}),
    ) -> None:
        """Wraps `function`."""
        functools.update_wrapper(self, function)
        self._name = name_of(function)
        self._function = with_staged_control(function) if control_flow else function
        self._static_names, self._static_positions = _chosen(function, "static", static_argnames, static_argnums)
        self._donated_names, self._donated_positions = _chosen(function, "donated", donate_argnames, donate_argnums)
        if both := self._static_names & self._donated_names:
            raise ValueError(f"jit of {self._name}: {', '.join(sorted(both))}: static and donated")
        self._has_out = any(
            each.name == OUT or each.kind is inspect.Parameter.VAR_KEYWORD
            for each in inspect.signature(function).parameters.values()
        )
        _chosen(function, "dynamic", tuple(dynamic), ())
        self._symbolic_sizes = SymbolicSizes(self._name, dynamic)
        self._num_threads = num_threads
        self._history = CompilationHistory(self._name)
        self._statics: deque[Mapping[str, Any]] = deque(maxlen=REMEMBERED_SIGNATURES)
        self._cache: SignatureCache[Compiled] = SignatureCache(REMEMBERED_SIGNATURES, clocked=Compiled.clocked)
        # Programs for arrays alone, by their shapes and types.
        self._quick = self._cache.shortcuts

    def __set_name__(self, owner: type, name: str) -> None:
        """As a method: the object it belongs to is a static argument."""
        self._static_positions |= {0}

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        """As a method: bound to an object."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Runs the function on arrays, numbers and nestings of them.

        Raises:
            TracingError: The function does something that cannot be recorded.
        """
        if is_tracing() and any(isinstance(each, TracedArray) for each in flatten((arguments, dict(named)))[0]):
            return self._within(arguments, named)
        if named:
            compiled, arrays = self._find(arguments, named)
            result = compiled.assemble(compiled.function(*arrays))
            return result if self._has_out else named.get(OUT, result)
        # The usual call, of arrays only, needs no look into the structure of its arguments.
        kinds = tuple([(each.shape, each.dtype) if type(each) is np.ndarray else None for each in arguments])
        known = self._quick.get(kinds)
        if known is not None:
            return known.assemble(known.function(*arguments))
        compiled, arrays = self._find(arguments, named)
        if None not in kinds:
            if len(self._quick) == REMEMBERED_SIGNATURES:
                self._quick.clear()
            self._quick[kinds] = compiled
        return compiled.assemble(compiled.function(*arrays))

    @property
    def decisions(self) -> Sequence[Decision]:
        """What was compiled, and which argument differed from the nearest signature."""
        return RecordTable(self._history.decisions)

    def __repr__(self) -> str:
        programs = dict.fromkeys(compiled.executable for compiled in self._cache.made())
        shapes = "; ".join(str(program.program_shape) for program in programs)
        return f"<jit of {self._name}, compiled for {shapes or 'nothing yet'}>"

    def executable(self, *arguments: Any, **named: Any) -> Executable:
        """The program for arguments of this kind, compiled if it was not."""
        return self._find(arguments, named)[0].executable

    def lower(self, *arguments: Any, **named: Any) -> Lowered:
        """The program for arguments of this kind, to look at."""
        return Lowered(self.executable(*arguments, **named))

    def clear_cache(self) -> None:
        """Forgets all compiled programs."""
        self._cache.clear()

    def _within(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """As a part of the function that is being traced; its arguments stay as they are but for donated ones."""
        given = dict(named)
        out = None if self._has_out else given.pop(OUT, None)
        leaves, structure = flatten((list(arguments), given))
        copies = [_own_copy(each) for each in leaves]
        positional, own_named = rebuild(structure, copies)
        kept = self._static_positions | self._donated_positions
        positional = [arguments[i] if i in kept else each for i, each in enumerate(positional)]
        own_named |= {name: given[name] for name in self._donated_names & given.keys()}
        result = with_these_names(self._function)(*positional, **own_named)
        return result if out is None else into(out, result, self._name)

    def _find(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Compiled, list[Array]]:
        static = {name: value for name, value in named.items() if name in self._static_names}
        dynamic = {name: value for name, value in sorted(named.items()) if name not in self._static_names}
        fixed = {i: value for i, value in enumerate(arguments) if i in self._static_positions}
        leaves, structure = flatten(([None if i in fixed else each for i, each in enumerate(arguments)], dynamic))
        arrays = [_as_array(leaf) for leaf in leaves]
        kinds = tuple([(*each.shape, _type_name(each, leaf)) for each, leaf in zip(arrays, leaves, strict=True)])
        static_values = (*fixed.items(), *sorted(static.items()))
        try:
            hash(static_values)
        except TypeError as error:
            raise TracingError(f"{self._name}: static arguments must be hashable: {error}") from None
        signature = ((structure, static_values), *kinds)
        return self._cache.obtain(
            signature, lambda: self._compile(_Given(structure, fixed, static, leaves, arrays), signature)
        ), arrays

    def _why(self, given: _Given, signature: Signature) -> Decision:
        """Why it is compiled, in the names of the function's arguments."""
        decision = self._history.explain(self._argument_names(given), signature)
        now = {**{self._positional(i): value for i, value in given.fixed.items()}, **given.static}
        if self._statics and decision.reason == STRUCTURE_CHANGED:
            before = min(reversed(self._statics), key=lambda other: len(_changed(now, other)))
            if names := _changed(now, before):
                values = {"before": repr(before.get(names[0])), "now": repr(now.get(names[0]))}
                subject = (self._name, *names)
                decision = replace(decision, subject=subject, reason="a static argument changed", numbers=values)
        self._statics.append(now)
        return decision

    def _argument_names(self, given: _Given) -> list[str]:
        """What the function calls each leaf of its arguments."""
        positional, named = rebuild(given.structure, given.leaves)
        parts = [*((self._positional(i), value) for i, value in enumerate(positional)), *named.items()]
        found = []
        for name, value in parts:
            leaves, structure = flatten(value)
            found += [name] if structure == LEAF else [f"{name} ({i + 1} of {len(leaves)})" for i in range(len(leaves))]
        return found

    def _positional(self, number: int) -> str:
        parameters = list(inspect.signature(self._function).parameters.values())
        rest = [each.name for each in parameters if each.kind is inspect.Parameter.VAR_POSITIONAL]
        own = [each.name for each in parameters if each.kind not in _ONLY_NAMED]
        return own[number] if number < len(own) else f"{rest[0]}[{number - len(own)}]"

    def _compile(self, given: _Given, signature: Signature) -> Compiled:
        name = self._name
        flags = flags_from_environment()
        options = RuntimeOptions(
            num_threads=self._num_threads or flags.xlalite_num_threads or None,
            debug=debug_options(flags),
            optimize=not flags.xla_disable_all_hlo_passes,
            extra_passes=extra_passes(flags),
        )
        shapes = [array.shape for array in given.arrays]
        traced = self._traced(given, shapes)
        decision, names = self._why(given, signature), self._argument_names(given)
        executable, decisions = self._symbolic_sizes.program(
            names,
            shapes,
            lambda other: self._traced(given, other).module(name),
            lambda module: compile_module(module, options),
        )
        if executable is None:
            compiled = compile_operations(
                name, traced.operations, traced.arguments, traced.outputs, options, decision, traced.donation.aliases
            )
            executable = compiled.executable
            decisions += [unused_donation(name, names[i]) for i in traced.donation.unused]
            decisions.insert(0, decision)
        elif decisions:
            padded = "a program for several sizes has larger arrays; what is assigned is copied"
            given_away = sorted(each.parameter_number for each in traced.donation.aliases)
            decisions += [unused_donation(name, names[i], padded) for i in given_away]
        self._history.add(signature, *decisions)
        return Compiled.of(executable, traced.donation, assembler(traced.structure))

    def _traced(self, given: _Given, shapes: Sequence[tuple[int, ...]]) -> _Traced:
        """What the function does with arguments of these sizes."""
        name = self._name
        graph = Graph()
        graph.is_traced = True
        with graph.as_default(), _refusing_random_numbers(name), tracing():
            inputs = [
                placeholder(array.dtype, dims, f"argument_{i}")
                for i, (array, dims) in enumerate(zip(given.arrays, shapes, strict=True))
            ]
            traced = [
                TracedArray(tensor, type(leaf) in _NUMBERS) for tensor, leaf in zip(inputs, given.leaves, strict=True)
            ]
            positional, named = rebuild(given.structure, traced)
            positional = [given.fixed.get(i, each) for i, each in enumerate(positional)]
            donated = self._donated(positional, named, traced)
            out = None if self._has_out else named.pop(OUT, None)
            function = with_these_names(self._function)
            try:
                result = function(*positional, **named, **given.static)
            except TracingError as error:
                if line := user_line(error.__traceback__):
                    error.args = (f"{error}\n  at {line}",)
                raise
            if out is not None:
                result = into(out, result, name)
            results, structure = flatten(result)
            outputs = [_as_output(name, value) for value in results]
            donation = donation_of(traced, donated, results, outputs)
            outputs += donation.outputs
        operations = needed_operations(outputs, (), inputs)
        for operation in operations:
            reason = why_not_compilable(operation)
            if reason is None and operation.spec.state is not None:
                reason = f"{operation.type}: its stream of random numbers belongs to a session, and here is none"
            if reason is not None:
                raise TracingError(f"{name} cannot be compiled: {reason}\n  in {operation.describe()}")
        arguments = [
            ParameterArgument(tensor, Shape.array(tensor.dtype.hlo, dims))
            for tensor, dims in zip(inputs, shapes, strict=True)
        ]
        return _Traced(operations, arguments, outputs, donation, structure)

    def _donated(self, positional: Sequence[Any], named: Mapping[str, Any], traced: Sequence[TracedArray]) -> set[int]:
        """The leaves of the arguments that are given away."""
        names = self._donated_names if self._has_out else self._donated_names | {OUT}
        given = [each for i, each in enumerate(positional) if i in self._donated_positions]
        given += [named[name] for name in sorted(names & named.keys())]
        donated = {id(leaf) for leaf in flatten(given)[0]}
        return {i for i, each in enumerate(traced) if id(each) in donated}


@overload
def jit(
    function: Callable[..., Any],
    *,
    static_argnames: str | Sequence[str] = (),
    static_argnums: int | Sequence[int] = (),
    num_threads: int | None = None,
    control_flow: bool = False,
    donate_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    dynamic: Mapping[str, Mapping[int, str]] = MappingProxyType({}),
) -> JitFunction: ...
@overload
def jit(
    function: None = None,
    *,
    static_argnames: str | Sequence[str] = (),
    static_argnums: int | Sequence[int] = (),
    num_threads: int | None = None,
    control_flow: bool = False,
    donate_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    dynamic: Mapping[str, Mapping[int, str]] = MappingProxyType({}),
) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnames: str | Sequence[str] = (),
    static_argnums: int | Sequence[int] = (),
    num_threads: int | None = None,
    control_flow: bool = False,
    donate_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    dynamic: Mapping[str, Mapping[int, str]] = MappingProxyType({}),
) -> Any:
    """Compiles a function of arrays at its first call with each combination of shapes and element types.

    The function sees arrays without values; NumPy's operators, ufuncs and common functions, and xlalite's own, are
    recorded. Loops and branches of Python are run while recording, and so is whatever else the function does: numbers
    that it draws and attributes that it reads are constants of the program. Arguments and results may be nested in
    lists, tuples, dictionaries and dataclasses, and None is passed on. A method's object is a static argument.

    The arrays of the caller stay as they are, with two exceptions. Those that are donated are given away: results of
    their shape and element type lie in their memory, and what the function assigns to them is seen by the caller, as in
    NumPy; whatever else stood in them is lost. And `f(x, out=y)` puts the result into `y`, if the function has no
    parameter of that name.

    Args:
        function: The function; without it, a decorator is returned.
        static_argnames: Names of arguments that are passed as they are, by position or by name; they must be hashable,
            and each value is compiled by itself.
        static_argnums: The same by position.
        num_threads: Threads that a call may use.
        control_flow: Whether the text of the function is rewritten, so that `if`, `while`, `for` over a `range`, `and`,
            `or`, `not`, `max` and `min` of traced values become branches and loops of the program.
        donate_argnames: Names of arguments that are given away.
        donate_argnums: The same by position.
        dynamic: Sizes that vary, by arguments and dimensions: `{"x": {0: "n"}}`. One program is compiled for all sizes
            up to a power of two, where what the function does follows from the sizes of arrays; `decisions` says where
            it does not. Each new size is traced. Nothing is donated to such programs.

    Raises:
        ValueError: A static or donated argument is none of the function's, or one is both.
    """
    options = (_several(static_argnames), _several(static_argnums), num_threads, control_flow)
    donated = (_several(donate_argnames), _several(donate_argnums))
    if function is None:
        return lambda given: JitFunction(given, *options, *donated, dynamic)
    return JitFunction(function, *options, *donated, dynamic)


_ONLY_NAMED = (
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)
_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_NUMBERS = frozenset({bool, int, float, complex})


def _several(chosen: Any) -> tuple[Any, ...]:
    return (chosen,) if isinstance(chosen, str | int) else tuple(chosen)


def _chosen(
    function: Callable[..., Any], what: str, names: Sequence[str], numbers: Sequence[int]
) -> tuple[frozenset[str], frozenset[int]]:
    """The static or donated arguments by name and by position: whoever names one may pass it either way."""
    parameters = inspect.signature(function).parameters
    positional = [
        name for name, each in parameters.items() if each.kind in (_EITHER, inspect.Parameter.POSITIONAL_ONLY)
    ]
    takes_more = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters.values())
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    for name in names:
        if name not in parameters and not takes_any:
            known = ", ".join(parameters)
            raise ValueError(f"jit of {name_of(function)}: {what} argument {name!r} is none of {known}")
    for number in numbers:
        if not takes_more and not -len(positional) <= number < len(positional):
            raise ValueError(
                f"jit of {name_of(function)}: {what} argument {number} is none of its {len(positional)} positions"
            )
    wanted = [number + len(positional) if number < 0 else number for number in numbers]
    positions = {*wanted, *(positional.index(name) for name in names if name in positional)}
    named = {name for i, name in enumerate(positional) if i in positions and parameters[name].kind is _EITHER}
    return frozenset({*names, *named}), frozenset(positions)


def _changed(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    nothing = object()
    return [name for name in sorted({*one, *other}) if one.get(name, nothing) != other.get(name, nothing)]


@contextmanager
def _refusing_random_numbers(name: str) -> Iterator[None]:
    """Refuses what draws numbers from NumPy's global generator meanwhile."""
    before = _random_position()
    yield
    if _random_position() != before:
        raise TracingError(
            f"{name} drew numbers from np.random while it was traced; they would be the same in every call. Pass "
            "random arrays as arguments, or draw from xlalite.default_rng(seed), whose seed may be an argument"
        )


def _random_position() -> object:
    """How far the global generator has come; None before anybody asked for it."""
    if "numpy.random" not in sys.modules:
        return None
    state: Any = np.random.get_state()
    return int(state[1][0]), state[2]


def _type_name(array: Array, leaf: Any) -> str:
    return f"{type(leaf).__name__} number" if type(leaf) in _NUMBERS else array.dtype.name


def _as_array(leaf: Any) -> Array:
    refuse_mask(leaf)
    array: Array = leaf if type(leaf) is np.ndarray else _of_other(leaf)
    if array.dtype.kind in "OSUMm":
        raise TracingError(f"cannot compile for an argument of type {type(leaf).__name__} ({array.dtype}): {leaf!r}")
    as_dtype(array.dtype)
    return array


def _of_other(leaf: Any) -> Array:
    """What is no array of NumPy's as one, without a copy where DLPack or the buffer protocol gives its memory."""
    if hasattr(leaf, "__dlpack__") and not hasattr(leaf, "__array__"):
        return np.from_dlpack(leaf)
    return np.asarray(leaf)


def _own_copy(leaf: Any) -> Any:
    """A traced array as it is now; one that is known takes traced indices and elements, too."""
    if isinstance(leaf, TracedArray):
        return leaf.copy()
    return TracedArray(None, known=leaf.copy()) if type(leaf) is np.ndarray else leaf


def _as_output(name: str, value: Any) -> Tensor:
    if isinstance(value, str | bytes):
        raise TracingError(f"{name} returned {value!r}; arrays, numbers and nestings of them are expected")
    if isinstance(value, np.ndarray | np.generic) and not is_numeric(value.dtype):
        raise TracingError(f"{name} returned an array of {value.dtype}; arrays of numbers are expected")
    return as_tensor(value)
