"""HLO written as StableHLO: the same meaning when it is read again, and text that MLIR takes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from mlir_bytecode import unpacked
from nested_arrays import leaves
from op_cases import OpCase

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.errors import BinaryParseError, LoweringError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.fingerprint import structurally_equal
from xlalite.hlo.ir.instruction import Metadata
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops import OPS
from xlalite.hlo.stablehlo.bytecode.byte_cursor import ByteCursor
from xlalite.hlo.stablehlo.bytecode.container import Container, Entry
from xlalite.hlo.stablehlo.bytecode.values import Values
from xlalite.hlo.stablehlo.writing.byte_writer import integer, listed
from xlalite.hlo.stablehlo.writing.bytecode_values import ValueWriter
from xlalite.hlo.stablehlo.writing.writer import RULES
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.limits import DEFAULT_LIMITS
from xlalite.hlo.verification.verifier import verify

# What StableHLO has no operation for.
WITHOUT = {
    "parameter": "an argument of a function",
    "set-dimension-size": "sizes that vary while a program runs",
    "dynamic-reshape": "sizes that vary while a program runs",
    "ragged-all-to-all": "a custom call in StableHLO, whose operands are others",
    "ragged-dot": "chlo.ragged_dot is not written yet",
    "rng-get-and-update-state": "made by passes of the compiler",
    "scaled-dot": "made by passes of the compiler",
    "scan": "chlo.scan is not written yet",
    "stochastic-convert": "only MHLO had it",
}


def written(text: str) -> str:
    """The module of HLO text in StableHLO; what is read back is valid, and is written the same way."""
    spelled = parse(text).to_stablehlo()
    back = parse(spelled)
    verify(back)
    again = back.to_stablehlo()
    assert parse(again).to_stablehlo() == again
    return spelled


def same(text: str, *arguments: Any) -> str:
    """What is written means the same for these arguments."""
    spelled = written(text)
    flat = [part for argument in arguments for part in parts(argument)]
    wanted, found = leaves(evaluate(parse(text), *arguments)), leaves(evaluate(parse(spelled), *flat))
    for one, other in zip(found, wanted, strict=True):
        assert_same_bits(one, other)
    return spelled


def parts(value: Any) -> list[Any]:
    """Arrays and tokens of a nested value."""
    return [part for element in value for part in parts(element)] if isinstance(value, tuple) else [value]


def assert_same_bits(found: Any, wanted: Any) -> None:
    """Asserts equal arrays; NaNs are equal whatever their bits."""
    one, other = np.asarray(found), np.asarray(wanted)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    if one.dtype != object and one.tobytes() != other.tobytes():
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("opcode", OPS)
def test_an_operation_is_written_or_has_a_reason(opcode: str) -> None:
    assert (opcode in RULES) != (opcode in WITHOUT)


def test_every_operation_comes_back_with_its_meaning(op_case: OpCase, op_dtype: DType) -> None:
    text = op_case.text(op_dtype)
    module = parse(text)
    if any(instruction.opcode in WITHOUT.keys() - {"parameter"} for instruction in module.instructions()):
        with pytest.raises(LoweringError, match=r"StableHLO: .* \(%"):
            module.to_stablehlo()
        return
    if not op_case.is_local or not op_case.is_deterministic:
        written(text)
        return
    arguments = op_case.arguments(module, op_dtype, np.random.default_rng(7))
    same(text, *arguments)


@pytest.mark.parametrize("form", ["text", "bytecode"])
def test_mlir_takes_every_operation(form: str) -> None:
    make_ir_context = pytest.importorskip("jax._src.interpreters.mlir").make_ir_context
    from jaxlib.mlir import ir
    from op_cases import OP_CASES

    with make_ir_context():
        for case in OP_CASES:
            for dtype in case.dtypes:
                module = parse(case.text(dtype))
                if not any(
                    instruction.opcode in WITHOUT.keys() - {"parameter"} for instruction in module.instructions()
                ):
                    written = module.to_stablehlo(form)  # type: ignore[call-overload]
                    if form == "bytecode":
                        assert structurally_equal(rounded(parse(unpacked(written))), rounded(parse(written)))
                    else:
                        assert ir.Module.parse(written).operation.verify()


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_array and dtype not in (DType.S1, DType.U1)])
@pytest.mark.parametrize("size", [1, 7, 200])
def test_constants_come_back_to_the_bit(dtype: DType, size: int) -> None:
    raw = np.random.default_rng(size).integers(0, 256, size * dtype.size_bytes, np.uint8)
    if dtype.bits < 8:
        raw %= 1 << (dtype.bits - dtype.is_signed)
    values = (raw & 1 if dtype is DType.PRED else raw).view(dtype.numpy)
    module = HloModule("m")
    builder = Builder("main", module)
    builder.build(builder.constant(values, dtype), entry=True)
    found = np.asarray(evaluate(parse(module.to_stablehlo())))
    assert (found.dtype, found.shape, found.tobytes()) == (values.dtype, values.shape, values.tobytes())


def test_constants_that_are_one_number_are_written_once() -> None:
    row = "{" + ",".join(["1.5"] * 70) + "}"
    assert "dense<1.5> : tensor<2x70xf32>" in written(f"ENTRY e {{ ROOT c = f32[2,70] constant({{{row},{row}}}) }}")


@pytest.mark.parametrize(
    ("number", "spelled"),
    [
        ("nan", "0x7FC00000"),
        ("-inf", "0xFF800000"),
        ("-0", "-0.0"),
        ("1e-42", "e-42"),
        ("1e30", "e+30"),
        ("3", "3.0"),
    ],
)
def test_numbers_are_spelled_as_mlir_does(number: str, spelled: str) -> None:
    assert spelled in written(f"ENTRY e {{ ROOT c = f32[] constant({number}) }}")


def test_tuples_travel_in_their_parts() -> None:
    text = """
    body { s = (s32[], (f32[2], pred[])) parameter(0) i = s32[] get-tuple-element(s), index=0
      t = (f32[2], pred[]) get-tuple-element(s), index=1 x = f32[2] get-tuple-element(t), index=0
      p = pred[] get-tuple-element(t), index=1 one = s32[] constant(1) j = s32[] add(i, one) y = f32[2] add(x, x)
      u = (f32[2], pred[]) tuple(y, p) ROOT r = (s32[], (f32[2], pred[])) tuple(j, u) }
    cond { s = (s32[], (f32[2], pred[])) parameter(0) i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(5) ROOT r = pred[] compare(i, n), direction=LT }
    ENTRY e { s = (s32[], (f32[2], pred[])) parameter(0)
      ROOT w = (s32[], (f32[2], pred[])) while(s), condition=cond, body=body }"""
    spelled = same(text, (np.int32(1), (np.array([1, 2], np.float32), np.bool_(True))))
    assert "tuple<" not in spelled
    assert "@main(%s.0: tensor<i32>, %s.1.0: tensor<2xf32>, %s.1.1: tensor<i1>)" in spelled


def test_branches_use_what_lies_outside() -> None:
    text = """
    a { x = f32[3] parameter(0) ROOT r = f32[3] negate(x) }
    b { x = (f32[3], f32[3]) parameter(0) y = f32[3] get-tuple-element(x), index=0
      z = f32[3] get-tuple-element(x), index=1 ROOT r = f32[3] multiply(y, z) }
    c { x = f32[3] parameter(0) ROOT r = f32[3] copy(x) }
    ENTRY e { i = s32[] parameter(0) x = f32[3] parameter(1) t = (f32[3], f32[3]) tuple(x, x)
      ROOT r = f32[3] conditional(i, x, t, x), branch_computations={a, b, c} }"""
    for index in (-1, 0, 1, 2, 9):
        spelled = same(text, np.int32(index), np.array([1, 2, 3], np.float32))
    assert spelled.count("^bb0:") == 3


def test_fusions_are_written_out_and_functions_called() -> None:
    text = """
    inner { x = f32[4] parameter(0) ROOT r = f32[4] sine(x) }
    fused { x = f32[4] parameter(0) y = f32[4] parameter(1) f = f32[4] fusion(y), kind=kLoop, calls=inner
      ROOT r = f32[4] add(x, f) }
    f-1 { x = f32[4] parameter(0) ROOT r = (f32[4], f32[4]) tuple(x, x) }
    ENTRY e { x = f32[4] parameter(0) y = f32[4] fusion(x, x), kind=kLoop, calls=fused
      c = (f32[4], f32[4]) call(y), to_apply=f-1 d = (f32[4], f32[4]) call(x), to_apply=f-1
      z = f32[4] get-tuple-element(c), index=1 w = f32[4] get-tuple-element(d), index=0
      ROOT r = f32[4] subtract(z, w) }"""
    spelled = same(text, np.linspace(-1, 1, 4, dtype=np.float32))
    assert spelled.count("func.func private @f_1(") == 1
    assert spelled.count("stablehlo.sine") == 1


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("f32[2,3]{0,1}", "f32[3,2]{1,0}"),
        ("f32[2,3]", "s16[6,2]"),
        ("s16[3,2]{0,1}", "f32[3]"),
        ("u8[4,2]", "u32[2]"),
        ("f32[]", "s32[]"),
        ("f32[0,3]", "s32[3,0]"),
    ],
)
def test_bitcasts_are_made_of_what_stablehlo_has(source: str, result: str) -> None:
    text = f"ENTRY e {{ x = {source} parameter(0) ROOT r = {result} bitcast(x) }}"
    shape = parse(text).entry_computation.parameters[0].shape
    values = np.arange(shape.element_count).reshape(shape.dims).astype(shape.dtype.numpy)
    same(text, values)


def test_the_header_keeps_what_callers_give_up() -> None:
    module = parse("""HloModule m, input_output_alias={ {1}: (0, {1}, may-alias) }, buffer_donor={ (1, {}) },
      replica_count=2
    ENTRY e { x = (f32[2], f32[2]) parameter(0) y = f32[2] parameter(1) a = f32[2] get-tuple-element(x), index=1
      ROOT r = (f32[2], f32[2]) tuple(y, a) }""")
    text = module.to_stablehlo()
    assert "%x.1: tensor<2xf32> {tf.aliasing_output = 1 : i32}, %y: tensor<2xf32> {jax.buffer_donor = true}" in text
    config = parse(text).config
    assert config.replica_count == 2
    assert [(alias.output_index, alias.parameter_number) for alias in config.input_output_alias] == [((1,), 1)]
    assert config.buffer_donors == ((2, ()),)


def test_annotations_come_back() -> None:
    module = parse(
        written("""ENTRY e { x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
      ROOT r = f32[4] add(x, x), sharding={replicated}, frontend_attributes={a="1 \\"2\\"",_b-c="d"},
        metadata={op_name="jit(f)/add" source_file="a \\\\ b.py" source_line=7} }""")
    )
    root, (parameter,) = module.entry_computation.root, module.entry_computation.parameters
    assert (parameter.sharding, root.sharding) == ("{devices=[2]<=[2]}", "{replicated}")
    assert dict(root.frontend_attributes) == {"a": '1 "2"', "_b-c": "d"}
    assert (root.metadata.op_name, root.metadata.source_line) == ("jit(f)/add", 7)


def test_custom_calls_come_back() -> None:
    text = written("""ENTRY e { x = f32[2,3] parameter(0) t = (f32[2,3], f32[2,3]) tuple(x, x)
      ROOT r = (f32[2,3], s32[]) custom-call(x, t), custom_call_target="some.target",
        custom_call_has_side_effect=true, output_to_operand_aliasing={{0}: (0, {})},
        api_version=API_VERSION_STATUS_RETURNING, backend_config="a=\\"1\\"" }""")
    (call,) = [i for i in parse(text).instructions() if i.opcode == "custom-call"]
    assert call.attrs.custom_call_target == "some.target"
    assert call.attrs.output_to_operand_aliasing == (((0,), 0, ()),)
    assert call.backend_config == 'a="1"'
    assert call.attrs.custom_call_has_side_effect
    assert call.attrs.api_version.value == "API_VERSION_STATUS_RETURNING"


def test_layouts_of_custom_calls_come_back() -> None:
    (call,) = [
        i
        for i in parse(
            written("""ENTRY e { x = f32[2,3] parameter(0)
      ROOT r = f32[2,3] custom-call(x), custom_call_target="t", operand_layout_constraints={f32[2,3]{0,1}} }""")
        ).instructions()
        if i.opcode == "custom-call"
    ]
    (constraint,) = call.attrs.operand_layout_constraints
    assert constraint.minor_to_major == (0, 1)


def test_options_of_typed_calls_keep_their_types() -> None:
    text = written("""ENTRY e { x = f32[2,2] parameter(0) ROOT r = f32[2,2] custom-call(x), custom_call_target="t",
      api_version=API_VERSION_TYPED_FFI, backend_config="{lower = true, n = 3 : i32, s = \\"a b\\"}" }""")
    assert "backend_config = {lower = true, n = 3 : i32, s =" in text


@pytest.mark.parametrize("largest", ["true", "false"])
def test_top_elements_of_either_end(largest: str) -> None:
    text = f"ENTRY e {{ x = f32[2,9] parameter(0) ROOT r = (f32[2,3], s32[2,3]) topk(x), k=3, largest={largest} }}"
    values = np.array([[3, np.nan, -0.0, 0.0, 1, 1, -np.inf, np.inf, 2], [*range(9)]], np.float32)
    same(text, values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ENTRY e { x = u1[3] parameter(0) ROOT r = u1[3] not(x) }", r"values of type u1\[3\] cannot be said"),
        ("ENTRY e { ROOT c = f32[3] constant({...}) }", r"constant: its values were left out .* \(%c\)"),
        ("ENTRY e { x = f32[<=3] parameter(0) ROOT r = f32[<=3] negate(x) }", r"f32\[<=3\] has a size .* \(%x\)"),
        ("ENTRY e { ROOT s = u64[2] rng-get-and-update-state(), delta=1 }", r"no such operation \(%s\)"),
    ],
)
def test_what_cannot_be_said_is_refused(text: str, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        parse(text).to_stablehlo()


def rounded(module: HloModule) -> HloModule:
    """The module with the epsilons of its norms in single precision, whose digits MLIR prints."""
    for instruction in module.instructions():
        if instruction.opcode.startswith("batch-norm"):
            instruction.attrs = instruction.with_attrs(epsilon=float(np.float32(instruction.attrs.epsilon)))
    return module


def test_bytecode_means_what_text_means(op_case: OpCase) -> None:
    module = parse(op_case.text(op_case.dtypes[0]))
    if any(instruction.opcode in WITHOUT.keys() - {"parameter"} for instruction in module.instructions()):
        return
    one, other = parse(module.to_stablehlo("bytecode")), parse(module.to_stablehlo())
    verify(one)
    if op_case.opcode != "atan":  # which is the angle of (x, 1) there
        assert structurally_equal(rounded(one), rounded(other))


def test_bytecode_has_what_the_header_and_annotations_say() -> None:
    module = parse("""HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) },
      num_partitions=2
    ENTRY e { x = f32[4] parameter(0), sharding={replicated} y = f32[4] parameter(1)
      ROOT r = f32[4] add(x, y), sharding={devices=[2]<=[2]}, frontend_attributes={a="b"},
        metadata={op_name="f/add" source_file="a.py" source_line=300} }""")
    back = parse(module.to_stablehlo("bytecode"))
    root = back.entry_computation.root
    assert back.config == parse(module.to_stablehlo()).config
    assert (root.sharding, root.frontend_attributes, root.metadata) == (
        "{devices=[2]<=[2]}",
        (("a", "b"),),
        Metadata(op_name="f/add", source_file="a.py", source_line=300),
    )
    assert back.entry_computation.parameters[0].sharding == "{replicated}"


def test_options_of_typed_calls_keep_their_types_in_bytecode() -> None:
    options = '{a = true, b = 3 : i32, c = "x y", d = [1 : i64, 2 : ui8], e = 2.5 : f32, f = {g = -1 : i64}}'
    quoted = options.replace('"', '\\"')
    module = parse(f"""ENTRY e {{ x = f32[2] parameter(0) ROOT r = f32[2] custom-call(x), custom_call_target="t",
      api_version=API_VERSION_TYPED_FFI, backend_config="{quoted}" }}""")
    assert parse(module.to_stablehlo("bytecode")).entry_computation.root.backend_config == options


def test_other_forms_are_refused() -> None:
    with pytest.raises(ValueError, match="as 'text' or 'bytecode', not as 'mlir'"):
        parse("ENTRY e { ROOT x = f32[] parameter(0) }").to_stablehlo("mlir")  # type: ignore[call-overload]


def test_options_that_share_their_parts_are_no_longer_than_allowed() -> None:
    """Lists of two equal lists, 40 deep: few bytes, but 2^40 words as text."""
    nested = "1 : i64"
    for _ in range(6):
        nested = f"[{nested}, {nested}]"
    text = f"""ENTRY e {{ x = f32[2] parameter(0) ROOT r = f32[2] custom-call(x), custom_call_target="t",
      api_version=API_VERSION_TYPED_FFI, backend_config="{{a = {nested}}}" }}"""
    module = parse(text)
    assert parse(module.to_stablehlo("bytecode")).entry_computation.root.backend_config == f"{{a = {nested}}}"
    values = ValueWriter()
    innermost = values.attribute("", 1)
    for _ in range(40):
        innermost = integer(values.attributes.number("vhlo", integer(1) + listed([innermost, innermost])))
    entries, ends = [entry for _, entry in values.attributes.entries], [0]
    for entry in entries:
        ends.append(ends[-1] + len(entry))
    types = [entry for _, entry in values.types.entries]
    data = b"".join(entries + types)
    container = Container(data, 6)
    container.attributes = [Entry("vhlo", *place, True) for place in itertools.pairwise(ends)]
    container.types = [Entry("vhlo", ends[-1], len(data), True)]
    reader, cursor = Values(container, DEFAULT_LIMITS), ByteCursor(data, 0, len(data))
    with pytest.raises(BinaryParseError, match="a configuration is too long"):
        reader._spelled(cursor, len(entries) - 1)
