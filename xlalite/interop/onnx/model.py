"""A model that can be called: compiled for each combination of shapes, and of values where shapes depend on them."""

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
from xlalite.hlo.ir.module import HloModule
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
from xlalite.interop.onnx.tensors import ExternalData

Input: TypeAlias = "npt.ArrayLike | Sequence[Input] | None"
Output: TypeAlias = "Array | list[Output] | None"

_KEPT = 64


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What one combination of shapes became; the arguments whose values are in it are not passed."""

    executable: Executable
    outputs: tuple[Structure, ...]


class OnnxModel:
    """An ONNX model as a function of arrays.

    Attributes:
        inputs: What it takes, in order.
        outputs: What it gives, in order.
    """

    def __init__(self, program: ModelProgram, backend: str = "cpu", options: CompileOptions | None = None) -> None:
        """Takes a model that was read; `load` reads one."""
        graph = program.graph
        self.inputs = tuple(info for info in graph.inputs if info.name not in graph.initializers)
        self.outputs = graph.outputs
        self._program = program
        self._backend, self._options = backend, options
        self._defaults = {info.name: info for info in graph.inputs if info.name in graph.initializers}
        self._by_value: frozenset[str] = frozenset()
        self._compiled: dict[object, _Compiled] = {}

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
        values = self._checked(feeds)
        compiled = self._find(values)
        leaves = [leaf for name, value in values.items() if name not in self._by_value for leaf in _leaves(value)]
        results = compiled.executable(*leaves)
        assert isinstance(results, tuple), "the program gives a tuple"
        return {
            info.name: _assembled(structure, results)
            for info, structure in zip(self.outputs, compiled.outputs, strict=True)
        }

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
        """What is called for such inputs; explains itself as every executable does."""
        feeds = dict(zip((info.name for info in self.inputs), arguments, strict=False))
        return self._find(self._checked({**feeds, **named})).executable

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

    def _find(self, values: Mapping[str, Output]) -> _Compiled:
        key = self._key(values)
        found = self._compiled.get(key)
        if found is not None:
            return found
        imported = self._import({name: _argument(value, name in self._by_value) for name, value in values.items()})
        while isinstance(imported, UnknownValueError):
            if not imported.names:
                raise imported
            self._by_value |= imported.names
            imported = self._import({name: _argument(value, name in self._by_value) for name, value in values.items()})
        if len(self._compiled) >= _KEPT:
            del self._compiled[next(iter(self._compiled))]
        executable = xlalite.compile(imported.module, self._backend, self._options)
        found = self._compiled[self._key(values)] = _Compiled(executable, imported.outputs)
        return found

    def _import(self, arguments: Mapping[str, Argument]) -> ImportedModule | UnknownValueError:
        try:
            return Importer(self._program).run(arguments)
        except UnknownValueError as error:
            return error

    def _key(self, values: Mapping[str, Output]) -> object:
        return tuple((name, _key_of(value, name in self._by_value)) for name, value in values.items())


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
