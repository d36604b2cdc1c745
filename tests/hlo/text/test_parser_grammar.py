"""What the parser accepts: every spelling of the grammar, each with the meaning it has."""

from __future__ import annotations

import pytest

from xlalite.hlo.ir.module import InputOutputAlias
from xlalite.hlo.text import parse, parse_literal, parse_shape
from xlalite.hlo.verification.verifier import verify

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


def entry(body: str, before: str = "") -> str:
    return f"HloModule m\n{before}ENTRY e {{\n{body}\n}}\n"


def root_of(text: str):
    module = parse(text)
    verify(module)
    return module.entry_computation.root


def test_names_may_have_a_percent_sign_or_not() -> None:
    root = root_of(entry("%x = f32[2] parameter(0)\n y.1 = f32[2] negate(x)\n ROOT %z-a = f32[2] add(%y.1, x)"))
    assert [operand.name for operand in root.operands] == ["y.1", "x"]
    assert root.name == "z-a"


def test_operands_may_have_shapes() -> None:
    root = root_of(entry("x = f32[2]{0} parameter(0)\n ROOT y = f32[2] add(f32[2]{0} %x, f32[2] x)"))
    assert root.operand(0) is root.operand(1)


def test_tuple_operands_take_elements_in_place() -> None:
    text = "p = (f32[2], (s32[], f32[3])) parameter(0)\n a = f32[3] negate(p#1#1)\n ROOT r = f32[3] add(a, p#1#1)"
    root = root_of(entry(text))
    element = root.operand(1)
    assert element.opcode == "get-tuple-element"
    assert element.attrs.index == 1
    assert root.operand(0).operand(0) is element, "one element is made for both uses"


def test_made_up_names_give_way_to_names_in_the_text() -> None:
    body = (
        "p = (f32[2]) parameter(0)\n a = f32[2] negate(p#0)\n get-tuple-element = f32[2] abs(a)\n"
        " ROOT r = f32[2] add(a, get-tuple-element)"
    )
    root = root_of(entry(body))
    assert root.operand(1).opcode == "abs"


def test_operands_may_be_instructions() -> None:
    text = (
        "x = f32[] parameter(0)\n ROOT r = f32[2] add(f32[2] broadcast(x), dimensions={}, "
        "f32[2] broadcast(f32[] negate(x)), dimensions={})"
    )
    root = root_of(entry(text))
    assert [operand.opcode for operand in root.operands] == ["broadcast", "broadcast"]
    assert root.operand(1).operand(0).opcode == "negate"


def test_called_computations_may_stand_in_place() -> None:
    text = (
        "x = f32[4] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[] reduce(x, z), "
        "dimensions={0}, "
        "to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
    )
    root = root_of(entry(text))
    assert root.called_computations[0].root.opcode == "add"
    assert root.called_computations[0].module is root.module


def test_lists_of_computations_take_names_and_bodies() -> None:
    text = (
        "i = s32[] parameter(0)\n x = f32[] parameter(1)\n ROOT r = f32[] conditional(i, x, x), "
        "branch_computations={ neg, { p = f32[] parameter(0) ROOT q = f32[] abs(p) } }"
    )
    root = root_of(entry(text, "neg { p = f32[] parameter(0) ROOT q = f32[] negate(p) }\n"))
    assert [called.root.opcode for called in root.called_computations] == ["negate", "abs"]


def test_a_single_instruction_makes_a_module() -> None:
    module = parse('f32[4] add(f32[4] x, f32[4] y), metadata={op_name="sum"}')
    verify(module)
    assert [parameter.name for parameter in module.entry_computation.parameters] == ["x", "y"]
    assert module.entry_computation.root.metadata.op_name == "sum"


@pytest.mark.parametrize(
    "text", ["r = f32[4] add(f32[4] x, x)", "ROOT %r = f32[4] add(f32[4], f32[4])", "add(f32[4] a, f32[4] b)"]
)
def test_spellings_of_a_single_instruction(text: str) -> None:
    module = parse(text)
    verify(module)
    assert module.entry_computation.root.shape.text() == "f32[4]"


