"""A model that can be called: compiled for each combination of shapes, and of values where shapes depend on them.

Where those values follow from much, the model runs in stages, each a model itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

import xlalite
from xlalite.backends.base import CompileOptions, Executable
from xlalite.hlo.errors import ArgumentError, LoweringError
from xlalite.hlo.evaluation.evaluator import Evaluator
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array
from xlalite.hlo.types.shape import Shape
from xlalite.interop.onnx.graph import (
    ModelProgram,
    OptionalType,
    OtherType,
    SequenceType,
    TensorType,
    ValueInfo,
    ValueType,
    read_model,
)
from xlalite.interop.onnx.importing import Argument, ImportedModule, Importer, Structure
from xlalite.interop.onnx.known_values import UnknownValueError
from xlalite.interop.onnx.stages import Stages, is_sized_by_values, stages_around
from xlalite.interop.onnx.tensors import ExternalData

Input: TypeAlias = "npt.ArrayLike | Sequence[Input] | None"
Output: TypeAlias = "Array | list[Output] | None"

_KEPT = 64
_MOST_BYTES_BY_VALUE = 4096


class OnnxModel:
    """An ONNX model as a function of arrays.

    Attributes:
        inputs: What it takes, in order.
        outputs: What it gives, in order.
        program: What was read.
    """

    def __init__(self, program: ModelProgram, backend: str = "cpu", options: CompileOptions | None = None) -> None:
        """Takes a model that was read; `load` reads one."""
        graph = program.graph
        self.inputs = tuple(info for info in graph.inputs if info.name not in graph.initializers)
        self.outputs = graph.outputs
        self.program = program
        self._backend, self._options = backend, options
        self._defaults = {info.name: info for info in graph.inputs if info.name in graph.initializers}
        self._by_value: frozenset[str] = frozenset()
        self._compiled: dict[object, _Compiled | _Staged] = {}
        self._staged: dict[int, _Staged] = {}

    def __call__(self, *arguments: Input, **named: Input) -> tuple[Output, ...]:
        """The outputs for inputs by position or by name.

        Raises:
            ArgumentError: They do not fit the model.
            LoweringError: The model has something that cannot be compiled.
        """
        if len(arguments) > len(self.inputs):
            raise ArgumentError(f"the model takes {len(self.inputs)} inputs, found {len(arguments)}")
        feeds = dict(zip((info.name for info in self.inputs), arguments, strict=False))
        twice = feeds.keys() & named.keys()
        if twice:
            raise ArgumentError(f"input {min(twice)!r} is given by position and by name")
        return tuple(self.run({**feeds, **named}).values())

    def run(self, feeds: Mapping[str, Input]) -> dict[str, Output]:
        """The outputs by name for inputs by name, which may be such that Python has no spelling for.

        Raises:
            ArgumentError: They do not fit the model.
            LoweringError: The model has something that cannot be compiled.
        """
        return self.run_checked(self._checked(feeds))

    def run_checked(self, values: Mapping[str, Output]) -> dict[str, Output]:
        """The outputs by name for arrays and sequences of the right types."""
        found = self._find(values)
        if isinstance(found, _Staged):
            every = found.run(values)
            return {info.name: every[info.name] for info in self.outputs}
        leaves = [leaf for name, value in values.items() if name not in self._by_value for leaf in _leaves(value)]
        results = found.executable(*leaves)
        assert isinstance(results, tuple), "the program gives a tuple"
        return _named(self.outputs, found.outputs, results)

    def module(self, sizes: Mapping[str, int] | None = None) -> HloModule:
        """The HLO module for the shapes that the model states.

        Args:
            sizes: Sizes of dimensions by the names that the model has for them; 1 for all others.

        Raises:
            UnknownValueError: Shapes depend on values of inputs.
            LoweringError: The model has something that cannot be compiled.
        """
        stated = sizes or {}
        unknown = stated.keys() - {dim for info in self.inputs for dim in _named_dims(info.type)}
        if unknown:
            raise ArgumentError(f"the model has no dimension {min(unknown)!r}")
        shapes = {info.name: _stated_shape(info, stated) for info in self.inputs}
        imported = self._import(shapes)
        if isinstance(imported, UnknownValueError):
            raise imported
        return imported.module

    def executable(self, *arguments: Input, **named: Input) -> Executable:
        """What is called for such inputs; explains itself as every executable does.

        Raises:
            LoweringError: There is more than one, for the model runs in stages.
        """
        feeds = dict(zip((info.name for info in self.inputs), arguments, strict=False))
        found = self._find(self._checked({**feeds, **named}))
        if isinstance(found, _Staged):
            raise LoweringError(f"the model runs in stages around {found.title}, which are programs of their own")
        return found.executable

    def _checked(self, feeds: Mapping[str, Input]) -> dict[str, Output]:
        """The inputs as arrays, in the model's order."""
        values: dict[str, Output] = {}
        for info in self.inputs:
            if info.name not in feeds and not isinstance(info.type, OptionalType):
                raise ArgumentError(f"input {info.name!r} is missing; the model takes {self._listed()}")
            values[info.name] = _value_of(info, info.type, feeds.get(info.name))
        for name in feeds.keys() - values.keys():
            if name not in self._defaults:
                raise ArgumentError(f"the model has no input {name!r}; it takes {self._listed()}")
            values[name] = _value_of(self._defaults[name], self._defaults[name].type, feeds[name])
        return values

    def _listed(self) -> str:
        return ", ".join(info.name for info in self.inputs) or "nothing"

    def _find(self, values: Mapping[str, Output]) -> _Compiled | _Staged:
        key = self._key(values)
        found = self._compiled.get(key)
        if found is not None:
            return found
        imported = self._import({name: _argument(value, name in self._by_value) for name, value in values.items()})
        while isinstance(imported, UnknownValueError):
            staged = self._stages(imported, values)
            if staged is not None:
                return self._kept(values, staged)
            if not imported.names:
                raise imported
            self._by_value |= imported.names
            imported = self._import({name: _argument(value, name in self._by_value) for name, value in values.items()})
        executable = xlalite.compile(imported.module, self._backend, self._options)
        return self._kept(values, _Compiled(executable, imported.outputs))

    def _kept(self, values: Mapping[str, Output], found: _Compiled | _Staged) -> _Compiled | _Staged:
        if len(self._compiled) >= _KEPT:
            del self._compiled[next(iter(self._compiled))]
        self._compiled[self._key(values)] = found
        return found

    def _stages(self, error: UnknownValueError, values: Mapping[str, Output]) -> _Staged | None:
        """The stages around the node that needs a value; None if the model is compiled by value instead."""
        size = sum(leaf.nbytes for name in error.names for leaf in _leaves(values[name]))
        if error.node is None or (size <= _MOST_BYTES_BY_VALUE and not is_sized_by_values(error.node)):
            return None
        number = id(error.node)
        if number not in self._staged:
            stages = stages_around(self.program, error.node)
            if stages is None:
                return None
            self._staged[number] = _Staged(stages, error.node.title, self._backend, self._options)
        return self._staged[number]

    def _import(self, arguments: Mapping[str, Argument]) -> ImportedModule | UnknownValueError:
        try:
            return Importer(self.program).run(arguments)
        except UnknownValueError as error:
            return error

    def _key(self, values: Mapping[str, Output]) -> object:
        return tuple((name, _key_of(value, name in self._by_value)) for name, value in values.items())


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What one combination of shapes became; the arguments whose values are in it are not passed."""

    executable: Executable
    outputs: tuple[Structure, ...]


class _Staged:
    """A model that runs in stages.

    Attributes:
        title: The node around which they lie.
    """

    def __init__(self, stages: Stages, title: str, backend: str, options: CompileOptions | None) -> None:
        self.title = title
        self._before, self._behind = (OnnxModel(each, backend, options) for each in (stages.before, stages.behind))
        self._evaluated = stages.evaluated

    def run(self, values: Mapping[str, Output]) -> dict[str, Output]:
        """The values by name, with those that the stages make."""
        found = {**values, **self._before.run_checked(_taken(self._before.program, values))}
        if self._evaluated is not None:
            imported = Importer(self._evaluated).run(_by_value(_taken(self._evaluated, found)))
            results = Evaluator().call(imported.module.entry_computation, ())
            assert isinstance(results, tuple), "the program gives a tuple"
            arrays = tuple(map(array_value, results))
            found.update(_named(self._evaluated.graph.outputs, imported.outputs, arrays))
        return {**found, **self._behind.run_checked(_taken(self._behind.program, found))}


def load(
    source: str | os.PathLike[str] | bytes, backend: str = "cpu", options: CompileOptions | None = None
) -> OnnxModel:
    """A model from a file or from its bytes; external data is read from the file's directory only.

    Args:
        source: The file's path, or its contents.
        backend: What compiles it: `cpu` or `interpreter`.
        options: How; by default as the flags in `XLALITE_FLAGS` say.

    Raises:
        ParseError: It is no ONNX model.
        OSError: The file cannot be read.
    """
    if isinstance(source, bytes):
        return model_of(source, None, backend, options)
    path = Path(source)
    return model_of(path.read_bytes(), path.parent, backend, options)


def model_of(
    data: bytes, directory: Path | None, backend: str = "cpu", options: CompileOptions | None = None
) -> OnnxModel:
    """A model from its bytes, with the directory in which its external data lies."""
    return OnnxModel(read_model(data, ExternalData(directory)), backend, options)


def _taken(program: ModelProgram, values: Mapping[str, Output]) -> dict[str, Output]:
    """The values that a program takes."""
    names = [*(info.name for info in program.graph.inputs), *program.graph.initializers]
    return {name: values[name] for name in names if name in values}


def _by_value(values: Mapping[str, Output]) -> dict[str, Argument]:
    return {name: _argument(value, by_value=True) for name, value in values.items()}


def _named(
    infos: Sequence[ValueInfo], structures: Sequence[Structure], results: tuple[Array, ...]
) -> dict[str, Output]:
    pairs = zip(infos, structures, strict=True)
    return {info.name: _assembled(structure, results) for info, structure in pairs}


def _named_dims(type_: ValueType) -> tuple[str, ...]:
    if not isinstance(type_, TensorType):
        return ()
    return tuple(dim for dim in type_.dims or () if isinstance(dim, str))


def _stated_shape(info: ValueInfo, sizes: Mapping[str, int]) -> Shape:
    if not isinstance(info.type, TensorType) or info.type.dims is None:
        raise LoweringError(f"input {info.name!r} has no shape of which a module could be made; call the model instead")
    dims = [sizes.get(dim, 1) if isinstance(dim, str) else 1 if dim is None else dim for dim in info.type.dims]
    return Shape.array(info.type.dtype, dims)


def _value_of(info: ValueInfo, type_: ValueType, value: object) -> Output:
    """An input as its type has it."""
    match type_:
        case OptionalType():
            return None if value is None else _value_of(info, type_.element, value)
        case SequenceType():
            if not isinstance(value, (list, tuple)):
                raise ArgumentError(f"input {info.name!r} is a sequence, found {type(value).__name__}")
            return [_value_of(info, type_.element, each) for each in value]
        case TensorType():
            return _array_of(info, type_, value)
        case OtherType():
            raise ArgumentError(f"input {info.name!r} cannot be given: {type_.name}")
        case _:
            assert_never(type_)


def _array_of(info: ValueInfo, type_: TensorType, value: object) -> Array:
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype != type_.dtype.numpy:
        if isinstance(value, (np.ndarray, np.generic)):
            raise ArgumentError(f"input {info.name!r} must be of type {type_.dtype.numpy}, found {array.dtype}")
        array = np.asarray(value, type_.dtype.numpy)
    dims = type_.dims
    if dims is not None and (
        len(dims) != array.ndim
        or any(isinstance(dim, int) and dim != size for dim, size in zip(dims, array.shape, strict=True))
    ):
        raise ArgumentError(f"input {info.name!r} must have sizes {list(dims)}, found {list(array.shape)}")
    return array


def _argument(value: Output, by_value: bool) -> Argument:
    if isinstance(value, list):
        return [_argument(each, by_value) for each in value]
    if value is None or by_value:
        return value
    return Shape.array(DType.from_numpy(value.dtype), value.shape)


def _key_of(value: Output, by_value: bool) -> object:
    if isinstance(value, list):
        return tuple(_key_of(each, by_value) for each in value)
    if value is None:
        return None
    return value.dtype, value.shape, value.tobytes() if by_value else b""


def _leaves(value: Output) -> list[Array]:
    if isinstance(value, list):
        return [leaf for each in value for leaf in _leaves(each)]
    return [] if value is None else [value]


def _assembled(structure: Structure, results: tuple[Array, ...]) -> Output:
    if isinstance(structure, list):
        return [_assembled(each, results) for each in structure]
    return None if structure is None else results[structure]
