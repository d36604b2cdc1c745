"""Programs that call a routine of LAPACK as jax does, and matrices for them."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from halves import half_of

from xlalite.hlo.types.dtype import DType

LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}

_Size = TypeVar("_Size")


def call(routine: str, dtype: str, operands: dict[str, tuple[int, ...]], results: str, options: str = "") -> str:
    """A program with operands by name; results are a shape or a tuple's, `$T` being the type."""
    shapes = {name: f"{dtype}[{','.join(map(str, dims))}]" for name, dims in operands.items()}
    lines = "".join(f"  {name} = {shape} parameter({n})\n" for n, (name, shape) in enumerate(shapes.items()))
    return f"""HloModule m
ENTRY e {{
{lines}  ROOT r = {results.replace("$T", dtype)} custom-call({", ".join(shapes)}),
    custom_call_target="lapack_{LETTERS[dtype]}{routine}_ffi", api_version=API_VERSION_TYPED_FFI,
    backend_config={{{options}}}
}}"""


def listed(*sizes: int) -> str:
    return f"[{','.join(map(str, sizes))}]"


def matrices(rng: np.random.Generator, dtype: str, *dims: int) -> np.ndarray:
    numbers = rng.standard_normal(dims)
    return (numbers + 1j * rng.standard_normal(dims) if DType(dtype).is_complex else numbers).astype(DType(dtype).numpy)


def half_of_sizes(sizes: Sequence[_Size], dtype: str, half: int) -> Sequence[_Size]:
    """Half of the sizes for each type: all of them for real types together, and for complex ones."""
    return half_of(sizes, list(LETTERS).index(dtype), half)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))
