"""Convolutions and products of matrices of any attributes, sizes, types and layouts, and arrays for them."""

import random
from dataclasses import dataclass

import numpy as np

from xlalite.hlo.types.dtype import DType

TYPES = (
    ("f32", "f32", "f32"),
    ("f32", "f32", "f32"),
    ("f64", "f64", "f64"),
    ("bf16", "bf16", "bf16"),
    ("bf16", "bf16", "f32"),
    ("f16", "f16", "f16"),
    ("f8e4m3fn", "f8e4m3fn", "f32"),
    ("s8", "s8", "s32"),
    ("u8", "s8", "s32"),
    ("s4", "s4", "s4"),
    ("s16", "s8", "s32"),
    ("bf16", "f32", "f32"),
    ("u4", "f16", "f32"),
    ("s32", "s32", "s32"),
    ("u16", "u16", "u16"),
    ("c64", "c64", "c64"),
    ("pred", "pred", "pred"),
)
"""Types of both operands and of the result."""


@dataclass(frozen=True)
class Product:
    """An operation on two arrays.

    Attributes:
        text: A module that computes it.
        lhs: Sizes of the first operand.
        rhs: Sizes of the second.
        types: Types of both, and of the result.
    """

    text: str
    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    types: tuple[str, str, str]

    def arguments(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Small whole numbers, of which sums are exact."""
        return [
            rng.integers(0, 2 if dtype == "pred" else 4, sizes).astype(DType(dtype).numpy)
            for sizes, dtype in zip((self.lhs, self.rhs), self.types, strict=False)
        ]


def any_product(chance: random.Random) -> Product:
    """A convolution more often than a dot."""
    types = chance.choice(TYPES)
    return any_dot(chance, types) if chance.random() < 0.3 else any_convolution(chance, types)


def any_convolution(chance: random.Random, types: tuple[str, str, str], *, largest: int = 24) -> Product:
    """One convolution, of few or of many features in one or several groups, with any window."""
    space = chance.choice((0, 1, 1, 2, 2, 3))
    fields: list[list[str]] = [[], [], [], [], [], []]
    inputs, kernels, outputs = [], [], []
    for _ in range(space):
        size = chance.choice((1, 4, 7) if space == 3 else (1, 4, 7, 13, largest))
        window, stride = chance.choice((1, 2, 3, 3, 5, size)), chance.choice((1, 1, 1, 2, 3))
        low, high = chance.choice((0, 1, 2, -1)), chance.choice((0, 1, 3, -1))
        base, dilation, reversal = chance.choice((1, 1, 1, 1, 2, 3)), chance.choice((1, 1, 2)), chance.choice((0, 0, 1))
        room = low + (size - 1) * base + 1 + high - ((window - 1) * dilation + 1)
        if room < 0:
            low, room = low - room, 0
        inputs.append(size)
        kernels.append(window)
        outputs.append(room // stride + 1)
        for field, text in zip(fields, (window, stride, f"{low}_{high}", base, dilation, reversal), strict=True):
            field.append(str(text))
    names = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")
    window_text = " ".join(f"{name}={'x'.join(field)}" for name, field in zip(names, fields, strict=True))
    groups = chance.choice((1, 1, 2, 3, 20))
    kind = chance.choice(("feature", "batch"))
    batch, features = chance.choice((1, 2)), chance.choice((1, 1, 3, 10))
    result_features = groups * chance.choice((1, 1, 2, 3, 9))
    sizes = {"b": batch * (groups if kind == "batch" else 1), "f": features * (groups if kind == "feature" else 1)}
    kernel_sizes = {"i": features, "o": result_features}
    result_sizes = {"b": batch, "f": result_features}
    labels, dims = [], []
    usual = chance.choice((None, "last", "first"))
    for letters, known, spatial in (
        ("bf", sizes, inputs),
        ("io", kernel_sizes, kernels),
        ("bf", result_sizes, outputs),
    ):
        digits = [str(number) for number in range(space)]
        order = [*letters, *digits]
        if usual is None:
            chance.shuffle(order)
        elif usual == "last":
            order = [*digits, *letters] if letters == "io" else [letters[0], *digits, letters[1]]
        elif letters == "io":
            order = ["o", "i", *digits]
        labels.append("".join(order))
        dims.append(tuple(known[one] if one in known else spatial[int(one)] for one in order))
    window = f"window={{{window_text}}}, " if space else ""
    attributes = f"{window}dim_labels={labels[0]}_{labels[1]}->{labels[2]}, {kind}_group_count={groups}"
    return _product("convolution", types, (dims[0], dims[1], dims[2]), attributes)


def any_dot(chance: random.Random, types: tuple[str, str, str]) -> Product:
    """One dot with its dimensions in any order."""
    batch, contracted, rows, columns = (
        [chance.choice(sizes) for _ in range(chance.choice(counts))]
        for sizes, counts in (
            ((1, 2, 3), (0, 0, 1, 2)),
            ((1, 3, 8, 17, 65), (0, 1, 1, 2)),
            ((1, 2, 7, 16, 33), (0, 1, 1, 2)),
            ((1, 2, 7, 16, 49), (0, 1, 1, 2)),
        )
    )
    sides = []
    for free in (rows, columns):
        order = list(range(len(batch) + len(contracted) + len(free)))
        chance.shuffle(order)
        known = [*batch, *contracted, *free]
        place = {number: position for position, number in enumerate(order)}
        found = [place[number] for number in range(len(batch) + len(contracted))]
        # What is left keeps its order.
        rest = sorted(place[number] for number in range(len(found), len(known)))
        sizes = [0] * len(known)
        for number, position in enumerate([*found, *rest]):
            sizes[position] = known[number]
        sides.append((tuple(sizes), found[: len(batch)], found[len(batch) :]))
    (lhs, lhs_batch, lhs_contracted), (rhs, rhs_batch, rhs_contracted) = sides
    attributes = ", ".join(
        f"{name}={{{','.join(map(str, numbers))}}}"
        for name, numbers in (
            ("lhs_batch_dims", lhs_batch),
            ("lhs_contracting_dims", lhs_contracted),
            ("rhs_batch_dims", rhs_batch),
            ("rhs_contracting_dims", rhs_contracted),
        )
    )
    return _product("dot", types, (lhs, rhs, (*batch, *rows, *columns)), attributes)


def _product(opcode: str, types: tuple[str, str, str], dims: tuple[tuple[int, ...], ...], attributes: str) -> Product:
    lhs, rhs, result = (f"{t}[{','.join(map(str, sizes))}]" for t, sizes in zip(types, dims, strict=True))
    text = f"""HloModule m
ENTRY e {{
  x = {lhs} parameter(0)
  k = {rhs} parameter(1)
  ROOT r = {result} {opcode}(x, k), {attributes} }}"""
    return Product(text, dims[0], dims[1], types)
