"""The short spelling of asynchronous operations is used where it says everything."""

from __future__ import annotations

import pytest

from xlalite.hlo.errors import ParseError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.fingerprint import structurally_equal
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify

NEGATE = "{ p = f32[2] parameter(0)\n ROOT n = f32[2] negate(p) }"


def module(body: str, operands: str, shape: str, done: str = "async-done(s)", inner: str = "inner") -> str:
    listed = ", ".join(shape for _ in operands.split(",") if operands)
    parameter = f"a = {shape} parameter(0)\n " if operands else ""
    return (
        f"HloModule m\n{inner} {body}\nENTRY e {{ {parameter}"
        f"s = (({listed}), {shape}, u32[]) async-start({operands}), calls={inner}\n ROOT d = {shape} {done} }}"
    )


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (module(NEGATE, "a", "f32[2]"), True),
        (module("{ ROOT i = u32[4] iota(), iota_dimension=0 }", "", "u32[4]"), True),
        (module("{ ROOT c = u32[] constant(2) }", "", "u32[]"), False),
        (module("{ ROOT p = f32[2] parameter(0) }", "a", "f32[2]"), False),
        (module("{ p = f32[2,3]{0,1} parameter(0)\n ROOT n = f32[2,3]{0,1} negate(p) }", "a", "f32[2,3]"), False),
        (
            module("{ p = f32[2] parameter(0)\n ROOT n = f32[2] negate(p), sharding={replicated} }", "a", "f32[2]"),
            False,
        ),
    ],
)
@pytest.mark.parametrize("preset", ["default", "short_parsable", "lossless"])
def test_what_is_written_is_read_as_the_same(text: str, short: bool, preset: str) -> None:
    given = parse(text)
    verify(given)
    written = given.to_string(preset)
    assert ("async-start" not in written) is (short and preset != "lossless")
    again = parse(written)
    verify(again)
    assert structurally_equal(again, given)


def test_a_constant_that_is_waited_for_has_its_value() -> None:
    assert evaluate(parse(str(parse(module("{ ROOT c = u32[] constant(2) }", "", "u32[]"))))) == 2


@pytest.mark.parametrize("word", ["constant-start", "parameter-start", "constant-done"])
def test_operations_without_a_short_spelling_have_none(word: str) -> None:
    with pytest.raises(ParseError, match=f"unknown operation '{word}'"):
        parse(f"ENTRY e {{ ROOT s = ((), u32[], u32[]) {word}() }}")


@pytest.mark.parametrize(
    "done", ["async-done(s), calls=inner", 'async-done(s), async_execution_thread="main", calls=%inner']
)
def test_what_an_end_repeats_is_not_written(done: str) -> None:
    given = parse(module(NEGATE, "a", "f32[2]", done))
    assert given.entry_computation.root.extra_attributes == ()
    assert "%d = f32[2]{0} negate-done(%s)\n" in str(given)


@pytest.mark.parametrize(
    ("done", "message"),
    [
        ("async-done(s), calls={ p = f32[2] parameter(0)\n ROOT n = f32[2] abs(p) }", "names another computation"),
        ('async-done(s), async_execution_thread="other"', "names another thread than that of 's'"),
    ],
)
def test_what_an_end_says_otherwise_is_refused(done: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(module(NEGATE, "a", "f32[2]", done))


@pytest.mark.oracle
@pytest.mark.parametrize("done", ["async-done(s), calls=inner", "negate-done(s)", "async-done(s)"])
def test_xla_reads_what_is_written(done: str) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    for preset in ("default", "short_parsable", "lossless"):
        text = parse(module(NEGATE, "a", "f32[2]", done)).to_string(preset)
        assert "negate-done(%s)" in hlo.hlo_module_from_text(text).to_string()
