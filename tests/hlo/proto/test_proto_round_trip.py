"""Modules survive the trip through bytes and through the text form, for every operation there is."""

import dataclasses

import numpy as np
import pytest

from xlalite.hlo import HloModule, ParseError, parse, parse_pbtxt, parse_proto, verify
from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.ops import OPS
from xlalite.hlo.proto.attribute_table import EXCEPTIONS, attribute_rules
from xlalite.hlo.proto.enum_words import ENUMS
from xlalite.hlo.proto.literals import read_literal, write_literal
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.module_writer import write_module
from xlalite.hlo.proto.schema import MESSAGE_TYPES, Kind
from xlalite.hlo.proto.serialization import write_hlo_proto, write_pbtxt
from xlalite.hlo.proto.wire import decode, encode
from xlalite.hlo.spelling.attributes import attribute_fields
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Layout, Shape


def computations_of(module: HloModule) -> tuple[str, list[str]]:
    """The header, and the computations in whatever order."""
    header, *parts = module.to_string("default").split("\n\n")
    return header, sorted(parts)


def test_record_survives_bytes_and_text_form(op_case):
    for dtype in op_case.dtypes[:4]:
        module = parse(op_case.text(dtype))
        data = module.to_proto()
        again = parse_proto(data)
        verify(again)
        assert computations_of(again) == computations_of(module)
        assert fingerprint(again) == fingerprint(module)
    from_text = parse_pbtxt(write_pbtxt(module))
    assert from_text.to_proto() == again.to_proto()


# XLA's message has no field for these; they travel as text.
AS_TEXT = {"topk": {"is_stable"}, "collective-permute": {"slice_sizes"}, "collective-permute-start": {"slice_sizes"}}


def test_every_operation_has_a_rule_for_its_attributes():
    for op in OPS.values():
        rules = {rule.field for rule in attribute_rules(op.attrs)}
        declared = {field.field for field in attribute_fields(op.attrs)}
        assert declared - rules <= AS_TEXT.get(op.name, set()), op.name


def test_exceptions_are_about_attributes_that_exist():
    owners = {op.attrs for op in OPS.values()}
    fields = [(owner.__name__, field.name) for owner in owners for field in dataclasses.fields(owner)]
    assert EXCEPTIONS.keys() <= {f"{owner}.{name}" for owner, name in fields} | {name for _, name in fields}


def test_tables_name_only_types_that_exist():
    for type_ in MESSAGE_TYPES.values():
        for field in type_.by_name.values():
            if field.kind is Kind.MESSAGE:
                assert field.type_name in MESSAGE_TYPES, f"{type_.name}.{field.name}"
            if field.kind is Kind.ENUM:
                assert field.type_name in ENUMS, f"{type_.name}.{field.name}"


HEADER = ", ".join(
    (
        "HloModule full",
        "is_scheduled=true",
        "input_output_alias={ {0}: (0, {}, must-alias) }",
        "buffer_donor={ (1, {}) }",
        "alias_passthrough_params=true",
        "entry_computation_layout={(f32[2,3]{0,1}, s32[<=4]{0:T(2,128)(2,1)E(4)S(1)})->(f32[2,3]{1,0}, s32[<=4]{0})}",
        "replica_count=2",
        "num_partitions=4",
        'frontend_attributes={a="b",c={"json":[1]}}',
    )
)
FULL = (
    HEADER
    + """

FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=2 end_column=4}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%work (p: f32[2,3]) -> f32[2,3] {
  %p = f32[2,3]{1,0} parameter(0)
  ROOT %n = f32[2,3]{1,0} negate(%p)
}, execution_thread="other"

ENTRY %main (x: f32[2,3], y: s32[<=4]) -> (f32[2,3], s32[<=4]) {
  %x = f32[2,3]{1,0} parameter(0), parameter_replication={true}, sharding={devices=[2,1]<=[2]}
  %y = s32[<=4]{0} parameter(1), metadata={op_type="t" op_name="n" source_file="s.py" source_line=7 source_end_line=9 \
deduplicated_name="d" stack_frame_id=1}
  %e = f32[2,3]{1,0} exponential(%x), result_accuracy={tolerance={atol=0.5,rtol=0,ulps=2}}
  %h = f32[2,3]{1,0} exponential(%e), unheard_of={1,2}, frontend_attributes={k="v"}, result_accuracy={mode=highest}, \
backend_config={"x":1}
  %a = ((f32[2,3]{1,0}), f32[2,3]{1,0}, u32[]) async-start(%h), async_execution_thread="other", calls=%work
  %d = f32[2,3]{1,0} async-done(%a), control-predecessors={%e}, metadata={op_name="q" strange="z"}
  ROOT %r = (f32[2,3]{1,0}, s32[<=4]{0}) tuple(%d, %y), statistics={visualizing_index=1,stat-1=33,stat-2=4.5}
}

"""
)


