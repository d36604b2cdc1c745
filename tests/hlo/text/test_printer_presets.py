"""The presets of the printer, letter by letter."""

from __future__ import annotations

import pytest

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.errors import ParseError
from xlalite.hlo.text import PrintOptions, parse, print_computation, print_instruction, print_module
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

TEXT = """HloModule m

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }

ENTRY e {
  x = f32[12] parameter(0)
  z = f32[] constant(0.5)
  k = f32[12] constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  i = s32[2] constant({3, 4})
  y = f32[12] add(x, k), metadata={op_name="n" source_line=3}, backend_config="b"
  r = f32[] reduce(y, z), dimensions={0}, to_apply=add
  ROOT t = (f32[], f32[12], f32[12], f32[12], f32[12], f32[12], s32[2]) tuple(r, x, x, x, x, y, i), control-predecessors={y}
}
"""  # noqa: E501

DEFAULT = """HloModule m, entry_computation_layout={(f32[12]{0})->(f32[], f32[12]{0}, f32[12]{0}, f32[12]{0}, f32[12]{0}, /*index=5*/f32[12]{0}, s32[2]{0})}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %e (x: f32[12]) -> (f32[], f32[12], f32[12], f32[12], f32[12], /*index=5*/f32[12], s32[2]) {
  %x = f32[12]{0} parameter(0)
  %z = f32[] constant(0.5)
  %k = f32[12]{0} constant({...})
  %i = s32[2]{0} constant({3, 4})
  %y = f32[12]{0} add(%x, %k), metadata={op_name="n" source_line=3}, backend_config="b"
  %r = f32[] reduce(%y, %z), dimensions={0}, to_apply=%add
  ROOT %t = (f32[], f32[12]{0}, f32[12]{0}, f32[12]{0}, f32[12]{0}, /*index=5*/f32[12]{0}, s32[2]{0}) tuple(%r, %x, %x, %x, %x, /*index=5*/%y, %i), control-predecessors={%y}
}

"""  # noqa: E501

SHORT_PARSABLE = """HloModule m, entry_computation_layout={(f32[12]{0})->(f32[], f32[12]{0}, f32[12]{0}, f32[12]{0}, f32[12]{0}, /*index=5*/f32[12]{0}, s32[2]{0})}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[12]{0} parameter(0)
  z = f32[] constant(0.5)
  k = f32[12]{0} constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  i = s32[2]{0} constant({3, 4})
  y = f32[12]{0} add(x, k), backend_config="b"
  r = f32[] reduce(y, z), dimensions={0}, to_apply=add
  ROOT t = (f32[], f32[12]{0}, f32[12]{0}, f32[12]{0}, f32[12]{0}, /*index=5*/f32[12]{0}, s32[2]{0}) tuple(r, x, x, x, x, y, i)
}

"""  # noqa: E501

CANONICAL = """HloModule m, entry_computation_layout={(f32[12]{0})->(f32[], f32[12]{0}, f32[12]{0}, f32[12]{0}, f32[12]{0}, /*index=5*/f32[12]{0}, s32[2]{0})}

add {
  tmp_0 = f32[] parameter(0)
  tmp_1 = f32[] parameter(1)
  ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
}

ENTRY e {
  tmp_0 = f32[12]{0} parameter(0)
  tmp_1 = f32[12]{0} constant({...})
  tmp_2 = f32[12]{0} add(f32[12]{0} tmp_0, f32[12]{0} tmp_1)
  tmp_3 = f32[] constant(0.5)
  tmp_4 = f32[] reduce(f32[12]{0} tmp_2, f32[] tmp_3), dimensions={0}, to_apply=
  {
    tmp_0 = f32[] parameter(0)
    tmp_1 = f32[] parameter(1)
    ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
  }
  tmp_5 = s32[2]{0} constant({3, 4})
  ROOT tmp_6 = (f32[], f32[12]{0}, f32[12]{0}, f32[12]{0}, f32[12]{0}, /*index=5*/f32[12]{0}, s32[2]{0}) tuple(f32[] tmp_4, f32[12]{0} tmp_0, f32[12]{0} tmp_0, f32[12]{0} tmp_0, f32[12]{0} tmp_0, f32[12]{0} tmp_2, s32[2]{0} tmp_5)
}

"""  # noqa: E501

EXPECTED = {
    "default": DEFAULT,
    "short_parsable": SHORT_PARSABLE,
    "canonical": CANONICAL,
    "fingerprint": CANONICAL.replace("HloModule m", "HloModule ")
    .replace("add {\n", "{\n")
    .replace("ENTRY e", "ENTRY")
    .replace("constant(0.5)", "constant({...})"),
}


