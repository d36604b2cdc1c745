"""Instructions that take the place of others."""

import pytest

from xlalite.hlo import HloModule, ShapeError, XlaliteError, parse, verify
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import remove_dead, replace

TEXT = """HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] exponential(a), control-predecessors={x}, metadata={op_name="b"}, result_accuracy={mode=highest}
  c = f32[4] sine(b), control-predecessors={b}
  ROOT t = (f32[4], f32[4]) tuple(b, c)
}"""


@pytest.fixture
def module() -> HloModule:
    return parse(TEXT)


def test_users_control_dependencies_and_metadata_go_over(module: HloModule) -> None:
    main = module.entry_computation
    x, old = main.find("x"), main.find("b")
    inner = create("abs", (x,))
    new = create("sqrt", (inner,))
    assert replace(old, new) == (inner, new)
    assert main.find("c").operands == (new,)
    assert main.find("c").control_predecessors == (new,)
    assert new.control_predecessors == (x,)
    assert {inner.metadata.op_name, new.metadata.op_name} == {"b"}
    assert new.extra_attributes == ()
    assert [one.name for one in main.post_order()] == ["x", "abs", "sqrt", "c", "t"]
    verify(module)


def test_the_same_operation_keeps_its_result_accuracy(module: HloModule) -> None:
    main = module.entry_computation
    new = create("exponential", (main.find("x"),))
    replace(main.find("b"), new)
    assert new.extra_attributes == (("result_accuracy", "{mode=highest}"),)


def test_what_was_there_keeps_what_it_had(module: HloModule) -> None:
    main = module.entry_computation
    replace(main.find("c"), main.find("b"))
    assert main.root.operands == (main.find("b"),) * 2
    assert main.find("b").control_predecessors == (main.find("x"),)
    assert replace(main.find("b"), main.find("a")) == ()
    assert main.find("a").extra_attributes == ()
    verify(module)


def test_another_shape_and_a_loose_place_are_refused(module: HloModule) -> None:
    main = module.entry_computation
    with pytest.raises(ShapeError, match=r"replacing %b by %is-finite: found pred\[4\], expected f32\[4\]"):
        replace(main.find("b"), create("is-finite", (main.find("a"),)))
    with pytest.raises(XlaliteError, match="replacing %abs: it belongs to no computation"):
        replace(create("abs", (main.find("x"),)), main.find("x"))


def test_the_dead_go_with_what_only_they_use(module: HloModule) -> None:
    main = module.entry_computation
    main.set_root(main.find("x"))
    remove_dead(main.find("t"))
    assert [one.name for one in main.instructions] == ["x"]


def test_others_stay(module: HloModule) -> None:
    main = module.entry_computation
    for name in ("t", "b", "x"):
        remove_dead(main.find(name))
    assert len(main) == 5
    main.set_root(main.find("b"))
    main.remove(main.find("t"))
    main.set_root(main.find("a"))
    main.find("c").set_operands([main.find("a")])
    remove_dead(main.find("b"))  # c must run after it.
    assert main.find("b").parent is main


def test_the_loose_let_go(module: HloModule) -> None:
    a = module.entry_computation.find("a")
    loose = create("abs", (create("cosine", (a,)),))
    assert a.user_count == 2
    remove_dead(loose)
    assert a.user_count == 1
