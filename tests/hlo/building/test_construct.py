"""Instructions by their commonest constructors, loose and through a builder."""

import numpy as np
import pytest

from xlalite.hlo import Builder, DType, Shape, ShapeError
from xlalite.hlo.building import construct
from xlalite.hlo.ir.instruction import HloInstruction


@pytest.fixture
def x() -> HloInstruction:
    return construct.constant(np.zeros((1, 3), np.float32))


def test_where_nothing_is_to_be_done_the_operand_is_the_result(x: HloInstruction) -> None:
    zero = construct.scalar(0, DType.F32)
    assert construct.broadcast(x, (1, 3), (0, 1)) is x
    assert construct.broadcast(zero, ()) is zero
    assert construct.reshape(x, (1, 3)) is x
    assert construct.transpose(x, (0, 1)) is x
    assert construct.slice_of(x, [(0, 1, 1), (0, 3, 1)]) is x
    assert construct.pad(x, zero, [(0, 0, 7), (0, 0, 0)]) is x  # One element has no neighbour to keep away from.
    assert construct.concatenate([x], 1) is x
    assert construct.reverse(x, []) is x
    assert construct.convert(x, DType.F32) is x


def test_otherwise_there_is_an_operation(x: HloInstruction) -> None:
    zero = construct.scalar(0, DType.F32)
    made = [
        construct.broadcast(x, (3, 1), (1, 0)),
        construct.reshape(x, (3,)),
        construct.transpose(x, (1, 0)),
        construct.slice_of(x, [(0, 1, 1), (0, 3, 2)]),
        construct.pad(x, zero, [(0, 0, 0), (0, 0, 1)]),
        construct.concatenate([x, x], 0),
        construct.reverse(x, [1]),
        construct.convert(x, DType.S32),
        construct.dynamic_slice(x, [construct.scalar(0, DType.S32)] * 2, (1, 1)),
    ]
    assert [(one.opcode, str(one.shape)) for one in made] == [
        ("broadcast", "f32[3,1]{1,0}"),
        ("reshape", "f32[3]{0}"),
        ("transpose", "f32[3,1]{1,0}"),
        ("slice", "f32[1,2]{1,0}"),
        ("pad", "f32[1,5]{1,0}"),
        ("concatenate", "f32[2,3]{1,0}"),
        ("reverse", "f32[1,3]{1,0}"),
        ("convert", "s32[1,3]{1,0}"),
        ("dynamic-slice", "f32[1,1]{1,0}"),
    ]


def test_too_few_ranges_and_amounts_are_refused(x: HloInstruction) -> None:
    with pytest.raises(ShapeError, match="slice"):
        construct.slice_of(x, [(0, 1, 1)])
    with pytest.raises(ShapeError, match="pad"):
        construct.pad(x, construct.scalar(0, DType.F32), [(0, 0, 0)])


def test_integers_wrap_into_their_type() -> None:
    assert construct.scalar(-1, DType.U8).attrs.literal.value == 255
    assert construct.scalar(2**63, DType.S64).attrs.literal.value == -(2**63)


def test_builders_stretch_dimensions_of_size_one() -> None:
    builder = Builder("b")
    p = builder.parameter(Shape.array(DType.F32, (1, 3)))
    assert builder.broadcast_in_dim(p, (1, 3), (0, 1)).instruction is p.instruction
    wide = builder.broadcast_in_dim(p, (2, 5, 3), (1, 2))
    assert (wide.instruction.opcode, wide.instruction.attrs.dimensions) == ("broadcast", (2,))
    with pytest.raises(ShapeError, match="broadcast"):
        builder.broadcast_in_dim(p, (1, 4), (0, 1))


def test_builders_take_vectors_apart() -> None:
    builder = Builder("b")
    vector = builder.parameter(Shape.array(DType.S32, (2,)))
    assert [one.instruction.operand(0).attrs.slice for one in builder.scalars(vector)] == [((0, 1, 1),), ((1, 2, 1),)]
    single = builder.parameter(Shape.array(DType.S32, (1,)))
    assert builder.scalars(single)[0].instruction.operand(0) is single.instruction


def test_handles_of_another_builder_are_refused() -> None:
    builder, other = Builder("b"), Builder("other")
    p = other.parameter(Shape.array(DType.F32, (2,)))
    for make in (
        lambda: builder.reshape(p, (1, 2)),
        lambda: builder.op("negate", (p,)),
        lambda: builder.slice(p, [0], [2]),
    ):
        with pytest.raises(ShapeError, match=r"building b: operand .* belongs to another computation, other"):
            make()
    assert p.instruction.user_count == 0