@pytest.mark.parametrize("preset", EXPECTED)
def test_presets(preset: str) -> None:
    assert parse(TEXT).to_string(preset) == EXPECTED[preset]


@pytest.mark.oracle
@pytest.mark.parametrize("preset", EXPECTED)
def test_jaxlib_writes_the_same(preset: str) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    module = hlo.hlo_module_from_text(TEXT)
    everything = hlo.HloPrintOptions()
    everything.print_large_constants = True
    options = hlo.HloPrintOptions() if preset == "default" else getattr(hlo.HloPrintOptions, preset)()
    assert parse(module.to_string(everything)).to_string(preset) == module.to_string(options)


def test_unknown_presets_are_named() -> None:
    with pytest.raises(ValueError, match="found preset 'pretty', expected one of default, lossless, short_parsable"):
        parse(TEXT).to_string("pretty")


def test_options_can_be_combined() -> None:
    module = parse(TEXT)
    text = print_module(module, PrintOptions(percent=False, metadata=False, large_constants=True))
    assert "y = f32[12]{0} add(x, k), backend_config" in text
    assert "constant({1, 2, 3" in text


def test_parts_can_be_printed_alone() -> None:
    module = parse(TEXT)
    assert print_computation(module.find("add")) == DEFAULT.split("\n\n")[1]
    root = module.entry_computation.root
    assert print_instruction(root.operand(0)) == "%r = f32[] reduce(%y, %z), dimensions={0}, to_apply=%add"
    assert print_instruction(root.operand(1), "short_parsable") == "x = f32[12]{0} parameter(0)"


def test_the_text_of_an_instruction_is_complete() -> None:
    module = parse("ENTRY e { p = f32[2] parameter(0)\n c = f32[2] constant({1, 2})\n ROOT r = add(p, c) }")
    assert [str(instruction) for instruction in module.entry_computation.instructions] == [
        "%p = f32[2]{0} parameter(0)",
        "%c = f32[2]{0} constant({1, 2})",
        "%r = f32[2]{0} add(%p, %c)",
    ]


def test_operands_are_written_before_users_even_when_they_were_added_later() -> None:
    module = parse("HloModule m\nENTRY e { x = f32[] parameter(0)\n ROOT y = f32[] negate(x) }")
    entry = module.entry_computation
    late = entry.add(entry.root.clone([entry.find("x")], name="late"))
    entry.root.replace_operand(0, late)
    text = str(module)
    assert text.index("%late =") < text.index("ROOT %y")
    assert str(parse(text)) == text


def test_scheduled_modules_keep_their_order() -> None:
    lines = "  %x = f32[] parameter(0)\n  %b = f32[] abs(%x)\n  %a = f32[] negate(%x)\n  ROOT %y = f32[] add(%a, %b)\n"
    text = (
        "HloModule m, is_scheduled=true, entry_computation_layout={(f32[])->f32[]}\n\n"
        f"ENTRY %e (x: f32[]) -> f32[] {{\n{lines}}}\n\n"
    )
    assert str(parse(text)) == text


def test_built_modules_print_and_parse() -> None:
    builder = Builder("main")
    x = builder.parameter(Shape.array(DType.F32, (2, 3)), name="x")
    module = builder.build_module(x + x)
    assert str(parse(str(module))) == str(module)


@pytest.mark.parametrize("literal", ["f32[] 0.5", "s32[2]{0} {1, 2}", "( s32[2]{0} {1, 2}, ( pred[] true ) )", "(  )"])
def test_attributes_stand_where_and_as_xla_writes_them(literal: str) -> None:
    text = f"""HloModule m, entry_computation_layout={{(f32[])->f32[]}}

%f (p: f32[]) -> f32[] {{
  ROOT %p = f32[] parameter(0)
}}

ENTRY %e (x: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %t = f32[] custom-call(%x), custom_call_target="t", literal=( {literal} )
  ROOT %c = f32[] call(%t), to_apply=%f, is_composite=true, frontend_attributes={{composite.name="n"}}
}}

"""
    assert str(parse(text)) == text


def test_deeply_nested_literals_of_attributes_are_refused() -> None:
    text = f'ENTRY e {{ ROOT r = f32[] custom-call(), custom_call_target="t", literal={"(" * 500} }}'
    with pytest.raises(ParseError, match="nested more than 100 deep"):
        parse(text)
