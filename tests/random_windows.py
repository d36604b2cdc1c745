"""Gathers and scatters of any attributes, and arrays for them."""

import random
from dataclasses import dataclass

import numpy as np

from xlalite.hlo.types.dtype import DType


@dataclass(frozen=True)
class Windows:
    """Windows at positions that an array of indices gives: what a gather reads, what a scatter updates.

    Attributes:
        operand: Sizes of the array that has the windows.
        indices: Sizes of the indices.
        result: Sizes of a gather's result, of a scatter's updates.
        gather: Attributes of a gather.
        scatter: Attributes of a scatter.
    """

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    result: tuple[int, ...]
    gather: str
    scatter: str


def lists(numbers: list[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def sizes(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def any_windows(chance: random.Random) -> Windows:
    operand = [chance.choice((1, 3, 4, 17)) for _ in range(chance.randint(1, 4))]
    roles = [chance.choice(("dropped", "window", "window", "batching")) for _ in operand]
    windows = [1 if role != "window" else chance.randint(1, size) for role, size in zip(roles, operand, strict=True)]
    addressed = [d for d, role in enumerate(roles) if role != "batching" and chance.random() < 0.7]
    chance.shuffle(addressed)
    batch = [chance.choice((1, 2, 5, 19)) for _ in range(chance.randint(0, 2))]
    batching = [d for d, role in enumerate(roles) if role == "batching"]
    positions = list(range(len(batch) + len(batching)))
    chance.shuffle(positions)
    taken, rest = positions[: len(batching)], iter(batch)
    indices = [operand[batching[taken.index(p)]] if p in taken else next(rest) for p in sorted(positions)]
    outer, along = iter(list(indices)), list(taken)
    vector_dim = chance.randint(0, len(indices))
    if len(addressed) != 1 or vector_dim < len(indices) or chance.random() < 0.5:
        along = [p + (p >= vector_dim) for p in taken]
        indices.insert(vector_dim, len(addressed))
    kept = [size for size, role in zip(windows, roles, strict=True) if role == "window"]
    rank, inner = len(positions) + len(kept), iter(kept)
    offset = sorted(chance.sample(range(rank), len(kept)))
    dropped = lists([d for d, role in enumerate(roles) if role == "dropped"])
    return Windows(
        tuple(operand),
        tuple(indices),
        tuple(next(inner) if d in offset else next(outer) for d in range(rank)),
        f"offset_dims={lists(offset)}, start_index_map={lists(addressed)}, collapsed_slice_dims={dropped}, "
        f"operand_batching_dims={lists(batching)}, start_indices_batching_dims={lists(along)}, "
        f"index_vector_dim={vector_dim}, slice_sizes={lists(windows)}",
        f"update_window_dims={lists(offset)}, scatter_dims_to_operand_dims={lists(addressed)}, "
        f"inserted_window_dims={dropped}, input_batching_dims={lists(batching)}, "
        f"scatter_indices_batching_dims={lists(along)}, index_vector_dim={vector_dim}",
    )


def numbers(rng: np.random.Generator, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, 100, dims).astype(dtype.numpy)


def positions(rng: np.random.Generator, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    """Mostly in bounds, some beyond both ends, some as far as the type goes."""
    near = rng.integers(0 if not dtype.is_signed else -3, 7, dims)
    lowest = -(2 ** (dtype.bits - 1)) if dtype.is_signed else 0
    far = rng.choice(np.array([lowest, lowest + 2**dtype.bits - 1], object), dims)
    return np.where(rng.random(dims) < 0.1, far, near.astype(object)).astype(dtype.numpy)
