"""Numbers about modules, and what notebooks show of them."""

import html

from xlalite.hlo import collect_statistics, parse

TEXT = """HloModule m
double {
  p = f32[4] parameter(0)
  ROOT d = f32[4] add(p, p)
}
ENTRY main {
  x = f32[4] parameter(0)
  k = f32[2,4] constant({{1,2,3,4},{5,6,7,8}})
  one = f32[4] call(x), to_apply=double
  two = f32[4] call(one), to_apply=double, metadata={op_name="<b>&\\"'"}
  three = f32[4] multiply(one, two), control-predecessors={k}
  ROOT t = (f32[4], f32[2,4]) tuple(three, k)
}"""


def test_statistics_of_a_module_and_of_a_computation():
    module = parse(TEXT)
    found = collect_statistics(module)
    assert (found.computation_count, found.instruction_count) == (2, 8)
    assert dict(found.opcodes) == {"call": 2, "parameter": 2, "add": 1, "constant": 1, "multiply": 1, "tuple": 1}
    assert next(iter(found.opcodes)) == "call"
    assert (found.parameter_bytes, found.result_bytes, found.constant_bytes) == (16, 48, 32)
    assert found.value_bytes == 16 * 6 + 32
    assert (found.depth, found.largest_fan_out) == (5, 2)
    assert found.mean_fan_out == 7 / 8
    assert "8 instructions in 2 computations" in str(found)
    assert collect_statistics(module.find("double")).depth == 2


def test_notebooks_show_the_text() -> None:
    module = parse(TEXT)
    for subject in (module, module.find("double")):
        shown = subject._repr_html_()
        assert shown.startswith("<pre>")
        assert html.unescape(shown.removeprefix("<pre>").removesuffix("</pre>")) == subject.to_string().rstrip("\n")


def test_notebooks_take_nothing_from_the_program_for_html() -> None:
    assert "<b>" not in parse(TEXT)._repr_html_()


def test_notebooks_show_the_first_thousand_lines() -> None:
    lines = ["ENTRY main {", "x0 = f32[] parameter(0)", *(f"x{i} = f32[] negate(x{i - 1})" for i in range(1, 1500))]
    shown = parse("\n".join([*lines, "}"]))._repr_html_()
    assert shown.count("\n") == 1000
    assert shown.endswith("more lines</pre>")


def test_instructions_and_computations_print_themselves() -> None:
    computation = parse(TEXT).computations()[0]
    assert computation.instructions[1].to_string() == "%d = f32[4]{0} add(%p, %p)"
    assert computation.to_string("short_parsable").startswith("double {")
