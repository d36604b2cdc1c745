"""NumPy's names for `xlalite.numpy`, and for functions that are traced: what they make can be assigned to.

An array that `np.zeros` makes has values, and no argument of a traced function can be put into it. In place of NumPy
such a function therefore sees these names, whose new arrays become traced as soon as that happens.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy

from xlalite.framework.structure import flatten, rebuild
from xlalite.tracing import array_api, scipy_functions, stand_ins
from xlalite.tracing.functions import rule_of
from xlalite.tracing.functions.sized import SIZED
from xlalite.tracing.promotion import contains_traced, traced_array
from xlalite.tracing.side_by_side import Concatenation
from xlalite.tracing.state import is_tracing
from xlalite.tracing.traced_array import TracedArray, as_known

CREATING = frozenset(
    {
        *(
            "arange",
            "array",
            "asanyarray",
            "asarray",
            "ascontiguousarray",
            "asfortranarray",
            "empty",
            "eye",
            "full",
            "fromfunction",
            "identity",
            "indices",
        ),
        *("linspace", "logspace", "geomspace", "ones", "tri", "zeros"),
        *("bartlett", "blackman", "fftfreq", "hamming", "hanning", "kaiser", "rfftfreq"),
        *("zeros_like", "ones_like", "full_like", "empty_like", "copy", "diag_indices", "tril_indices", "triu_indices"),
    }
)
_CONVERTING = (numpy.array, numpy.asanyarray, numpy.asarray, numpy.ascontiguousarray, numpy.asfortranarray)
_ABOUT_TYPES = frozenset(
    {
        *("can_cast", "common_type", "iscomplexobj", "isrealobj", "may_share_memory", "min_scalar_type", "ndim"),
        *("result_type", "shape", "shares_memory", "size"),
    }
)
"""Functions that look at no element: NumPy's own serve."""
_OF_SEQUENCES = frozenset(
    {
        *("apply_along_axis", "apply_over_axes", "block", "choose", "column_stack", "concat", "concatenate", "dstack"),
        *("einsum", "einsum_path", "histogramdd", "hstack", "lexsort", "multi_dot", "piecewise", "ravel_multi_index"),
        *("select", "stack", "vstack"),
    }
)
"""Functions that NumPy asks us about when a list holds traced arrays; lists that are given to others are arrays."""
_METHODS = ("accumulate", "outer", "reduce", "reduceat")
_ARRAY_API = ("__array_api_version__", "__array_namespace_info__", "__all__")


class Namespace(ModuleType):
    """A module of NumPy in which new arrays can be assigned to while a function is traced.

    Args:
        name: The module's public name.
        module: NumPy's.
        compiles: Whether a function that is called while nothing is traced is compiled.
    """

    def __init__(self, name: str, module: ModuleType, compiles: bool) -> None:
        super().__init__(name, module.__doc__)
        self._module = module
        self._compiles = compiles

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _ARRAY_API:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(self._module, name)
        made = found
        key = self._module, name
        if self._compiles and key in array_api.CONSTANT:
            made = array_api.CONSTANT[key]
        elif self._compiles and key in array_api.COMPILED:
            made = _Compiled(array_api.COMPILED[key])
        elif name in CREATING and self._module in (numpy, numpy.fft):
            made = _creating(found)
        elif name in SIZED and self._module is numpy:
            made = _sized(found, SIZED[name])
        elif name in stand_ins.NAMES and self._module is numpy and not (self._compiles and rule_of(found)):
            made = stand_ins.NAMES[name]
        elif isinstance(found, ModuleType) and name in ("fft", "linalg"):
            made = Namespace(f"{self.__name__}.{name}", found, self._compiles)
        elif name in ("c_", "r_"):
            made = Concatenation(found)
        elif name in _ABOUT_TYPES:
            pass
        elif isinstance(found, numpy.ufunc) or (callable(found) and rule_of(found) is not None):
            taken = found if name in _OF_SEQUENCES else _OfLists(found)
            made = _Compiled(taken) if self._compiles else taken
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return dir(self._module)


TRACED = Namespace("numpy", numpy, False)
"""What a function that is traced sees in NumPy's place."""


