"""Numbers about modules, and what notebooks show of them."""

import html
import re
from collections.abc import Callable

import pytest

import xlalite
from xlalite.hlo import XlaliteError, collect_statistics, parse, print_computation

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


def shown_texts(shown: str) -> list[str]:
    """The texts of the computations, without colours."""
    return [html.unescape(re.sub("<[^>]*>", "", text)) for text in re.findall("<pre>(.*?)</pre>", shown, re.DOTALL)]


def test_notebooks_show_a_picture_and_the_texts_with_the_entry_open_and_first() -> None:
    module = parse(TEXT)
    shown = module._repr_html_()
    assert shown.count("<svg ") == 1
    assert shown_texts(shown) == [print_computation(one).rstrip() for one in reversed(module.computations())]
    assert "<details open><summary>ENTRY main" in shown
    assert "<details><summary>double, 2 instructions" in shown
    assert ' <b class="elementwise">multiply</b>(' in shown
    assert shown_texts(module.find("double")._repr_html_()) == [print_computation(module.find("double")).rstrip()]


def test_notebooks_take_nothing_from_the_program_for_html() -> None:
    assert "<b>&" not in parse(TEXT)._repr_html_()


def test_notebooks_show_the_first_thousand_lines() -> None:
    lines = ["ENTRY main {", "x0 = f32[] parameter(0)", *(f"x{i} = f32[] negate(x{i - 1})" for i in range(1, 1500))]
    (text,) = shown_texts(parse("\n".join([*lines, "}"]))._repr_html_())
    assert text.count("\n") == 1000
    assert text.endswith("more lines")


def test_notebooks_show_executables_with_what_their_code_was_made_of() -> None:
    shown = xlalite.compile(parse(TEXT))._repr_html_()
    assert shown.startswith("<p>&lt;cpu executable m: ")
    assert "<svg " in shown


class Shell:
    """What a magic sees of IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, object] = {}
        self.magics: dict[str, Callable[..., object]] = {}

    def register_magic_function(self, function: Callable[..., object], kind: str, name: str) -> None:
        assert kind in ("line", "cell")
        self.magics[name] = function


def test_magics_make_modules_and_explain_them(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    xlalite.load_ipython_extension(shell)
    module = shell.magics["hlo"](" m ", TEXT)
    assert shell.user_ns == {"m": module}
    with pytest.raises(XlaliteError):
        shell.magics["hlo"]("", TEXT.replace("f32[4] multiply", "f32[5] multiply"))
    shell.magics["xlalite_explain"]("m")
    assert "kernel planner" in capsys.readouterr().out
    shell.magics["xlalite_explain"]("m %nobody")
    assert capsys.readouterr().out == "nothing was decided about it\n"
    with pytest.raises(XlaliteError, match="'x' is no variable that holds a module"):
        shell.magics["xlalite_explain"]("x")
    page = shell.magics["xlalite_dump"]("m")
    assert isinstance(page, str)
    assert page.startswith("<!DOCTYPE html>")
    framed = page._repr_html_()  # type: ignore[attr-defined]  # notebooks ask for it
    assert framed.startswith('<iframe srcdoc="&lt;!DOCTYPE html')


def test_instructions_and_computations_print_themselves() -> None:
    computation = parse(TEXT).computations()[0]
    assert computation.instructions[1].to_string() == "%d = f32[4]{0} add(%p, %p)"
    assert computation.to_string("short_parsable").startswith("double {")
