"""Operands that the kernel of a product computes while it packs: values, which are joined, what stays in memory."""

import itertools
from typing import Any

import numpy as np
import pytest
from computed_operands import OPERANDS, product_of_computed
from halves import HALVES, half_of

from xlalite.hlo import parse
from xlalite.passes.core.debug_options import DebugOptions

LAYOUTS = tuple(itertools.product((0, 1), repeat=2))


def whole(text: str, *, most: int = 4) -> list[np.ndarray]:
    """Arguments whose products have exact sums."""
    rng = np.random.default_rng(len(text))
    shapes = [parameter.shape for parameter in parse(text).entry_computation.parameters]
    return [np.asarray(rng.integers(0, most, shape.dims)).astype(shape.dtype.numpy) for shape in shapes]


def check_all(check: Any, kernels: Any, text: str, *, threads: int = 1) -> None:
    executable = check(text, *whole(text), optimize=False, num_threads=threads, use_cache=False)
    assert kernels(executable) == ["dot"], text
    (decision,) = [d for d in executable.decisions() if d.decided_by == "kernel planner"]
    assert "computed" in decision.numbers, text


@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("half", HALVES)
def test_operands_of_every_kind(check: Any, kernels: Any, kind: str, side: int, half: int) -> None:
    cases = tuple(itertools.product(LAYOUTS, ((17, 33, 10), (1, 65, 40), (40, 5, 66))))
    for contracted, sizes in half_of(cases, OPERANDS.index(kind) + side, half):
        check_all(check, kernels, product_of_computed(kind, "f32", sizes, side=side, contracted=contracted))


@pytest.mark.parametrize("t", ["f64", "bf16", "f16", "s8", "u16", "s32", "s64"])
def test_operands_of_every_type(check: Any, kernels: Any, t: str) -> None:
    for kind, side, contracted in itertools.product(("added", "scaled"), (0, 1), LAYOUTS):
        text = product_of_computed(kind, t, (13, 35, 22), side=side, contracted=contracted, stored="s4")
        check_all(check, kernels, text)


@pytest.mark.parametrize("stored", ["s4", "u8", "f8e4m3fn", "bf16", "pred"])
def test_operands_converted_from_every_type(check: Any, kernels: Any, stored: str) -> None:
    for side, contracted in itertools.product((0, 1), LAYOUTS):
        sizes = (9, 50, 31)
        check_all(
            check, kernels, product_of_computed("scaled", "f32", sizes, side=side, contracted=contracted, stored=stored)
        )


@pytest.mark.parametrize(
    ("t", "result"), [("s8", "s32"), ("u8", "s32"), ("bf16", "f32"), ("s4", "s32"), ("f16", "f32")]
)
def test_operands_that_are_packed_as_words(check: Any, kernels: Any, t: str, result: str) -> None:
    for side, contracted, sizes in itertools.product((0, 1), LAYOUTS, ((33, 50, 67),)):
        text = product_of_computed("added", t, sizes, side=side, contracted=contracted, result=result)
        check_all(check, kernels, text)


@pytest.mark.parametrize("sizes", [(40, 96, 1500), (3, 600, 900), (16, 40, 9000), (300, 20, 70), (5, 40, 4000)])
def test_pieces_of_work_and_of_depth(check: Any, kernels: Any, sizes: tuple[int, int, int]) -> None:
    for kind, side, contracted in itertools.product(("scaled", "moving"), (0, 1), LAYOUTS):
        check_all(check, kernels, product_of_computed(kind, "f32", sizes, side=side, contracted=contracted), threads=2)


def test_batches_and_what_follows_the_product(check: Any, kernels: Any) -> None:
    for kind, side, contracted in itertools.product(("scaled", "added", "padded", "moving"), (0, 1), LAYOUTS):
        text = product_of_computed(kind, "f32", (7, 40, 21), side=side, contracted=contracted, batch=3, after=True)
        check_all(check, kernels, text)


