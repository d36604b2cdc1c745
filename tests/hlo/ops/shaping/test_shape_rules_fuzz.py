"""Shape rules meet whatever a text can say: they answer with a shape or a ShapeError, never with anything else."""

import dataclasses
import enum
import functools
import typing

import numpy as np
import pytest

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ir.op import OpDef
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.replica_groups import ReplicaGroups
from xlalite.hlo.types.shape import ProgramShape, Shape
from xlalite.hlo.types.window import Window, WindowDimension

TYPES = [DType.F32, DType.S32, DType.PRED, DType.BF16, DType.C64, DType.U8]


def random_shape(rng: np.random.Generator) -> Shape:
    choice = rng.random()
    if choice < 0.06:
        return Shape.token()
    if choice < 0.14:
        return Shape.tuple([random_shape(rng) for _ in range(int(rng.integers(0, 4)))])
    dims = rng.integers(0, 5, int(rng.integers(0, 4))).tolist()
    flags = (rng.random(len(dims)) < 0.5).tolist() if rng.random() < 0.1 else ()
    return Shape.array(TYPES[int(rng.integers(0, 3 if rng.random() < 0.8 else len(TYPES)))], dims, dynamic=flags)


def random_value(hint: object, rng: np.random.Generator) -> object:
    """A value of an attribute's declared type; numbers are small, and often out of range."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if len(parts) == 2 and parts[1] is Ellipsis:
            return tuple(random_value(parts[0], rng) for _ in range(int(rng.integers(0, 4))))
        return tuple(random_value(part, rng) for part in parts)
    if parts:
        return random_value(parts[int(rng.integers(len(parts)))], rng)
    if hint is type(None):
        return None
    if hint is bool:
        return bool(rng.integers(2))
    if hint is int:
        return int(rng.integers(-1, 4))
    if hint is float:
        return float(rng.standard_normal())
    if hint is str:
        return "text"
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        members = list(hint)
        return members[int(rng.integers(len(members)))]
    if hint is Window:
        rows = rng.integers(-1, 4, (int(rng.integers(0, 4)), 6)).tolist()
        return Window(tuple(WindowDimension(*row) for row in rows))
    if hint is ConvolutionDims:
        rank = int(rng.integers(0, 3))
        digits = [str(digit) for digit in range(rank)]
        return ConvolutionDims(*("".join(rng.permutation([*letters, *digits])) for letters in ("bf", "io", "bf")))
    if hint is ReplicaGroups:
        return ReplicaGroups(tuple(tuple(range(int(rng.integers(0, 3)))) for _ in range(int(rng.integers(0, 3)))))
    if hint is Shape:
        return random_shape(rng)
    if hint is Literal:
        return Literal(np.zeros(2, np.float32))
    raise AssertionError(f"no random values for attributes of type {hint}")


type_hints = functools.cache(typing.get_type_hints)


def random_attrs(op: OpDef, rng: np.random.Generator) -> object:
    hints = type_hints(op.attrs)
    return op.attrs(**{field.name: random_value(hints[field.name], rng) for field in dataclasses.fields(op.attrs)})


def random_programs(op: OpDef, operands: list[Shape], rng: np.random.Generator) -> list[ProgramShape]:
    """Signatures that sometimes fit: scalars of the operands' types, or the operands themselves."""
    count = len(op.calls.names) if op.calls.list_name is None else int(rng.integers(0, 4))
    scalars = [Shape.array(shape.dtype) if shape.is_array else shape for shape in operands]
    programs = []
    for _ in range(count):
        source = scalars if op.calls.applies_to_elements else operands
        parameters = source if rng.random() < 0.5 else source[: len(source) // 2] * 2
        results = [Shape.array(DType.PRED), *parameters, random_shape(rng)]
        programs.append(ProgramShape(tuple(parameters), results[int(rng.integers(len(results)))]))
    return programs


@pytest.mark.parametrize("name", sorted(OPS))
def test_shape_rules_raise_shape_errors_only(name: str) -> None:
    op, rng = OPS[name], np.random.default_rng(len(name))
    for _ in range(80):
        count = op.arity if op.arity is not None else int(rng.integers(0, 5))
        operands = [random_shape(rng) for _ in range(count)]
        if operands and rng.random() < 0.6:
            operands = [operands[0]] * count
        declared = None if rng.random() < 0.4 else random_shape(rng)
        try:
            shape = op.infer_shape(operands, random_attrs(op, rng), random_programs(op, operands, rng), declared)
        except ShapeError:
            continue
        assert isinstance(shape, Shape)
