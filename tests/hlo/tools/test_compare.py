"""The structural comparison of two modules."""

from xlalite.hlo import compare_modules, parse

ONE = """HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  e = f32[4] exponential(n)
  ROOT a = f32[4] add(e, n)
}"""


def test_names_and_order_do_not_count():
    other = """HloModule other
ENTRY entry {
  v = f32[4] parameter(0)
  w = f32[4] negate(v)
  u = f32[4] exponential(w)
  ROOT s = f32[4] add(u, w), metadata={op_name="q"}
}"""
    comparison = compare_modules(parse(ONE), parse(other))
    assert comparison.is_same
    assert str(comparison) == ""
    assert len(comparison.computations[0].same) == 4


def test_changes_and_strangers_are_told_apart():
    other = (
        ONE.replace("exponential(n)", "tanh(n)")
        .replace("add(e, n)", "add(e, q)")
        .replace("  e =", "  q = f32[4] abs(n)\n  e =")
    )
    comparison = compare_modules(parse(ONE), parse(other))
    assert not comparison.is_same
    match = comparison.computations[0]
    assert [(one.name, two.name) for one, two in match.same] == [("x", "x"), ("n", "n")]
    assert [change.one.name for change in match.changed] == ["e", "a"]
    assert match.changed[0].reasons == ("operation exponential -> tanh",)
    assert [one.name for one in match.only_other] == ["q"]
    assert "+ %q = f32[4]{0} abs(%n)" in str(comparison)


def test_computation_without_counterpart():
    other = "HloModule m\nextra { ROOT x = f32[] parameter(0) }\n" + ONE.removeprefix("HloModule m\n")
    comparison = compare_modules(parse(ONE), parse(other))
    assert str(comparison) == "+ computation extra: only in B"
    assert list(compare_modules(parse(other), parse(ONE)).computations[-1].lines("left", "right")) == [
        "- computation extra: only in left"
    ]