def test_header_entry_and_root_may_be_missing() -> None:
    module = parse(
        "neg { p = f32[] parameter(0)\n q = f32[] negate(p) }\n main { x = f32[] parameter(0)\n"
        " y = f32[] call(x), to_apply=neg }"
    )
    verify(module)
    assert module.entry_computation.name == "main"
    assert module.entry_computation.root.name == "y"


def test_the_given_name_is_used_when_the_text_has_none() -> None:
    assert parse("ENTRY e { ROOT x = f32[] parameter(0) }", "mine").name == "mine"
    assert parse("HloModule theirs\nENTRY e { ROOT x = f32[] parameter(0) }", "mine").name == "theirs"


def test_comments_are_skipped_anywhere() -> None:
    root = root_of(
        "/* a */HloModule m // rest\nENTRY e /*b*/ { // c\n x = f32[/*d*/2 ] parameter(0)\n"
        " ROOT r = f32[2] add(x, /*index=1*/x) } // end"
    )
    assert root.shape.dims == (2,)


def test_bytes_are_taken_as_utf8() -> None:
    assert (
        parse(
            b'ENTRY e { ROOT x = f32[] parameter(0), metadata={op_name="\xc3\xa9"} }'
        ).entry_computation.root.metadata.op_name
        == "\xe9"
    )


def test_parameters_are_ordered_by_number_not_by_signature() -> None:
    module = parse(
        "ENTRY e (b: f32[3], a: f32[2]) -> f32[2] { y = f32[3] parameter(1)\n ROOT x = f32[2] parameter(0) }"
    )
    assert [parameter.name for parameter in module.entry_computation.parameters] == ["x", "y"]


def test_result_shapes_follow_where_they_can() -> None:
    root = root_of(
        entry(
            "x = f32[2,3] parameter(0)\n z = f32[] constant(0)\n ROOT r = reduce(x, z), dimensions={1}, to_apply=add",
            ADD,
        )
    )
    assert root.shape.text() == "f32[2]"


def test_annotations_are_kept() -> None:
    line = (
        "ROOT r = f32[2]{0} negate(x), foo=[2,2]<=[4]T(1,0), sharding={devices=[2,1]<=[2] last_tile_dim_replicate}, "
        'frontend_attributes={a="b",c={"d":[1,2]}}, control-predecessors={%y}, statistics={visualizing_index=1}, '
        'result_accuracy={mode=highest}, origin={{"x"}}, '
        'metadata={op_type="t" op_name="n \\"q\\"" source_file="f.py" '
        'source_line=3 source_end_line=4 profile_type={1} stack_frame_id=7}, backend_config={"k":{"n":["4"]}}'
    )
    module = parse(entry(f"x = f32[2]{{0}} parameter(0)\n y = f32[2]{{0}} abs(x)\n {line}"))
    root = module.entry_computation.root
    assert root.sharding == "{devices=[2,1]<=[2] last_tile_dim_replicate}"
    assert root.frontend_attributes == (("a", "b"), ("c", '{"d":[1,2]}'))
    assert root.metadata.op_name == 'n "q"'
    assert root.metadata.source_line == 3
    assert root.metadata.extra == (("source_end_line", "4"), ("profile_type", "{1}"), ("stack_frame_id", "7"))
    assert root.backend_config == '{"k":{"n":["4"]}}'
    assert [name for name, _ in root.extra_attributes] == ["foo", "statistics", "result_accuracy", "origin"]
    assert [one.name for one in root.control_predecessors] == ["y"]
    assert line.replace("ROOT r", "ROOT %r").replace("(x)", "(%x)") in str(module)