def test_everything_a_module_carries_survives():
    module = parse(FULL)
    again = parse_proto(module.to_proto())
    assert again.to_string() == module.to_string()
    assert again.config == module.config
    assert again.find("work").execution_thread == "other"


def test_schedule_survives():
    module = parse(FULL)
    main = module.entry_computation
    order = list(main.instructions)
    order[0], order[1] = order[1], order[0]
    main.set_order(order)
    again = parse_proto(module.to_proto())
    assert [one.name for one in again.entry_computation.instructions] == [one.name for one in order]


def test_attribute_without_a_field_travels_as_text():
    text = """HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  ROOT t = (f32[2], s32[2]) topk(x), k=2, is_stable=false
}"""
    again = parse_proto(parse(text).to_proto())
    assert again.entry_computation.root.attrs.is_stable is False
    assert not again.entry_computation.root.extra_attributes


def test_hlo_proto_and_module_proto_are_told_apart():
    module = parse("ENTRY main { ROOT x = f32[4] parameter(0) }")
    assert parse_proto(write_hlo_proto(module)).to_string() == module.to_string()
    assert parse_proto(bytearray(module.to_proto())).to_string() == module.to_string()
    wrapped = f"hlo_module {{ {write_pbtxt(module)} }}"
    assert parse_pbtxt(wrapped).to_string() == module.to_string()
    snapshot = ProtoMessage("HloSnapshot")
    snapshot.open("hlo").put("hlo_module", write_module(module))
    assert parse_proto(encode(snapshot)).to_string() == module.to_string()
    write_literal(Literal(np.ones(4, np.float32)), snapshot.append("arguments"))
    snapshot.put("execution_platform", "cpu")
    assert parse_proto(encode(snapshot)).to_string() == module.to_string()
    assert parse_pbtxt(f"hlo {{ {wrapped} }} execution_platform: 'cpu'").to_string() == module.to_string()
    with pytest.raises(ParseError, match="holds no module"):
        parse_pbtxt("hlo { }")


ARRAY_TYPES = [dtype for dtype in DType if dtype.is_array]


@pytest.mark.parametrize("dtype", ARRAY_TYPES, ids=lambda dtype: dtype.value)
def test_literal_survives_with_every_bit(dtype, rng):
    dims = (3, 5, 2)
    raw = rng.integers(0, 256, 30 * dtype.size_bytes, dtype=np.uint8)
    if dtype is DType.PRED:
        raw &= 1
    elif dtype.bits < 8 and dtype.is_unsigned:
        raw &= (1 << dtype.bits) - 1
    elif dtype.bits < 8 and dtype.is_integral:
        values = np.arange(30) % (1 << dtype.bits) - (1 << (dtype.bits - 1))
        raw = values.astype(np.int8).view(np.uint8)
    elif dtype.bits < 8:
        raw &= (1 << dtype.bits) - 1
    array = raw.view(dtype.numpy).reshape(dims)
    for layout in (None, Layout((0, 2, 1)), Layout((1, 2, 0))):
        literal = Literal(array, Shape.array(dtype, dims, layout))
        message = ProtoMessage("LiteralProto")
        write_literal(literal, message)
        again = read_literal(decode(encode(message), "LiteralProto"))
        assert again == literal


def test_literals_of_tuples_and_without_elements_survive():
    literal = Literal((np.zeros((0, 3), np.float32), (np.int64(-1),), np.float64(-0.0)))
    message = ProtoMessage("LiteralProto")
    write_literal(literal, message)
    assert read_literal(decode(encode(message), "LiteralProto")) == literal


def test_names_are_unique_in_the_message_and_come_back():
    module = parse(
        "HloModule m\nf { p = f32[] parameter(0)\n ROOT p.1 = f32[] negate(p) }\n"
        "ENTRY e { p = f32[] parameter(0)\n ROOT p.1 = f32[] call(p), to_apply=f }"
    )
    message = decode(module.to_proto(), "HloModuleProto")
    names = [one.text("name") for part in message.messages("computations") for one in part.messages("instructions")]
    assert names == ["p", "p.1", "p.2", "p.1.1"]
    assert str(parse_proto(module.to_proto())) == str(module)
