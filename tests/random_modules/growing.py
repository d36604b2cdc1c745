"""Grows whole modules: which operation comes next, and what becomes of what nobody used."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from random_modules import control, elementwise, products, reducing, shaping
from random_modules.grower import Grower, random_dtype
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.shape import Shape

MOST_ELEMENTS = 1500
DEEPEST = 2

Maker = Callable[[Grower], Handle]


def grow_more(grow: Grower, operations: int, opcodes: Sequence[str] = ()) -> None:
    """Adds random operations, of the given ones or of all."""
    for _ in range(operations):
        opcode = grow.chance.choice(opcodes) if opcodes else _opcode(grow)
        made = MAKERS[opcode](grow)
        if all(leaf.element_count <= MOST_ELEMENTS for _, leaf in made.shape.leaves()):
            grow.keep(made)


def _opcode(grow: Grower) -> str:
    """One of a family chosen by weight; no rejection, since hypothesis may choose the same for ever."""
    families = _FAMILIES if grow.depth < DEEPEST else _FAMILIES[:-1]
    family = grow.chance.choice([opcodes for opcodes, weight in families for _ in range(weight)])
    return grow.chance.choice(family)


_CONTROL = control.Control(grow_more, tuple(elementwise.MAKERS))
MAKERS: dict[str, Maker] = {
    **elementwise.MAKERS,
    **shaping.MAKERS,
    **reducing.MAKERS,
    **products.MAKERS,
    **control.MAKERS,
    **_CONTROL.makers(),
}
# What other makers make along with their own operation.
MADE_ALONG = {
    "after-all": "add-dependency",
    **{
        f"{opcode}-{end}": opcode
        for opcode in ("all-gather", "all-reduce", "collective-permute")
        for end in ("start", "done")
    },
    "async-done": "async-start",
    "async-update": "async-start",
    "copy-done": "copy-start",
    "get-tuple-element": "tuple",
}
_OTHER_DEVICES = "takes values from other devices: tests/hlo/evaluation/test_spmd.py"
_HOST = "talks to the host"
_RUN_TIME_SIZES = "has sizes known at run time only"
_RANDOM = "differs from run to run"
NOT_MADE = {
    "ragged-all-to-all": _OTHER_DEVICES,
    **dict.fromkeys(("infeed", "outfeed", "recv", "recv-done", "send", "send-done"), _HOST),
    "dynamic-reshape": _RUN_TIME_SIZES,
    **dict.fromkeys(("rng", "rng-get-and-update-state"), _RANDOM),
    "custom-call": "means what its target means",
}  # fmt: skip
_FAMILIES: tuple[tuple[tuple[str, ...], int], ...] = (
    (tuple(elementwise.MAKERS), 20),
    (("convert", "add", "multiply", "select", "compare"), 10),
    (tuple(shaping.MAKERS), 20),
    (tuple(reducing.MAKERS), 14),
    (("reduce",), 6),
    (tuple(products.MAKERS), 8),
    (tuple(control.MAKERS), 4),
    (tuple(_CONTROL.makers()), 10),
)


def make_random_module(chance: random.Random, operations: int, opcodes: Sequence[str] = ()) -> HloModule:
    """A valid module of about as many operations, of the given ones or of all; most values are used or results."""
    builder = Builder("random")
    grow = Grower(chance, builder)
    dims = grow.dims()
    for _ in range(chance.randint(1, 3)):
        grow.parameter(Shape.array(random_dtype(chance), dims if chance.random() < 0.6 else grow.dims()))
    grow_more(grow, operations, opcodes)
    unused = [value for value in grow.values if not value.instruction.users]
    chance.shuffle(unused)
    outputs = unused[:8] or grow.values[-1:]
    if len(outputs) == 1 and chance.random() < 0.7:
        return builder.build_module(outputs[0])
    return builder.build_module(builder.tuple(outputs))