def test_results_are_the_same_for_any_number_of_threads(compile_text: Any) -> None:
    text = product_of_computed("scaled", "f32", (70, 300, 500))
    rng = np.random.default_rng(0)
    arguments = [np.asarray(rng.standard_normal(a.shape) * 9).astype(a.dtype) for a in whole(text)]
    found = [compile_text(text, num_threads=threads, use_cache=False)(*arguments) for threads in (1, 2, 5)]
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


DEQUANTISED = """HloModule m
ENTRY e {
  x = f32[1,1024] parameter(0)
  w = s8[1024,2048] parameter(1)
  s = f32[2048] parameter(2)
  f = f32[1024,2048] convert(w)
  b = f32[1024,2048] broadcast(s), dimensions={1}
  v = f32[1024,2048] multiply(f, b)
  ROOT d = f32[1,2048] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def verdicts(executable: Any) -> list[str]:
    return [f"{d.verdict}: {d.reason}" for d in executable.decisions() if d.decided_by == "dot-operand-fusion"]


def test_dequantised_weights_are_never_whole_in_memory(check: Any, kernels: Any) -> None:
    executable = check(DEQUANTISED, *whole(DEQUANTISED), use_cache=False)
    assert kernels(executable) == ["dot"]
    assert verdicts(executable) == ["joined: it is computed where it would be packed"]
    debug = DebugOptions(fuel=(("dot-operand-fusion", 0),))
    assert kernels(check(DEQUANTISED, *whole(DEQUANTISED), debug=debug, use_cache=False)) == ["loop", "dot"]


def test_narrow_numbers_for_few_rows_are_written_once(check: Any, kernels: Any) -> None:
    text = DEQUANTISED.replace("f32[", "bf16[").replace("2048", "1024")
    executable = check(text, *whole(text, most=2), use_cache=False)
    assert verdicts(executable) == ["not joined: an operand written once is as quick"]
    assert kernels(executable) == ["loop", "dot"]
    text = text.replace("bf16[1,", "bf16[8,")
    assert kernels(check(text, *whole(text, most=2), use_cache=False)) == ["dot"]


def test_a_slice_that_a_loop_counter_chooses_is_read_where_it_lies(check: Any, kernels: Any) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[1,512] parameter(0)
  w = f32[6,512,1024] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  v = f32[1,512,1024] dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,512,1024}
  r = f32[512,1024] reshape(v)
  ROOT d = f32[1,1024] dot(x, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    executable = check(text, *whole(text), use_cache=False)
    assert kernels(executable) == ["dot"]


def test_what_is_packed_often_is_written_once(check: Any, kernels: Any) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[512,256] parameter(0)
  w = f32[256,512] parameter(1)
  t = f32[512,256] tanh(x)
  ROOT d = f32[512,512] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    executable = check(text, *whole(text), use_cache=False, ulps=200)
    assert kernels(executable) == ["loop", "dot"]
    assert verdicts(executable) == ["not joined: writing the operand takes next to no time"]
    text = text.replace("256,512]", "256,64]").replace("[512,512]", "[512,64]")
    executable = check(text, *whole(text), use_cache=False, ulps=200)
    assert verdicts(executable) == ["not joined: an operand written once is as quick"]


def test_left_operands_that_are_packed_once_are_computed(check: Any, kernels: Any) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[3000,512] parameter(0)
  z = f32[3000,512] parameter(1)
  w = f32[512,6] parameter(2)
  s = f32[3000,512] multiply(x, z)
  ROOT d = f32[3000,6] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    executable = check(text, *whole(text), use_cache=False)
    assert kernels(executable) == ["dot"]


def test_what_others_read_stays_in_memory(check: Any, kernels: Any) -> None:
    text = DEQUANTISED.replace("ROOT d =", "d =").replace(
        "\n}", "\n  ROOT t = (f32[1,2048], f32[1024,2048]) tuple(d, v)\n}"
    )
    executable = check(text, *whole(text), use_cache=False)
    assert verdicts(executable) == []
    assert kernels(executable) == ["loop", "dot"]
