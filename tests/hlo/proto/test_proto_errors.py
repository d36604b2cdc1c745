"""Whatever bytes or text come in, the only error is `ParseError`."""

import random
import re

import pytest

from xlalite.hlo import ParseError, parse, parse_pbtxt, parse_proto
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.module_writer import write_module
from xlalite.hlo.proto.schema import Kind
from xlalite.hlo.proto.serialization import write_pbtxt
from xlalite.hlo.proto.wire import decode, encode

TEXT = """HloModule m, is_scheduled=true
body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[4] get-tuple-element(p), index=1
  ROOT t = (s32[], f32[4]) tuple(j, x)
}
cond {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}, metadata={op_name="a" source_line=3}
  z = s32[] constant(0)
  k = f32[2,2] constant({{1,2},{3,4}})
  t = (s32[], f32[4]) tuple(z, x)
  ROOT w = (s32[], f32[4]) while(t), condition=cond, body=body
}"""


@pytest.fixture(scope="module")
def message() -> ProtoMessage:
    return write_module(parse(TEXT))


def test_noise_in_bytes_is_refused_or_read(message):
    data = encode(message)
    generator = random.Random(7)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(1500):
        noisy = bytearray(data)
        for _ in range(generator.choice((1, 1, 2, 5))):
            match generator.randrange(3):
                case 0:
                    noisy[generator.randrange(len(noisy))] = generator.randrange(256)
                case 1:
                    del noisy[generator.randrange(len(noisy))]
                case _:
                    noisy.insert(generator.randrange(len(noisy)), generator.choice((0, 1, 127, 128, 255)))
        try:
            parse_proto(noisy)
            outcomes["read"] += 1
        except ParseError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 20


def test_noise_in_numbers_is_refused_or_read():
    generator = random.Random(9)
    data = encode(write_module(parse(TEXT)))
    numbers = (0, 1, 2, 3, 5, 34, -1, 1 << 31, -(1 << 63), (1 << 63) - 1)
    for _ in range(600):
        messages = [decode(data, "HloModuleProto")]
        for one in messages:
            for name, value in one.values.items():
                if one.type.by_name[name].kind is Kind.MESSAGE:
                    messages.extend(value if isinstance(value, list) else [value])
        one = generator.choice([one for one in messages if one.values])
        name = generator.choice(list(one.values))
        match one.values[name]:
            case int():
                one.values[name] = generator.choice(numbers)
            case [int(), *_] as values:
                values[generator.randrange(len(values))] = generator.choice(numbers)
            case _:
                del one.values[name]
        noisy = encode(messages[0])
        try:
            parse_proto(noisy)
        except ParseError:
            continue


def test_truncated_bytes_are_refused(message):
    data = encode(message)
    refused = 0
    for length in range(len(data)):
        try:
            parse_proto(data[:length])
        except ParseError:
            refused += 1
    # Only where the end of a field is the end of the data there is a smaller module.
    assert refused > 0.98 * len(data)


def test_noise_in_the_text_form_is_refused_or_read(message):
    text = write_pbtxt(parse(TEXT))
    generator = random.Random(8)
    for _ in range(250):
        place = generator.randrange(len(text))
        noise = generator.choice(
            ("{", "}", '"', ":", "9", "-", "x", "[", "", "\0", "\udc80", " f: [ ", "\x1b[2J", "7" * 5000)
        )
        try:
            parse_pbtxt(text[:place] + noise + text[place + generator.randrange(3) :])
        except ParseError as error:
            refusal = str(error)
        else:
            refusal = ""
        assert refusal.encode().decode().replace("\n", "").isprintable()


