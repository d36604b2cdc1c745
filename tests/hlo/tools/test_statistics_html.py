"""Numbers about modules, and their HTML."""

from html.parser import HTMLParser

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


class Checker(HTMLParser):
    """Notes anchors, links and tags; tags must close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name == "href"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def check(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert not checker.open
    assert len(set(checker.ids)) == len(checker.ids)
    assert {link.removeprefix("#") for link in checker.links} <= set(checker.ids)
    return checker


def test_html_of_a_module_is_whole_and_escaped():
    checker = check(parse(TEXT)._repr_html_())
    assert "script" not in checker.seen
    assert checker.seen <= {"style", "div", "details", "summary", "span", "ol", "li", "a", "b"}
    assert '<b>&\\"' in checker.text
    assert "three = f32[4]{0} multiply(%one, %two), control-predecessors={%k}" in checker.text
    assert len(checker.ids) == 2 + 8


def test_html_of_a_computation(tmp_path):
    computation = parse(TEXT).find("double")
    assert "%double" in check(computation._repr_html_()).text
    assert "to_apply=%double %double" in check(parse(TEXT).entry_computation._repr_html_()).text
    computation.render_html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")


def test_long_computations_are_cut():
    lines = ["ENTRY main {", "x0 = f32[] parameter(0)", *(f"x{i} = f32[] negate(x{i - 1})" for i in range(1, 1500))]
    checker = check(parse("\n".join([*lines, "}"]))._repr_html_())
    assert "... 500 more" in checker.text


def test_names_of_jaxlib():
    module = parse(TEXT)
    assert module.computations()[0].instructions[1].to_string() == "%d = f32[4]{0} add(%p, %p)"
    assert module.computations()[0].to_string("short_parsable").startswith("double {")
    assert module.as_serialized_hlo_module_proto() == module.to_proto()
