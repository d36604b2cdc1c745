"""What the parser refuses: always a ParseError with the place, never anything else, and never late."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from xlalite.hlo.errors import ParseError, ShapeError
from xlalite.hlo.text import parse, parse_literal, parse_shape
from xlalite.hlo.types.limits import ParseLimits


def entry(body: str) -> str:
    return f"HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n{body}\n}}\n"


# (line of the entry, the part of it at which the caret stands, part of the message)
REFUSED = [
    ("  ROOT r = f32[2] ad(x, x)", "ad(", "unknown operation 'ad'; did you mean"),
    ("  ROOT r = f32[2] addd(x, x)", "addd(", "did you mean 'add'"),
    ("  ROOT r = f32[2] add(x, y)", "y)", "there is no instruction 'y' above"),
    ("  ROOT r = f32[2] add(x)", "add(", "takes 2 operands, found 1"),
    ("  ROOT r = f32[3] add(x, x)", "add(", "found result shape f32[3], expected f32[2]"),
    ("  ROOT r = f32[2] add(f32[3] x, x)", "f32[3]", "declared as f32[2]"),
    ("  ROOT r = f33[2] add(x, x)", "f33[2]", "f33[2]"),
    ("  x = f32[2] negate(x)", "x =", "already an instruction 'x'"),
    ("  ROOT r = f32[2] add(x, x), foo=1, foo=2", "foo=2", "given twice"),
    ("  ROOT r = f32[2] add(x, x), 5", "5", "an attribute like name=value"),
    ("  ROOT r = f32[2] add(x x)", "x)", "',' or ')'"),
    ("  ROOT r = f32[2] reverse(x)", "reverse(", "the attribute dimensions= is missing"),
    ("  ROOT r = f32[2,2] broadcast(x), dimensions=0", "0", "expected '{'"),
    ("  ROOT r = f32[2,2] broadcast(x), dimensions={a}", "a}", "expected an integer"),
    ("  ROOT r = f32[2] call(x), to_apply=f", "f", "there is no computation 'f' above"),
    ("  ROOT r = f32[2] call(x)", "call(", "the attribute to_apply= is missing"),
    ("  ROOT r = pred[2] compare(x, x), direction=XX", "XX", "expected one of EQ"),
    ("  ROOT r = s32[2] constant({1, 2.5})", "2.5", "an integer"),
    ("  ROOT r = s8[] constant(128)", "128", "from -128 to 127"),
    ("  ROOT r = f16[] constant(1e6)", "1e6", "a number in range"),
    ("  ROOT r = f32[2] constant({1, 2, 3})", "3}", "found 3 elements in dimension 0, expected 2"),
    ("  ROOT r = f32[2] constant({1})", "})", "found 1 elements in dimension 0, expected 2"),
    ("  ROOT r = f32[2] constant({{1}, {2}})", "{1}", "only 1 levels of braces"),
    ("  ROOT r = f32[2,1] constant({1, 2})", "1, 2", "'{' in a literal"),
    ("  ROOT r = constant(1)", "1)", "needs its shape"),
    ("  ROOT r = parameter(1)", "parameter", "the result shape must be written"),
    ("  ROOT r = f32[2] get-tuple-element(x#0), index=0", "x#0", "must be a tuple"),
    ("  ROOT r = f32[2]{1} negate(x)", "f32[2]{1}", "layout {1} does not order"),
    ("  ROOT r = f32[9999999999999999999] negate(x)", "f32[", "more than"),
    ('  ROOT r = f32[2] negate(x), metadata={op_name="a', '"a', "the string does not end"),
    ('  ROOT r = f32[2] negate(x), metadata={op_name="a\\q"}', "metadata", "escape"),
    ("  ROOT r = f32[2] negate(x), sharding={{replicated}", None, "the end of the text"),
    ("  ROOT r = f32[2] negate(x), control-predecessors={z}", "z}", "no instruction 'z'"),
    ("  ROOT r = f32[2] negate(x) /* end", "/*", "the comment does not end"),
    ("  ROOT r = f32[2] parameter(2)", None, "without gaps"),
    ("  ROOT r = f32[2] parameter(0)", "parameter", "already has parameter(0)"),
    ("  ROOT r = f32[2] negate(x)\n  ROOT q = f32[2] negate(x)", "ROOT q", "already an instruction marked ROOT"),
    ("  ROOT r = f32[2] slice(x), slice={[0:3]}", "slice(", "slice"),
]


@pytest.mark.parametrize(("body", "at", "message"), REFUSED)
def test_refused_lines_are_pointed_at(body: str, at: str | None, message: str) -> None:
    text = entry(body)
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert message in error.bare_message
    assert 1 <= error.line <= text.count("\n") + 1
    assert error.source_line == text.split("\n")[error.line - 1]
    if at is not None:
        assert at in error.source_line[error.column - 1 :]
    shown = str(error).splitlines()
    assert shown[0].startswith(f"line {error.line}, column {error.column}: ")
    assert shown[-1].strip() == "^"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("HloModule m", "no computation"),
        ("HloModule m\nENTRY e {}", "no instruction"),
        ("HloModule m\nENTRY a { ROOT x = f32[] parameter(0) }\nENTRY b { ROOT x = f32[] parameter(0) }", "ENTRY"),
        ("HloModule m\na { ROOT x = f32[] parameter(0) }\na { ROOT x = f32[] parameter(0) }", "already a computation"),
        ("HloModule m, is_scheduled=maybe\nENTRY a { ROOT x = f32[] parameter(0) }", "true or false"),
        ("HloModule m, a=1, a=1\nENTRY a { ROOT x = f32[] parameter(0) }", "given twice"),
        ("HloModule m\nENTRY a (x: f32[]) -> s32[] { ROOT x = f32[] parameter(0) }", "found result s32[]"),
        (
            "HloModule m, entry_computation_layout={(f32[2])->f32[]}\nENTRY a { ROOT x = f32[] parameter(0) }",
            "found f32[2], expected f32[]",
        ),
        (
            "HloModule m, entry_computation_layout={()->f32[]}\nENTRY a { ROOT x = f32[] parameter(0) }",
            "found 0 parameters",
        ),
        ("HloModule m, input_output_alias={ {}: 0 }\nENTRY a { ROOT x = f32[] parameter(0) }", "expected '('"),
        ("f32[2] add(x, y)", "there is no instruction"),
        ("s8[23] constant({1, 2", "the end of the text"),
        ("f32[2] add(f32[2] x, f32[2] y) extra", "the end of the text"),
        ("\x00", "operation"),
        ("\ud800", "operation"),
    ],
)
def test_refused_texts(text: str, message: str) -> None:
    with pytest.raises(ParseError, match="line") as caught:
        parse(text)
    assert message in caught.value.bare_message


def test_errors_of_lower_stages_become_parse_errors_and_stay_their_cause() -> None:
    with pytest.raises(ParseError) as caught:
        parse(entry("  y = f32[3] parameter(1)\n  ROOT r = f32[2] add(x, y)"))
    assert isinstance(caught.value.__cause__, ShapeError)
    assert caught.value.line == 5


def test_shapes_and_literals_end_where_they_should() -> None:
    with pytest.raises(ParseError, match="end of the text"):
        parse_shape("f32[2] f32[2]")
    with pytest.raises(ParseError, match="end of the text"):
        parse_literal("f32[] 1 2")


MANY = 100_000
HOSTILE = {
    "spaces": " " * MANY,
    "nul bytes": "\0" * MANY,
    "slashes": "/" * MANY,
    "open comments": "/*" * MANY,
    "open strings": '"\\' * MANY,
    "open metadata": 'metadata={"\\"' * MANY,
    "open braces": "{" * MANY,
    "open brackets": "[" * MANY,
    "nested shapes": "(" * MANY + "f32[]" + ")" * MANY,
    "nested instructions": "ENTRY e { ROOT r = f32[] " + "negate(" * MANY,
    "nested computations": "ENTRY e { ROOT r = f32[] " + "call(), to_apply={ x = f32[] " * 10_000,
    "nested literals": "ENTRY e { ROOT c = f32[1] constant(" + "{" * MANY,
    "elements of elements": "ENTRY e { x = () tuple() ROOT y = () tuple(x" + "#0" * MANY,
    "dimensions": "f32[" + "1," * MANY + "1] parameter(0)",
    "digits": "f32[" + "9" * MANY + "] parameter(0)",
    "a long line": "ENTRY e { " + "x" * 1_000_000 + " = f32[] bogus() }",
    "header": "HloModule m, " + "a={" * MANY,
    "labels": "b_" * MANY,
    "numbers": "1e-" * MANY,
    "first element": "ENTRY e { ROOT c = f32[100000,100000] constant(1) }",
    "elements": "ENTRY e { ROOT p = f32[4611686018427387904,4] iota(), iota_dimension=0 }",
    "bytes of elements": "ENTRY e { ROOT p = c128[4611686018427387904] parameter(0) }",
    "bytes of no elements": "ENTRY e { ROOT p = c128[4611686018427387904,0] parameter(0) }",
    "replica groups": "x = f32[] all-gather(f32[1] y), replica_groups=[1000000,1000000]<=[1000000000000]",
    "bytes": bytes(range(256)) * 100,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_refused_quickly(name: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ParseError) as caught:
        parse(HOSTILE[name])
    assert time.perf_counter() - start < 5
    assert len(str(caught.value)) < 20_000


@pytest.mark.parametrize("given", [None, 5, Path("a.hlo")])
def test_what_is_no_text_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=rf"a text or bytes are expected, found {type(given).__name__}"):
        parse(given)


def test_limits_can_be_set() -> None:
    text = "ENTRY e { ROOT c = ((f32[3])) parameter(0) }"
    parse(text)
    with pytest.raises(ParseError, match="nested more than 1 deep"):
        parse(text, limits=ParseLimits(nesting=1))
    with pytest.raises(ParseError, match="more than 2 elements"):
        parse("ENTRY e { ROOT c = f32[3] constant({1, 2, 3}) }", limits=ParseLimits(literal_elements=2))


def test_long_chains_of_calls_and_operands_need_no_recursion() -> None:
    chain = "\n".join(f"p{i + 1} = f32[] negate(p{i})" for i in range(3000))
    calls = "\n".join(
        f"c{i + 1} {{ p = f32[] parameter(0) ROOT q = f32[] call(p), to_apply=c{i} }}" for i in range(2000)
    )
    text = f"c0 {{ ROOT p = f32[] parameter(0) }}\n{calls}\nENTRY e {{ p0 = f32[] parameter(0)\n{chain}\n}}"
    module = parse(text)
    assert str(parse(str(module))) == str(module)


@pytest.mark.parametrize(
    "text",
    [
        f"ENTRY e {{ ROOT x = f32[2,3]{{{'9' * 5000},0}} parameter(0) }}",
        f"ENTRY e {{ x = f32[] parameter(0)\n ROOT y = f32[3] pad(x, x), padding={'9' * 5000}_1 }}",
        f"ENTRY e {{ x = f32[] parameter(0)\n ROOT y = reduce-window(x, x), window={{size=3 pad=0_{'9' * 5000}}} }}",
        f"ENTRY e {{ x = f32[] parameter(0)\n ROOT y = reduce-window(x, x), window={{size={'9' * 5000}}} }}",
    ],
)
def test_numbers_of_too_many_digits_are_refused(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert len(caught.value.bare_message) < 200


@pytest.mark.parametrize("letter", ["\ud800", "\x1b", "\x00", "\x85", b"\xff"])
def test_messages_quote_what_can_be_printed(letter: str | bytes) -> None:
    text = b"ENTRY e { x" + letter + b"= }" if isinstance(letter, bytes) else f"ENTRY e {{ x{letter}= }}"
    with pytest.raises(ParseError) as caught:
        parse(text)
    message, shown, caret = str(caught.value).encode().decode().split("\n")
    assert message.isprintable()
    assert shown.replace(" =", "\ufffd=") == "  ENTRY e { x\ufffd= }"
    assert caret.index("^") == shown.index("=") - 1