def with_these_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, in whose text, and in that of functions of its module that it names, these names stand for NumPy's.

    Functions that assign global names, or are none of Python, stay as they are.
    """
    seen: Callable[..., Any] = _seeing(function, {})
    return seen


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called, also one some of whose arguments are given."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def _seeing(function: Any, made: dict[Callable[..., Any], Callable[..., Any]]) -> Any:
    if isinstance(function, functools.partial):
        return functools.partial(_seeing(function.func, made), *function.args, **function.keywords)
    if isinstance(function, types.MethodType):
        return types.MethodType(_seeing(function.__func__, made), function.__self__)
    if not isinstance(function, types.FunctionType) or _assigns_global_names(function.__code__):
        return function
    if function in made:
        return made[function]
    names = dict(function.__globals__)
    cells = tuple(
        cell if _as_seen(content := _content(cell), function, None) is content else types.CellType()
        for cell in function.__closure__ or ()
    )
    found = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells or None)
    found.__kwdefaults__ = function.__kwdefaults__
    made[function] = found
    used = _global_names(function.__code__)
    names.update({name: _as_seen(value, function, made) for name, value in names.items() if name in used})
    for cell, own in zip(function.__closure__ or (), cells, strict=True):
        if own is not cell:
            own.cell_contents = _as_seen(_content(cell), function, made)
    return found


def _as_seen(value: Any, function: types.FunctionType, made: dict[Any, Any] | None) -> Any:
    """NumPy as these names; arrays as ones with known elements, which take traced indices and elements; functions."""
    if value is numpy:
        return TRACED
    if (of_scipy := scipy_functions.as_seen(value)) is not None:
        return of_scipy
    if type(value) is numpy.vectorize and is_tracing():
        return stand_ins.Vectorized(value)
    if type(value) is numpy.ndarray and value.dtype.kind in "biufc" and is_tracing():
        return TracedArray(None, known=value.copy())
    is_own = isinstance(value, types.FunctionType) and value.__module__ == function.__module__ and is_tracing()
    if not is_own or hasattr(value, "__wrapped__"):
        return value
    return TRACED if made is None else _seeing(value, made)


def _global_names(code: types.CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return {*code.co_names}.union(*map(_global_names, inner))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _assigns_global_names(code: types.CodeType) -> bool:
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    is_here = dis.opmap["STORE_GLOBAL"] in code.co_code[::2]  # an instruction is two bytes
    return is_here or any(map(_assigns_global_names, inner))


def _creating(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def create(*arguments: Any, **options: Any) -> Any:
        if not is_tracing():
            return function(*arguments, **options)
        if function in _CONVERTING and contains_traced(arguments[:1]):
            return _array(*arguments, **options)
        if function is numpy.full and contains_traced((*arguments[1:2], options.get("fill_value"))):
            return _full(*arguments, **options)
        return as_known(function(*arguments, **options))

    return create


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> TracedArray:
    """`numpy.full` of a traced value."""
    value = traced_array(fill_value) if dtype is None else traced_array(fill_value).astype(dtype)
    made: Any = numpy.broadcast_to(value, shape)
    return made.copy()  # type: ignore[no-any-return]


def _sized(function: Callable[..., Any], with_size: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def sized(*arguments: Any, **options: Any) -> Any:
        return (with_size if options.get("size") is not None else function)(*arguments, **options)

    return sized


class _OfLists:
    """A function of NumPy that takes lists of traced arrays, too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._function, name)
        return _OfLists(found) if name in _METHODS and isinstance(self._function, numpy.ufunc) else found

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        named = {name: value if name == "out" else _as_array(value) for name, value in options.items()}
        return self._function(*map(_as_array, arguments), **named)


def _as_array(value: Any) -> Any:
    return traced_array(value) if isinstance(value, list | tuple) and contains_traced(value) else value


def _array(value: Any, dtype: Any = None, *, copy: bool | None = True, **others: Any) -> TracedArray:
    """`numpy.array` of a traced array, or of lists that hold some."""
    made: TracedArray = traced_array(value)
    if dtype is not None:
        return made.astype(dtype)
    return made.copy() if made is value and copy else made


class _Written(NamedTuple):
    """What a function gives that wrote to arguments: each of them that it gives stands there as {number: array}."""

    result: Any
    arrays: dict[int, Any]


def _with_given(result: Any, given: Sequence[Any]) -> Any:
    """The result with the caller's arrays in the places of those that were written."""
    if isinstance(result, dict):
        return given[next(iter(result))]
    return tuple([_with_given(each, given) for each in result]) if isinstance(result, tuple) else result


class _Compiled:
    """A function of NumPy that is compiled for each combination of arrays; everything else is static.

    What it writes to arguments, as to `out`, is copied to the caller's arrays.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._programs: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        leaves, structure = flatten((arguments, options), none_is_leaf=True)
        is_array = tuple([isinstance(leaf, numpy.ndarray) for leaf in leaves])
        if is_tracing() or not any(is_array):
            return self._function(*arguments, **options)
        fixed = tuple([None if found else leaf for found, leaf in zip(is_array, leaves, strict=True)])
        key = structure, is_array, tuple([(type(each), each) for each in fixed])
        if key not in self._programs:
            self._programs[key] = self._program(structure, is_array, fixed)
        given = [leaf for found, leaf in zip(is_array, leaves, strict=True) if found]
        result = self._programs[key](*given)
        if not isinstance(result, _Written):
            return result
        for number, array in result.arrays.items():
            numpy.copyto(given[number], array)
        return _with_given(result.result, given)

    def _program(self, structure: Any, is_array: tuple[bool, ...], fixed: tuple[Any, ...]) -> Callable[..., Any]:
        from xlalite.tracing.jit import jit

        def traced(*arrays: Any) -> Any:
            given = iter(arrays)
            values = [next(given) if found else leaf for found, leaf in zip(is_array, fixed, strict=True)]
            positional, named = rebuild(structure, values)
            result = self._function(*positional, **named)
            written = {id(each): number for number, each in enumerate(arrays) if each._version}
            if not written:
                return result
            leaves, form = flatten(result)
            marked = [{written[id(each)]: each} if id(each) in written else each for each in leaves]
            return _Written(rebuild(form, marked), {number: arrays[number] for number in written.values()})

        traced.__name__ = self._function.__name__
        return jit(traced)
