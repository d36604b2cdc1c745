"""Constants whose values a text leaves out, or says once: they take no memory until somebody asks."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from xlalite.hlo.errors import LiteralError
from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.spelling.cursor import TokenCursor
from xlalite.hlo.text import parse, parse_literal, parse_shape
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.limits import ParseLimits
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.verification.verifier import verify


def peak_bytes(run: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ELIDED = "".join(f" c{i} = f32[100000000] constant({{...}})\n" for i in range(50))
ZEROS = "".join(f" z{i} = f32[16777216] constant(0)\n" for i in range(50))


def test_values_that_are_left_out_take_no_memory() -> None:
    def run() -> None:
        module = parse(f"ENTRY e {{\n{ELIDED} ROOT r = f32[] parameter(0) }}")
        verify(module)
        assert str(module).count("{...}") == module.to_string("lossless").count("{...}") == 50
        fingerprint(module)
        one, other = (module.entry_computation.find(name).attrs for name in ("c0", "c1"))
        assert one == other
        assert hash(one) == hash(other)

    assert peak_bytes(run) < 2_000_000


def test_zeros_that_are_said_once_take_no_memory() -> None:
    def run() -> None:
        module = parse(f"ENTRY e {{\n{ZEROS} ROOT r = f32[] parameter(0) }}")
        verify(module)
        assert str(module).count("{...}") == 50
        assert module.entry_computation.find("z0").attrs == module.entry_computation.find("z1").attrs

    assert peak_bytes(run) < 2_000_000


def test_values_that_are_left_out_are_made_when_asked_for() -> None:
    literal = parse_literal("{...}", parse_shape("bf16[3,1000000]"))
    assert peak_bytes(lambda: literal.value) < 6_000_000 + 2_000_000
    assert literal.value.shape == (3, 1_000_000)
    assert len(np.unique(literal.value.astype(np.float32))) > 200
    assert literal.is_elided
    assert literal != Literal(literal.value, literal.shape)
    cursor = TokenCursor("{...}", ParseLimits(literal_elements=10))
    with pytest.raises(LiteralError, match=r"f32\[11\] were left out of the text; .* 11 elements are more than 10"):
        _ = cursor.literal(parse_shape("f32[11]")).value


def test_a_broadcast_scalar_goes_on_taking_the_memory_of_a_scalar() -> None:
    one = Literal(np.broadcast_to(np.float32(2.5), (1000, 1000)))
    large = Shape.array(DType.F32, (1 << 15, 1 << 15))
    assert peak_bytes(lambda: Literal(np.broadcast_to(2.5, large.dims), large)) < 10_000
    full = Literal(np.full((1000, 1000), 2.5, np.float32))
    assert one == full
    assert hash(one) == hash(full)
    assert one.is_all(2.5)
    assert not one.is_all(2)
    assert one != Literal(np.broadcast_to(np.float32(-2.5), (1000, 1000)))
    assert one.value.tobytes() == full.value.tobytes()