@pytest.mark.parametrize(
    "sharding",
    [
        "{replicated}",
        "{maximal device=0}",
        "{manual}",
        "{devices=[2,2]0,1,2,3}",
        "{{replicated},{maximal device=0}}",
        "{devices=[1,2]<=[2] last_tile_dims={manual}}",
        "{mesh['a'=2], [{\"a\"}]}",
    ],
)
def test_sharding_is_kept_in_every_spelling(sharding: str) -> None:
    module = parse(entry(f"ROOT x = f32[2] parameter(0), sharding={sharding}"))
    assert module.entry_computation.root.sharding == sharding
    assert f"sharding={sharding}" in str(module)


@pytest.mark.parametrize(("written", "kept"), [('"a\\"b\\n"', 'a"b\n'), ('{"a": {}}', '{"a": {}}'), ("'x'", "x")])
def test_backend_config_is_a_string_or_json(written: str, kept: str) -> None:
    module = parse(entry(f"ROOT x = f32[2] parameter(0), backend_config={written}"))
    assert module.entry_computation.root.backend_config == kept
    assert parse(str(module)).entry_computation.root.backend_config == kept


HEADER = (
    "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {1}, must-alias) }, "
    "buffer_donor={ (1, {0}) }, alias_passthrough_params=true, "
    "entry_computation_layout={(f32[2,3]{0,1}, (s32[], f32[4]{0:T(256)}))->(f32[2,3]{1,0}, f32[4]{0})}, "
    "allow_spmd_sharding_propagation_to_output={true,false}, replica_count=2, num_partitions=3, "
    'frontend_attributes={a="b",j={"k":1}}, origin_recovery_table={ {0} : x }'
)
BODY = """ENTRY %e (p: f32[2,3], q: (s32[], f32[4])) -> (f32[2,3], f32[4]) {
  %p = f32[2,3]{1,0} parameter(0)
  %q = (s32[], f32[4]{0}) parameter(1)
  %x = f32[4]{0} get-tuple-element(%q), index=1
  ROOT %r = (f32[2,3]{1,0}, f32[4]{0}) tuple(%p, %x)
}

"""


def test_header_attributes_are_read_and_written() -> None:
    text = f"{HEADER}\n\n{BODY}"
    module = parse(text)
    verify(module)
    config = module.config
    assert config.is_scheduled
    assert config.input_output_alias == (
        InputOutputAlias((0,), 0, (), "may-alias"),
        InputOutputAlias((1,), 1, (1,), "must-alias"),
    )
    assert config.buffer_donors == ((1, (0,)),)
    assert (config.replica_count, config.num_partitions) == (2, 3)
    assert config.entry_layout is not None
    assert str(config.entry_layout.parameters[0]) == "f32[2,3]{0,1}"
    assert config.frontend_attributes == (("a", "b"), ("j", '{"k":1}'))
    assert str(module) == text


def test_an_entry_layout_that_says_nothing_new_is_not_stored() -> None:
    module = parse(
        "HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}\n\n"
        "ENTRY e { ROOT p = f32[2,3] parameter(0) }"
    )
    assert module.config.entry_layout is None
    assert "entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}" in str(module)


TABLES = """FileNames
1 "a.py"
2 "b \\"c\\".py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=5}

StackFrames
1 {file_location_id=1 parent_frame_id=1}"""


def test_location_tables_are_kept_verbatim() -> None:
    text = (
        f"HloModule m, entry_computation_layout={{(f32[])->f32[]}}\n\n{TABLES}\n\n\n"
        f"ENTRY %e (p: f32[]) -> f32[] {{\n  ROOT %p = f32[] parameter(0), "
        f'metadata={{op_name="x" stack_frame_id=1}}\n}}\n\n'
    )
    module = parse(text)
    assert module.tables == TABLES
    assert str(module) == text
    assert "FileNames" not in module.to_string("short_parsable")


def test_execution_threads_are_kept() -> None:
    text = (
        "HloModule m, entry_computation_layout={(f32[])->f32[]}\n\n%f (q: f32[]) -> f32[] {\n"
        '  ROOT %q = f32[] parameter(0)\n}, execution_thread="host"\n\n'
        "ENTRY %e (p: f32[]) -> f32[] {\n  %p = f32[] parameter(0)\n  ROOT %c = f32[] call(%p), "
        "to_apply=%f\n}\n\n"
    )
    module = parse(text)
    assert module.find("f").execution_thread == "host"
    assert str(module) == text