def edited(**changes: object) -> bytes:
    """The bytes of the module with fields of the last instruction changed."""
    message = write_module(parse(TEXT))
    message.messages("computations")[-1].messages("instructions")[-1].values.update(changes)
    return encode(message)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"opcode": "frobnicate"}, "unknown operation 'frobnicate'"),
        ({"operand_ids": [77]}, "operand 77: there is no instruction with this id above"),
        ({"control_predecessor_ids": [77]}, "control predecessor 77"),
        ({"called_computation_ids": [0]}, "while calls 2 computations, found 1"),
        ({"called_computation_ids": [9, 9]}, "there is no computation with id 9 above"),
        ({"called_computation_ids": [2, 2]}, "there is no computation with id 2 above"),
        ({"name": "a b"}, "the name 'a b' cannot be written"),
        ({"name": ""}, "the name '' cannot be written"),
        ({"operand_ids": []}, "while"),
        ({"shape": ProtoMessage("ShapeProto").put("element_type", 99)}, "element_type: found number 99"),
        ({"shape": ProtoMessage("ShapeProto").put("element_type", 0)}, "PRIMITIVE_TYPE_INVALID"),
        (
            {"shape": ProtoMessage("ShapeProto").put("element_type", 11).put_all("dimensions", [1 << 40] * 3)},
            "more than 288230376151711744 elements",
        ),
        (
            {"shape": ProtoMessage("ShapeProto").put("element_type", 11).put_all("dimensions", [-4])},
            "must not be negative",
        ),
    ],
)
def test_impossible_instructions_are_refused(changes, expected):
    with pytest.raises(ParseError, match=re.escape(expected)):
        parse_proto(edited(**changes))


def test_literal_with_too_few_elements_is_refused(message):
    shape = ProtoMessage("ShapeProto").put("element_type", 11).put_all("dimensions", [1 << 40])
    literal = ProtoMessage("LiteralProto").put("shape", shape)
    with pytest.raises(ParseError, match="found 0 elements, expected 1099511627776"):
        parse_proto(edited(opcode="constant", operand_ids=[], called_computation_ids=[], shape=shape, literal=literal))


def test_module_without_entry_is_refused():
    with pytest.raises(ParseError, match="entry_computation_id"):
        parse_proto(encode(ProtoMessage("HloModuleProto").put("name", "m").put("entry_computation_id", 5)))
    with pytest.raises(ParseError, match="holds no module"):
        parse_proto(b"")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ('name: "m"\ncomputations { id: x }', 2, "found 'x', expected a value of id (int64)"),
        ('name: "m"\ncomputations {', 2, "found the end of the text, expected the name of a field"),
        ('name: "m"\n\nname: "n"', 3, "name is given twice"),
        ("name 3", 1, "found '3', expected ':'"),
        ('name: "a\\8"', 1, "escape \\8 is not known"),
        ("computations { instructions { exponent_bits: 3000000000 } }", 1, "found '3000000000'"),
        ("name: $", 1, "found '$', which is no part of a message"),
        ("computations { instructions { distribution: RNG_ODD } }", 1, "(enum RandomDistribution)"),
        ("unknown {", 1, "expected the name of a field"),
    ],
)
def test_malformed_text_is_refused_with_its_place(text, line, expected):
    with pytest.raises(ParseError, match=re.escape(expected)) as caught:
        parse_pbtxt(text)
    assert caught.value.line == line


def test_text_form_takes_every_spelling():
    module = parse_pbtxt(
        """# a comment
        name: 'm' "ore"; unknown: [1, { a: 2 }] other < b: "c" > [ext.name] { d: 1e3 }
        entry_computation_id: 0x1,
        computations: < name: "main" id: 01 root_id: 3
          instructions {
            name: "x" opcode: "constant" id: 3
            shape { element_type: 11 dimensions: [2, 1] layout { minor_to_major: [1] minor_to_major: 0 } }
            literal { shape { element_type: F32 dimensions: 2 dimensions: 1 } f32s: [1.5f, -inf] }
          }
        >"""
    )
    assert module.name == "more"
    assert "x = f32[2,1]{1,0} constant({ {1.5}, {-inf} })" in module.to_string("short_parsable")
