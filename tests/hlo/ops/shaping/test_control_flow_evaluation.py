"""while, conditional, call, fusion."""

from collections.abc import Callable

import numpy as np
import pytest

from xlalite.hlo.errors import ParseError, ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.control_flow import FusionKind
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import ProgramShape, Shape

Run = Callable[..., np.ndarray]

COUNTER = """HloModule counter
cond { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  i1 = s32[] add(i, one)
  v1 = f32[4] add(v, v)
  ROOT t = (s32[], f32[4]) tuple(i1, v1) }
ENTRY e { v0 = f32[4] parameter(0)
  k = s32[] parameter(1)
  init = (s32[], f32[4]) tuple(k, v0)
  w = (s32[], f32[4]) while(init), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1 }
"""


@pytest.mark.parametrize(("start", "rounds"), [(0, 10), (7, 3), (10, 0), (99, 0)])
def test_while_runs_until_the_condition_fails(run: Run, start: int, rounds: int) -> None:
    v = np.array([1, 2, -3, 0], np.float32)
    np.testing.assert_array_equal(run(COUNTER, v, np.int32(start)), v * 2.0**rounds)


BRANCHES = """HloModule branches
zero { p = f32[] parameter(0)  ROOT r = f32[] negate(p) }
one { p = f32[2] parameter(0)  c = f32[] constant(11)  ROOT r = f32[] add(c, c) }
two { p = (f32[], f32[]) parameter(0)  ROOT r = f32[] get-tuple-element(p), index=1 }
ENTRY e { i = s32[] parameter(0)
  a = f32[] parameter(1)
  b = f32[2] broadcast(a), dimensions={}
  c = (f32[], f32[]) tuple(a, a)
  ROOT r = f32[] conditional(i, a, b, c), branch_computations={zero, one, two} }
"""


@pytest.mark.parametrize(("index", "expected"), [(0, -5), (1, 22), (2, 5), (3, 5), (-1, 5), (2**31 - 1, 5)])
def test_conditional_by_index_takes_the_last_branch_when_out_of_range(run: Run, index: int, expected: float) -> None:
    assert run(BRANCHES, np.int32(index), np.float32(5)) == expected


def test_conditional_by_predicate(run: Run) -> None:
    text = """HloModule m
yes { p = s32[] parameter(0)  ROOT r = s32[] add(p, p) }
no { p = s32[] parameter(0)  ROOT r = s32[] negate(p) }
ENTRY e { c = pred[] parameter(0)
  x = s32[] parameter(1)
  ROOT r = s32[] conditional(c, x, x), true_computation=yes, false_computation=no }"""
    assert run(text, np.array(True), np.int32(4)) == 8
    assert run(text, np.array(False), np.int32(4)) == -4


def test_call_and_fusion_run_their_computation(run: Run) -> None:
    text = """HloModule m
f { p = f32[3] parameter(0)
  q = f32[3] parameter(1)
  ROOT r = f32[3] subtract(p, q) }
g { p = f32[3] parameter(0)
  q = f32[3] parameter(1)
  ROOT r = f32[3] multiply(p, q) }
ENTRY e { x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  c = f32[3] call(x, y), to_apply=f
  ROOT r = f32[3] fusion(c, y), kind=kLoop, calls=g }"""
    x, y = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
    np.testing.assert_array_equal(run(text, x, y), (x - y) * y)


def test_fusion_kind_is_read() -> None:
    module = parse(
        "HloModule m\nf { p = f32[3] parameter(0)  ROOT r = f32[3] negate(p) }\n"
        "ENTRY e { x = f32[3] parameter(0)  ROOT r = f32[3] fusion(x), kind=kOutput, calls=f,"
        " output_to_operand_aliasing={{}: (0, {})} }"
    )
    attrs = module.entry_computation.root.attrs
    assert attrs.kind is FusionKind.OUTPUT
    assert attrs.output_to_operand_aliasing == (((), 0, ()),)


def test_an_unknown_fusion_kind_is_a_parse_error() -> None:
    with pytest.raises(ParseError, match="fusion kind: found 'kMagic', expected one of kLoop, kInput"):
        parse(
            "HloModule m\nf { p = f32[3] parameter(0)  ROOT r = f32[3] negate(p) }\n"
            "ENTRY e { x = f32[3] parameter(0)  ROOT r = f32[3] fusion(x), kind=kMagic, calls=f }"
        )


F, S, P = Shape.array(DType.F32), Shape.array(DType.S32), Shape.array(DType.PRED)


@pytest.mark.parametrize(
    ("opcode", "operands", "called", "message"),
    [
        ("while", [F], [ProgramShape((F,), S), ProgramShape((F,), F)], r"condition gives s32\[\], expected pred\[\]"),
        ("while", [F], [ProgramShape((F,), P), ProgramShape((F,), S)], r"body gives s32\[\], the loop's state is f32"),
        ("while", [F], [ProgramShape((S,), P), ProgramShape((F,), F)], r"condition takes \(s32\[\]\), it is given"),
        ("while", [F], [ProgramShape((F,), P)], "body is missing"),
        ("conditional", [F, F], [ProgramShape((F,), F)], r"operand 0 must be pred\[\] or s32\[\], found f32\[\]"),
        ("conditional", [P, F], [ProgramShape((F,), F)], "a predicate chooses between 2 computations, found 1"),
        ("conditional", [S, F], [ProgramShape((F,), F)] * 2, "2 branches need as many operands besides operand 0"),
        (
            "conditional",
            [S, F, F],
            [ProgramShape((F,), F), ProgramShape((F,), S)],
            r"branch 1 gives s32\[\], branch 0 gives f32\[\]",
        ),
        ("call", [F, F], [ProgramShape((F,), F)], r"to_apply takes \(f32\[\]\), it is given \(f32\[\], f32\[\]\)"),
    ],
)
def test_signatures_are_checked(opcode: str, operands: list, called: list, message: str) -> None:
    op = OPS[opcode]
    with pytest.raises(ShapeError, match=message):
        op.infer_shape(operands, op.attrs(), called)


def test_fusion_declares_the_shape_of_its_root() -> None:
    with pytest.raises(ShapeError, match=r"the fused computation gives f32\[\], declared is s32\[\]"):
        OPS["fusion"].infer_shape([F], None, [ProgramShape((F,), F)], S)