def test_async_spelling_wraps_the_operation() -> None:
    text = (
        "HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}\n\n"
        "%twice (a: f32[4]) -> f32[4] {\n  %a = f32[4]{0} parameter(0)\n  ROOT %b = f32[4]{0} add(%a, %a)\n}\n\n"
        "ENTRY %e (x: f32[4]) -> f32[4] {\n  %x = f32[4]{0} parameter(0)\n"
        '  %s = ((f32[4]{0}), f32[4]{0}, u32[]) custom-call-start(%x), async_execution_thread="p", '
        'custom_call_target="foo"\n'
        "  %u = ((f32[4]{0}), f32[4]{0}, u32[]) custom-call-update(%s)\n"
        "  %d = f32[4]{0} custom-call-done(%u)\n"
        "  %t = ((f32[4]{0}), f32[4]{0}, u32[]) call-start(%d), to_apply=%twice\n"
        "  ROOT %v = f32[4]{0} call-done(%t)\n}\n\n"
    )
    module = parse(text)
    verify(module)
    start = module.entry_computation.find("s")
    assert start.opcode == "async-start"
    assert start.called_computations[0].root.attrs.custom_call_target == "foo"
    assert start.called_computations[0].execution_thread == "p"
    assert str(module) == text


def test_async_operations_that_wrap_more_keep_their_long_spelling() -> None:
    text = "x = f32[4] parameter(0)\n s = ((f32[4]), f32[4]) async-start(x), calls=f\n ROOT d = f32[4] async-done(s)"
    module = parse(entry(text, "f { a = f32[4] parameter(0)\n b = f32[4] abs(a)\n ROOT c = f32[4] negate(b) }\n"))
    assert "async-start(%x), calls=%f" in str(module)
    assert "async-done(%s)" in str(module)


def test_elided_constants_get_the_same_pseudo_data_every_time() -> None:
    text = entry("ROOT c = f32[4,5] constant({...})")
    one, other = parse(text).entry_computation.root, parse(text).entry_computation.root
    assert one.attrs.literal == other.attrs.literal
    assert abs(one.attrs.literal.value).max() <= 1
    assert "constant({...})" in str(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "f32[]",
        "f32[2,3]{1,0}",
        "f32[2,3]{0,1:T(8,128)(2,1)S(1)}",
        "s4[8]{0:E(4)}",
        "f32[<=8,3]{1,0}",
        "f32[?,3]{1,0}",
        "()",
        "(f32[], (s32[2]{0}, token[]))",
        "opaque[]",
        "b(f32[2]{0})",
        "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[])",
        "f32[2]{0:D(D)P(f32[4]{0})}",
    ],
)
def test_shapes_come_back_identical(text: str) -> None:
    assert str(parse_shape(text)) == text


def test_spaces_in_shapes_do_not_matter() -> None:
    assert parse_shape(" f32 [ 2 , <= 3 ] { 1, 0 : T(8) } ") == parse_shape("f32[2,<=3]{1,0:T(8)}")


def test_a_literal_may_bring_its_shape() -> None:
    assert parse_literal("f32[2] {1.5, 2}").value.tolist() == [1.5, 2]
    assert parse_literal("{{1},{2}}", parse_shape("s8[2,1]")).value.tolist() == [[1], [2]]
    assert parse_literal("(1, 2)", parse_shape("c64[]")).value == 1 + 2j


def test_names_that_are_words_of_the_language_keep_their_percent_sign() -> None:
    text = entry("%f32 = f32[] parameter(0)\n %ROOT = f32[] negate(%f32)\n ROOT %0 = f32[] add(%ROOT, %f32)")
    short = parse(text).to_string("short_parsable")
    assert "%0 = f32[] add(%ROOT, %f32)" in short
    assert parse(short).to_string("short_parsable") == short
