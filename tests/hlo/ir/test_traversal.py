"""Ways through programs."""

import pytest

from xlalite.hlo import HloModule, XlaliteError, parse
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.traversal import (
    callees,
    callees_first,
    callers,
    canonical_order,
    dependencies,
    dependencies_first,
    reachable,
    structural_order,
)

TEXT = """HloModule m
double {
  p = f32[4] parameter(0)
  ROOT d = f32[4] add(p, p)
}
unused {
  u = f32[4] parameter(0)
  ROOT v = f32[4] call(u), to_apply=double
}
ENTRY main {
  x = f32[4] parameter(0)
  k = f32[2,4] constant({{1,2,3,4},{5,6,7,8}})
  one = f32[4] call(x), to_apply=double
  two = f32[4] call(one), to_apply=double
  three = f32[4] multiply(one, two), control-predecessors={k}
  ROOT t = (f32[4], f32[2,4]) tuple(three, k)
}"""


@pytest.fixture
def module() -> HloModule:
    return parse(TEXT)


def names(found) -> list[str]:
    return [one.name for one in found]


def test_instructions_come_callees_first(module: HloModule) -> None:
    assert names(module.instructions()) == ["p", "d", "u", "v", "x", "k", "one", "two", "three", "t"]


def test_instructions_leave_out_what_is_removed_meanwhile(module: HloModule) -> None:
    main = module.entry_computation
    seen = []
    for instruction in module.instructions():
        seen.append(instruction.name)
        if instruction.name == "one":
            replace(main.find("two"), main.find("x"))
    assert seen[-3:] == ["one", "three", "t"]


def test_post_order_takes_control_predecessors_first_and_operands_from_left_to_right(module: HloModule) -> None:
    main = module.entry_computation
    assert names(dependencies_first([main.root])) == ["k", "x", "one", "two", "three", "t"]
    assert names(main.post_order()) == ["x", "k", "one", "two", "three", "t"]
    assert names(canonical_order(main)) == ["k", "x", "one", "two", "three", "t"]
    assert names(structural_order(module.find("unused"))) == ["u", "v"]


def test_reachable_gives_the_nearest_first_and_no_more_than_asked_for(module: HloModule) -> None:
    main = module.entry_computation
    assert names(reachable([main.find("three")], dependencies)) == ["three", "k", "one", "two", "x"]
    asked = []

    def step(number: int) -> tuple[int, int]:
        asked.append(number)
        return number + 1, number + 2

    assert 2 in reachable([0], step)
    assert asked == [0, 1]


def test_callees_and_callers(module: HloModule) -> None:
    main, double, unused = module.entry_computation, module.find("double"), module.find("unused")
    assert callees(main) == (double,)
    assert callees_first([main]) == (double, main)
    found = callers(module)
    assert names(found[double]) == ["v", "one", "two"]
    assert found[main] == found[unused] == ()


def test_cycles_are_named(module: HloModule) -> None:
    main = module.entry_computation
    main.find("one").set_operands([main.find("two")])
    with pytest.raises(XlaliteError, match="computation main: %one depends on itself"):
        main.post_order()
    double = module.find("double")
    double.root.called_computations = (module.find("unused"),)
    with pytest.raises(XlaliteError, match="computation unused calls itself"):
        callees_first([module.find("unused")])


def test_orders_follow_every_kind_of_change(module: HloModule) -> None:
    main = module.entry_computation
    one, two, three, k = map(main.find, ("one", "two", "three", "k"))
    x = main.find("x")

    def change_calls() -> None:
        two.called_computations = (module.find("unused"),)

    changes = (
        lambda: two.set_operands([x]),
        lambda: one.set_operands([two]),
        lambda: three.drop_control_predecessor(k),
        lambda: k.add_control_predecessor(three),
        lambda: one.replace_all_uses_with(x),
        lambda: main.remove(one),
        lambda: main.add(two.clone([x], name="y")),
        lambda: main.set_order([*reversed(main.instructions)]),
        change_calls,
        lambda: module.set_entry(module.find("double")),
    )
    for number, change in enumerate(changes):
        main.post_order()
        module.computations()
        change()
        assert main.post_order() == dependencies_first(main.instructions), number
        starts = [each for each in map(module.find, ("double", "unused", "main")) if not each.is_entry]
        assert module.computations() == callees_first([*starts, module.entry_computation]), number


def test_long_chains_need_no_stack() -> None:
    count = 20_000
    lines = "\n".join(f"  x{i + 1} = f32[] negate(x{i})" for i in range(count))
    entry = parse(f"HloModule m\nENTRY e {{\n  x0 = f32[] parameter(0)\n{lines}\n}}").entry_computation
    assert names(dependencies_first([entry.root])) == [f"x{i}" for i in range(count + 1)]
