"""Texts that are wrong: each error says where and what; no text does more harm than an error."""

from __future__ import annotations

import random
import time

import pytest

from xlalite.hlo.errors import ParseError
from xlalite.hlo.text import parse

GOOD = """module @m {
  func.func public @main(%a: tensor<2x3xf32>, %i: tensor<i32>) -> tensor<2xf32> {
    %z = stablehlo.constant dense<[0.0, 1.0]> : tensor<2xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1]
      : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %1 = "stablehlo.case"(%i) ({
      stablehlo.return %0 : tensor<2xf32>
    }, {
      %5 = stablehlo.add %0, %z : tensor<2xf32>
      stablehlo.return %5 : tensor<2xf32>
    }) : (tensor<i32>) -> tensor<2xf32>
    %2:2 = stablehlo.while(%x = %i, %y = %1) : tensor<i32>, tensor<2xf32>
    cond {
      %k = stablehlo.constant dense<3> : tensor<i32>
      %6 = stablehlo.compare LT, %x, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %k = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %x, %k : tensor<i32>
      stablehlo.return %6, %y : tensor<i32>, tensor<2xf32>
    }
    return %2#1 : tensor<2xf32>
  }
}
"""


def body(line: str, result: str = "tensor<f32>") -> str:
    return f"func.func @main(%x: tensor<f32>, %v: tensor<4xf32>) -> {result} {{\n  {line}\n  return %0 : {result}\n}}\n"


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("%0 = stablehlo.frobnicate %x : tensor<f32>", 8, "the operation stablehlo.frobnicate is not supported"),
        ("%0 = torch.add %x : tensor<f32>", 8, "the operation torch.add is not supported"),
        ("%0 = stablehlo.add %x, %y : tensor<f32>", 8, "there is no value %y"),
        ("%0 = stablehlo.add %x : tensor<f32>", 8, "takes 2 operands, found 1"),
        ("%0 = stablehlo.add %x, %v : tensor<f32>", 8, "stablehlo.add"),
        (
            "%0 = stablehlo.negate %v : (tensor<f32>) -> tensor<f32>",
            8,
            "the operands are (f32[4]), the types say (f32[])",
        ),
        ("%0 = stablehlo.negate %v : tensor<f32>", 8, "gives (f32[4]), the types say (f32[])"),
        ("%x = stablehlo.negate %x : tensor<f32>", 8, "there is already a value %x"),
        ("%0 = stablehlo.negate %x : tensor<?xf32>", 30, "has a size that is not known"),
        ("%0 = stablehlo.negate %x : tensor<*xf32>", 30, "without a rank"),
        ("%0 = stablehlo.negate %x : tensor<f33>", 30, "is no type of an array"),
        ("%0 = stablehlo.negate %x : tensor<99999999999999999999xf32>", 30, "too large"),
        ("%0 = stablehlo.negate %x : tensor<4294967296x4294967296xf32>", 30, "too many elements"),
        ("%0 = stablehlo.negate %x tensor<f32>", 28, "expected ','"),
        ("%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<3xf32>", 27, "the lists do not have the sizes of f32[3]"),
        ("%0 = stablehlo.constant dense<one> : tensor<f32>", 27, "could not convert string to float"),
        ("%0 = stablehlo.constant dense<300> : tensor<i8>", 27, "300 is out of range for s8"),
        ("%0 = stablehlo.constant dense<0x1FFFFFFFF> : tensor<f32>", 27, "has more bits than f32"),
        ('%0 = stablehlo.constant dense<"0x0102"> : tensor<f32>', 27, "found 2 bytes, f32[] needs 4"),
        ("%0 = stablehlo.constant dense_resource<blob> : tensor<4xf32>", 27, "the constant is left out of the text"),
        ("%0 = stablehlo.iota dim = 3 : tensor<4xf32>", 8, "stablehlo.iota"),
        ("%0 = stablehlo.transpose %v, dims = [0, 0] : (tensor<4xf32>) -> tensor<4xf32>", 8, "stablehlo.transpose"),
        ("%0 = stablehlo.compare XX, %x, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>", 8, "cannot be 'XX'"),
        ('%0 = "stablehlo.iota"() : () -> tensor<4xf32>', 8, "needs the attribute iota_dimension"),
        ("%0 = call @g(%x) : (tensor<f32>) -> tensor<f32>", 8, "there is no function @g"),
        ("%0 = call @main(%x, %v) : (tensor<f32>, tensor<4xf32>) -> tensor<f32>", -1, "@main calls itself"),
        ('%0 = stablehlo.negate %x {a = "open : tensor<f32>', 33, "the string does not end"),
    ],
)
def test_errors_say_where_and_what(line: str, column: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(body(line))
    assert message in str(caught.value)
    if column >= 0:
        assert (caught.value.line, caught.value.column) == (2, column)
        assert "^" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module @m {\n}", "the module has no function"),
        ("module @m {", "found the end of the text"),
        ("func.func @f() { return }\nfunc.func @g() { return }", "none is @main"),
        ("func.func @f() { return }\nfunc.func @f() { return }", "already a function @f"),
        ("func.func private @main(%x: tensor<f32>) -> tensor<f32>", "declared but has no body"),
        (
            "func.func @main(%x: tensor<f32>) -> tensor<i32> { return %x : tensor<f32> }",
            "@main returns (f32[]), its type",
        ),
        ("func.func @main(%x: tensor<f32>) { return\n^bb1: return }", "several blocks"),
        ("!t = tensor<f32>\nmodule {}", "names for types are not supported"),
        ("module @m { memref.global @x : tensor<f32> }", "expected a function (func.func)"),
    ],
)
def test_broken_modules_are_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_values_from_outside_cannot_be_used_on_elements() -> None:
    text = body(
        "%0 = stablehlo.reduce(%v init: %x) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>\n"
        " reducer(%a: tensor<f32>, %b: tensor<f32>) {\n"
        "  %s = stablehlo.add %a, %x : tensor<f32>\n  stablehlo.return %s : tensor<f32>\n }"
    )
    with pytest.raises(ParseError, match="%x comes from outside of a function on elements"):
        parse(text)


