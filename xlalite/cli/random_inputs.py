"""Makes up arguments for a module, and reads them from NumPy's files."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np

from xlalite.cli.index_ranges import largest_indices
from xlalite.cli.reading import InputError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Token, Value
from xlalite.hlo.types.shape import Shape

ARGUMENT, RESULT = "argument", "result"
"""How the names of arrays in files begin."""

_LARGEST_INTEGER = 100


def random_arguments(module: HloModule, generator: np.random.Generator, *, large_range: bool = False) -> list[Value]:
    """A value for each parameter of the entry; indices are in range where a parameter's integers become such."""
    limits = largest_indices(module)
    return [
        random_value(parameter.shape, generator, large_range=large_range)
        if number not in limits
        else _indices(parameter.shape, limits[number], generator)
        for number, parameter in enumerate(module.entry_computation.parameters)
    ]


def random_value(shape: Shape, generator: np.random.Generator, *, large_range: bool = False) -> Value:
    """A value of a shape: small numbers of both signs, or with `large_range` floating-point numbers of all sizes."""
    if shape.is_tuple:
        return tuple(random_value(element, generator, large_range=large_range) for element in shape.elements)
    if not shape.is_array:
        return Token()
    dtype = shape.dtype
    if dtype is DType.PRED:
        return generator.integers(0, 2, shape.dims).astype(np.bool_)
    if dtype.is_integral:
        return _integers(dtype, shape.dims, generator)
    if dtype.is_complex:
        return _complex_numbers(dtype, shape.dims, generator, large_range=large_range)
    return np.asarray(_floats(dtype, shape.dims, generator, large_range=large_range)).astype(dtype.numpy)


def read_arguments(path: str, shapes: tuple[Shape, ...], kind: str = ARGUMENT) -> list[Value]:
    """The arguments in an `.npy` file (one) or an `.npz` file: in its order, or those called `argument_0`, ....

    Args:
        path: The file.
        shapes: What they must have.
        kind: How their names begin where the file has others, too.

    Raises:
        InputError: It is no such file, or the arrays do not fit the parameters.
        OSError: It cannot be read.
    """
    if not all(shape.is_array for shape in shapes):
        raise InputError(f"{path}: only array parameters are read from files, found {_listed(shapes)}")
    arrays = _load(path, kind)
    found = [f"{array.dtype}{list(array.shape)}" for array in arrays]
    fits = len(arrays) == len(shapes) and all(
        array.shape == shape.dims and array.dtype.itemsize == shape.dtype.numpy.itemsize
        for array, shape in zip(arrays, shapes, strict=True)
    )
    if not fits:
        raise InputError(f"{path}: found {', '.join(found) or 'no arrays'}, expected {_listed(shapes)}")
    # NumPy's files do not know the narrow types: they come back as raw bytes.
    return [
        array.view(shape.dtype.numpy) if array.dtype.kind == "V" else array
        for array, shape in zip(arrays, shapes, strict=True)
    ]


def _indices(shape: Shape, largest: int, generator: np.random.Generator) -> Array:
    limits = ml_dtypes.iinfo(shape.dtype.numpy)  # type: ignore[no-untyped-call]
    highest = min(int(limits.max), largest)
    return generator.integers(0, highest, shape.dims, dtype=np.int64, endpoint=True).astype(shape.dtype.numpy)


def _integers(dtype: DType, dims: tuple[int, ...], generator: np.random.Generator) -> Array:
    limits = ml_dtypes.iinfo(dtype.numpy)  # type: ignore[no-untyped-call]
    low = max(int(limits.min), -_LARGEST_INTEGER)
    high = min(int(limits.max), _LARGEST_INTEGER)
    return generator.integers(low, high, dims, dtype=np.int64, endpoint=True).astype(dtype.numpy)


def _floats(dtype: DType, dims: tuple[int, ...], generator: np.random.Generator, *, large_range: bool) -> Array:
    limits = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    lowest = float(limits.min)  # positive where a type has no sign
    if not large_range:
        return generator.uniform(max(-1.0, lowest), 1.0, dims)
    exponents = generator.uniform(float(limits.minexp), float(limits.maxexp - 1), dims)
    signs = generator.choice([-1.0 if lowest < 0.0 else 1.0, 1.0], dims)
    return np.asarray(signs * np.exp2(exponents))


def _complex_numbers(
    dtype: DType, dims: tuple[int, ...], generator: np.random.Generator, *, large_range: bool
) -> Array:
    value = np.empty(dims, dtype.numpy)
    value.real = _floats(dtype.component, dims, generator, large_range=large_range)
    value.imag = _floats(dtype.component, dims, generator, large_range=large_range)
    return value


def save_values(path: str, arguments: Sequence[object], results: Sequence[object]) -> None:
    """Writes arguments and results, tuples as their arrays, into an `.npz` file for `read_arguments`."""
    named = {
        f"{kind}_{number}": np.asarray(array)
        for kind, values in ((ARGUMENT, arguments), (RESULT, results))
        for number, array in enumerate(_arrays(values))
    }
    np.savez(Path(path), **named)  # type: ignore[arg-type]  # its other option is a bool


def _arrays(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple):
        for part in value:
            yield from _arrays(part)
    elif not isinstance(value, Token):
        yield value


def _load(path: str, kind: str) -> list[Array]:
    try:
        with Path(path).open("rb") as file:  # NumPy leaves one open that is damaged
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return [loaded]
            named = [name for name in loaded.files if name.startswith(f"{kind}_")]
            has_kinds = any(name.startswith((f"{ARGUMENT}_", f"{RESULT}_")) for name in loaded.files)
            return [_plain(loaded[name]) for name in (named if has_kinds else loaded.files)]
    # What damaged archives make of NumPy's reader, which passes on whatever `zipfile` meets.
    except (ValueError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        reason = str(error).partition(". If you trust")[0]  # what NumPy says of its own options
        raise InputError(f"{path}: expected an .npy or .npz file of plain arrays: {reason}") from error


def _plain(array: object) -> Array:
    if not isinstance(array, np.ndarray):  # a file of another kind in the archive
        raise ValueError("it holds something else")
    return array


def _listed(shapes: tuple[Shape, ...]) -> str:
    return ", ".join(shape.text() for shape in shapes) or "none"
