"""Every operation comes back identical from its canonical text; jaxlib's own reader agrees on the spelling."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from xlalite.hlo.fingerprint import fingerprint
from xlalite.hlo.ops import OPS
from xlalite.hlo.text import PRESETS, parse, parse_shape
from xlalite.hlo.verifier import verify

HERE = Path(__file__).parent
RECORDS = [
    line
    for line in (HERE / "op_records.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
COMPUTATIONS = {
    block.split(" ", 1)[0]: block
    for block in (HERE / "computations.txt").read_text(encoding="utf-8").strip().split("\n\n")
}
# The operands' text is not a list of operands.
SPECIAL = ("parameter", "constant")
# The result may have another element type, or more contexts, than what follows from the operands.
TYPE_IS_A_CHOICE = ("dot", "ragged-dot", "scaled-dot", "convolution", "async-start", "collective-permute-start")
OPCODE = re.compile(r" ([a-z][a-z0-9-]*)\(")


def opcode_of(record: str) -> str:
    match = OPCODE.search(record)
    assert match is not None, record
    return match[1]


def split_operands(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def module_text(record: str) -> str:
    """A module in the `short_parsable` spelling with the record as the entry's root."""
    opcode = opcode_of(record)
    at = record.index(f" {opcode}(")
    shape, rest = record[:at], record[at + len(opcode) + 2 :]
    depth, close = 1, 0
    while depth:
        depth += (rest[close] in "([{") - (rest[close] in ")]}")
        close += 1
    inside, attributes = rest[: close - 1], rest[close:]
    operands = [] if opcode in SPECIAL else split_operands(inside)
    parameters = [f"  p{i} = {operand} parameter({i})\n" for i, operand in enumerate(operands)]
    shapes = [shape] if opcode == "parameter" else operands
    called = [text for name, text in COMPUTATIONS.items() if re.search(rf"[={{ ]{name}\b", attributes)]
    layout = ", ".join(f"/*index={i}*/{shape}" if i and i % 5 == 0 else shape for i, shape in enumerate(shapes))
    words = inside if opcode in SPECIAL else ", ".join(f"p{i}" for i in range(len(operands)))
    return (
        f"HloModule m, entry_computation_layout={{({layout})->{shape}}}\n\n"
        + "".join(text + "\n\n" for text in called)
        + f"ENTRY main {{\n{''.join(parameters)}  ROOT r = {shape} {opcode}({words}){attributes}\n}}\n\n"
    )


DECLARED = [record for record in RECORDS if opcode_of(record) in OPS]


def test_every_operation_has_a_record() -> None:
    missing = sorted(set(OPS) - {opcode_of(record) for record in RECORDS})
    assert not missing, f"tests/hlo/text/op_records.txt has no line for {missing}"


@pytest.mark.parametrize("record", DECLARED)
def test_canonical_text_comes_back_identical(record: str) -> None:
    text = module_text(record)
    module = parse(text)
    verify(module)
    assert module.to_string("short_parsable") == text


@pytest.mark.parametrize("record", DECLARED)
def test_default_text_is_a_fixed_point(record: str) -> None:
    module = parse(module_text(record))
    text = str(module)
    again = parse(text)
    assert str(again) == text
    assert fingerprint(again) == fingerprint(module)


@pytest.mark.parametrize("record", DECLARED)
def test_operand_shapes_and_missing_percent_are_accepted(record: str) -> None:
    module = parse(module_text(record))
    for preset in PRESETS.values():
        if preset.ids and not preset.essential_constants and not preset.full_bodies:
            assert fingerprint(parse(module.to_string(preset))) == fingerprint(module)
    root = module.entry_computation.root
    if not root.called_computations and not root.backend_config:
        assert fingerprint(parse(module.to_string("canonical"))) == fingerprint(module)


@pytest.mark.parametrize("record", [record for record in DECLARED if not OPS[opcode_of(record)].explicit_shape])
def test_the_result_shape_may_be_left_out_where_it_follows(record: str) -> None:
    shape = record[: record.index(f" {opcode_of(record)}(")]
    _, body = module_text(record).split("\n", 1)
    inferred = parse("HloModule m\n" + body.replace(f"ROOT r = {shape} ", "ROOT r = ")).entry_computation.root.shape
    assert inferred.is_tuple == parse_shape(shape).is_tuple
    if opcode_of(record) not in TYPE_IS_A_CHOICE:
        assert inferred.compatible(parse_shape(shape))


@pytest.mark.oracle
@pytest.mark.parametrize("record", RECORDS)
def test_jaxlib_spells_it_the_same_way(record: str) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    text = module_text(record)
    try:
        module = hlo.hlo_module_from_text(text)
    except Exception as error:  # the oracle's own exception class
        pytest.skip(f"this jaxlib does not read it: {str(error)[:200]}")
    assert module.to_string(hlo.HloPrintOptions.short_parsable()) == text
