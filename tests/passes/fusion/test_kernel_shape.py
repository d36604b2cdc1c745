"""Which kernels there are for a computation, in which order, and what they walk over."""

import pytest

from xlalite.hlo.ops.control_flow import FusionKind
from xlalite.hlo.text import parse
from xlalite.passes.fusion.domain import Domain, Place
from xlalite.passes.fusion.kernel_shape import KernelKind, KernelShape, kernel_shapes

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
TURNED_DOT = """x = f32[4,5] parameter(0)
 y = f32[5,6] parameter(1)
 d = f32[4,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ROOT r = f32[6,4] transpose(d), dimensions={1,0}"""
SUMMED = """x = f32[4,5] parameter(0)
 z = f32[] constant(0)
 t = f32[4,5] tanh(x)
 ROOT r = f32[%s] reduce(t, z), dimensions={%d}, to_apply=add"""


def shapes_of(body: str, fusion_kind: FusionKind | None = None) -> list[KernelShape]:
    module = parse(f"HloModule m\n{ADD}ENTRY e {{ {body} }}")
    return list(kernel_shapes(module.entry_computation, fusion_kind))


@pytest.mark.parametrize(
    ("fusion_kind", "kinds"),
    [
        (None, [KernelKind.TRANSPOSE, KernelKind.DOT, KernelKind.LOOP]),
        (FusionKind.OUTPUT, [KernelKind.DOT, KernelKind.TRANSPOSE, KernelKind.LOOP]),
        (FusionKind.LOOP, [KernelKind.TRANSPOSE, KernelKind.DOT, KernelKind.LOOP]),
    ],
)
def test_the_kind_of_a_fusion_comes_first_and_a_loop_last(
    fusion_kind: FusionKind | None, kinds: list[KernelKind]
) -> None:
    assert [shape.kind for shape in shapes_of(TURNED_DOT, fusion_kind)] == kinds


def test_reductions_of_the_minor_dimension_are_rows() -> None:
    shape, loop = shapes_of(SUMMED % ("4", 1))
    places = {instruction.name: place for instruction, place in shape.places.items()}
    assert (shape.kind, shape.domain, loop.kind) == (KernelKind.ROW, Domain((4, 5), (1,)), KernelKind.LOOP)
    assert places == {"r": Place.ROW, "t": Place.FULL, "x": Place.FULL, "z": Place.SCALAR}


def test_reductions_of_other_dimensions_are_columns() -> None:
    shape, _ = shapes_of(SUMMED % ("5", 0))
    assert (shape.kind, shape.domain) == (KernelKind.COLUMN, Domain((4, 5), (0,)))


def test_an_update_in_place_walks_over_the_update() -> None:
    shape, _ = shapes_of(
        """x = f32[100,100] parameter(0)
 u = f32[2,3] parameter(1)
 i = s32[] parameter(2)
 ROOT r = f32[100,100] dynamic-update-slice(x, u, i, i)"""
    )
    assert (shape.kind, shape.domain) == (KernelKind.UPDATE, Domain((2, 3)))


def test_a_transpose_that_keeps_the_minor_dimension_is_a_loop() -> None:
    kinds = [
        s.kind for s in shapes_of("x = f32[4,5,6] parameter(0)\n ROOT r = f32[5,4,6] transpose(x), dimensions={1,0,2}")
    ]
    assert kinds == [KernelKind.LOOP]
