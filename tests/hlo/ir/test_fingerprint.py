"""Fingerprints and keys: what counts and what does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from xlalite.hlo.ir.fingerprint import fingerprint, instruction_key, structurally_equal
from xlalite.hlo.text import parse

TEXT = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[2,3] parameter(0)
  z = f32[] constant(0)
  n = f32[2,3] negate(x)
  ROOT r = f32[2] reduce(n, z), dimensions={1}, to_apply=add
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("HloModule m", "HloModule other"),
        ("z", "q"),
        ("add {", "plus {"),
        ("negate(x)", 'negate(x), metadata={op_name="a" source_line=3}'),
        ("  z = f32[] constant(0)\n  n = f32[2,3] negate(x)", "  n = f32[2,3] negate(x)\n  z = f32[] constant(0)"),
        ("f32[2,3] parameter", "f32[2,3]{1,0} parameter"),
    ],
)
def test_names_metadata_and_order_do_not_count(old: str, new: str) -> None:
    changed = TEXT.replace(old, new).replace("to_apply=add", "to_apply=plus" if "plus {" in new else "to_apply=add")
    assert changed != TEXT
    assert fingerprint(parse(changed)) == fingerprint(parse(TEXT))
    assert structurally_equal(parse(changed), parse(TEXT))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("negate(x)", "abs(x)"),
        ("f32[2,3]", "f32[2,4]"),
        ("constant(0)", "constant(-0.0)"),
        ("constant(0)", "constant(1)"),
        ("dimensions={1}", "dimensions={0}"),
        ("add(a, b)", "add(b, a)"),
        ("add(a, b)", "add(a, a)"),
        ("add(a, b)", "multiply(a, b)"),
        ("negate(x)", "negate(x), sharding={replicated}"),
        ("negate(x)", 'negate(x), backend_config="a"'),
        ("negate(x)", "negate(x), control-predecessors={z}"),
        ("negate(x)", "negate(x)\n  unused = f32[] negate(z)"),
        ("f32[2,3] parameter(0)", "f32[2,3] parameter(0)\n  y = f32[] parameter(1)"),
        ("HloModule m", "HloModule m, replica_count=2"),
        ("HloModule m", "HloModule m, is_scheduled=true"),
        ("HloModule m", "HloModule m, buffer_donor={ (0, {}) }"),
        ("f32[2,3] parameter", "f32[2,3]{0,1} parameter"),
    ],
)
def test_structure_counts(old: str, new: str) -> None:
    changed = TEXT.replace(old, new)
    if "dimensions={0}" in new:
        changed = changed.replace("f32[2] reduce", "f32[3] reduce")
    assert changed != TEXT
    assert fingerprint(parse(changed)) != fingerprint(parse(TEXT))


def test_sharing_counts() -> None:
    shared = parse("ENTRY e { x = f32[] parameter(0) n = f32[] negate(x) ROOT r = f32[] add(n, n) }")
    apart = parse("ENTRY e { x = f32[] parameter(0) n = f32[] negate(x) k = f32[] negate(x) ROOT r = f32[] add(n, k) }")
    assert fingerprint(shared) != fingerprint(apart)


def test_the_order_of_a_schedule_counts() -> None:
    lines = ("n = f32[] negate(x)", "k = f32[] abs(x)")
    texts = [
        f"HloModule m, is_scheduled=true\nENTRY e {{ x = f32[] parameter(0)\n{a}\n{b}\nROOT r = f32[] add(n, k) }}"
        for a, b in (lines, lines[::-1])
    ]
    assert fingerprint(parse(texts[0])) != fingerprint(parse(texts[1]))


def test_computations_of_different_modules_compare() -> None:
    one, other = parse(TEXT), parse(TEXT.replace("a =", "first =").replace("add(a,", "add(first,"))
    assert fingerprint(one.find("add")) == fingerprint(other.find("add"))
    assert fingerprint(one.find("add")) != fingerprint(one.entry_computation)


def test_one_instruction_counts_with_the_shapes_of_its_operands() -> None:
    text = (
        "ENTRY e { x = f32[2] parameter(0) y = f32[2] parameter(1) a = f32[2] add(x, "
        "y) b = f32[2] add(y, x) c = f32[2] add(x, x) ROOT t = (f32[2], f32[2], f32[2]) tuple(a, "
        "b, c) }"
    )
    a, b, c = parse(text).entry_computation.root.operands
    assert fingerprint(a) == fingerprint(b)
    assert fingerprint(a) != fingerprint(c)


def test_fingerprints_are_the_same_in_every_process() -> None:
    program = (
        f"from xlalite.hlo.text import parse\nfrom xlalite.hlo.ir.fingerprint import fingerprint\n"
        f"print(fingerprint(parse({TEXT!r})))"
    )
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()
    assert printed == fingerprint(parse(TEXT))


def test_keys_of_equal_instructions_are_equal() -> None:
    text = """ENTRY e { x = f32[2] parameter(0)
      a = f32[2] negate(x), metadata={op_name="one"}
      b = f32[2] negate(x), metadata={op_name="two"}
      c = f32[2] negate(x), sharding={replicated}
      d = f32[2]{0:T(128)} negate(x)
      ROOT t = (f32[2], f32[2], f32[2], f32[2]) tuple(a, b, c, d) }"""
    a, b, c, d = parse(text).entry_computation.root.operands
    keys = [instruction_key(one, one.operands) for one in (a, b, c, d)]
    assert keys[0] == keys[1]
    assert len({keys[0], keys[2], keys[3]}) == 3
    assert instruction_key(a, [1], ignore_annotations=True) == instruction_key(c, [1], ignore_annotations=True)
    assert instruction_key(a, [1], ignore_layout=True) == instruction_key(d, [1], ignore_layout=True)
    assert instruction_key(a, [1]) != instruction_key(a, [2])
