"""Every operation comes back identical from its canonical text; jaxlib's own reader agrees on the spelling."""

from __future__ import annotations

from typing import Any

import pytest

from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.ops import OPS
from xlalite.hlo.text import PRESETS, parse, parse_shape
from xlalite.hlo.verification.verifier import verify

# What this jaxlib (0.10) does not read, though its printer may write it, and with which words.
REFUSED_BY_XLA = {
    "atan": "Unknown opcode: atan",
    "pad": "expects padding config",  # of a scalar: there is nothing to write
    "async-update": "expect a single async op as their operand",
    "async-done": "expect a single async op as their operand",
}
# The result may have another element type, or more contexts, than what follows from the operands.
TYPE_IS_A_CHOICE = ("dot", "ragged-dot", "scaled-dot", "convolution", "async-start", "collective-permute-start")


def test_every_operation_has_a_record(records: list[Any]) -> None:
    missing = sorted(set(OPS) - {record.opcode for record in records})
    assert not missing, f"tests/hlo/text/op_records.txt has no line for {missing}"


def test_canonical_text_comes_back_identical(record: Any) -> None:
    module = parse(record.text)
    verify(module)
    assert module.to_string("short_parsable") == record.text


def test_default_text_is_a_fixed_point(record: Any) -> None:
    module = parse(record.text)
    again = parse(str(module))
    assert str(again) == str(module)
    assert fingerprint(again) == fingerprint(module)


def test_operand_shapes_and_missing_percent_are_accepted(record: Any) -> None:
    module = parse(record.text)
    for preset in PRESETS.values():
        if preset.ids and not preset.essential_constants and not preset.full_bodies:
            assert fingerprint(parse(module.to_string(preset))) == fingerprint(module)
    root = module.entry_computation.root
    if not root.called_computations and not root.backend_config:
        assert fingerprint(parse(module.to_string("canonical"))) == fingerprint(module)


def test_the_result_shape_may_be_left_out_where_it_follows(inferable: Any) -> None:
    _, body = inferable.text.split("\n", 1)
    shortened = "HloModule m\n" + body.replace(f"ROOT r = {inferable.shape} ", "ROOT r = ")
    inferred = parse(shortened).entry_computation.root.shape
    assert inferred.is_tuple == parse_shape(inferable.shape).is_tuple
    if inferable.opcode not in TYPE_IS_A_CHOICE:
        assert inferred.compatible(parse_shape(inferable.shape))


@pytest.mark.oracle
def test_jaxlib_spells_it_the_same_way(record: Any) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    try:
        module = hlo.hlo_module_from_text(record.text)
    except Exception as error:  # the oracle's own exception class
        expected = REFUSED_BY_XLA.get(record.opcode)
        if expected is None or expected not in str(error):
            raise
        pytest.skip(expected)
    assert module.to_string(hlo.HloPrintOptions.short_parsable()) == record.text