@pytest.mark.parametrize("opening", ['"stablehlo.if"(%p) ({', "%0 = stablehlo.add %x {a = [", "[", "tuple<", "{a = "])
def test_deep_nesting_is_an_error(opening: str) -> None:
    with pytest.raises(ParseError):
        parse("func.func @main(%p: tensor<i1>) {\n" + '  %r = "x.y"() {a = ' * (opening == "[") + opening * 20_000)


def test_nesting_up_to_the_limit_is_read() -> None:
    depth = 60
    text = "func.func @main(%p: tensor<i1>) -> tensor<i1> {\n"
    for level in range(depth):
        text += f'%r{level} = "stablehlo.if"(%p) ({{\n'
    text += "%q = stablehlo.not %p : tensor<i1>\nstablehlo.return %q : tensor<i1>\n"
    for level in reversed(range(depth)):
        text += "}, { stablehlo.return %p : tensor<i1> }) : (tensor<i1>) -> tensor<i1>\n"
        text += f"{'stablehlo.return' if level else 'return'} %r{level} : tensor<i1>\n"
    assert parse(text + "}").entry_computation.root.opcode == "conditional"


@pytest.mark.parametrize(
    "text", ["module @m {\x00", "module {\ud800", "#", "#a =", "module", "func.func", "module {" + " " * 10**6]
)
def test_odd_characters_and_ends_are_errors(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_a_long_line_is_cut_in_linear_time() -> None:
    start = time.perf_counter()
    with pytest.raises(ParseError):
        parse("func.func @main() { " + "tensor<" * 150_000)
    with pytest.raises(ParseError):
        parse('func.func @main() { "' + "\\" * 500_001)
    assert time.perf_counter() - start < 5


def test_changed_texts_give_nothing_but_parse_errors() -> None:
    rng = random.Random(5)
    pieces = ["%0", "%a", "tensor<2xf32>", "tensor<f32>", "(", ")", "{", "}", "<", ">", "[", "]", "-1", ":", ",", "99"]
    pieces += [
        "dense<1>",
        "stablehlo.add",
        '"stablehlo.sort"',
        "->",
        "=",
        "^bb0",
        "#loc1",
        "@main",
        "loc(",
        "\n",
        "",
        '"',
    ]
    tokens = GOOD.replace("(", " ( ").replace(")", " ) ").split(" ")
    parse(GOOD)
    for _ in range(1500):
        changed = list(tokens)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(changed))
            changed[place : place + rng.randint(0, 2)] = [rng.choice([*pieces, rng.choice(tokens)])]
        try:
            parse(" ".join(changed))
        except ParseError:
            continue
