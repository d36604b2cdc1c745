"""Patterns: nesting, binding, any order, conditions, search and explanations."""

import pytest

from xlalite.hlo import HloInstruction, Shape, parse
from xlalite.hlo.tools.matcher import any_value, constant, one_of, op, parameter, splat
from xlalite.hlo.types.dtype import DType

TEXT = """HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  two = f32[] constant(2)
  b = f32[4] broadcast(two), dimensions={}
  mul = f32[4] multiply(x, b)
  sub = f32[4] subtract(y, mul)
  sum = f32[4] add(y, mul)
  neg = f32[4] negate(sum)
  sq = f32[4] multiply(sum, sum)
  ROOT t = (f32[4], f32[4], f32[4]) tuple(sub, neg, sq)
}"""


@pytest.fixture
def find():
    return parse(TEXT).entry_computation.find


def test_nested_pattern_binds_names(find):
    pattern = op("subtract", any_value("lhs"), op("multiply", parameter(0).bind("x"), splat(2)).bind("product"))
    match = pattern.match(find("sub"))
    assert match is not None
    assert match.root is find("sub")
    assert dict(match) == {"lhs": find("y"), "product": find("mul"), "x": find("x")}
    assert pattern.explain(find("sub")) == ""


def test_commutative_operands_match_in_any_order(find):
    pattern = op("add", op("multiply", splat(2), any_value("x")), any_value("y"))
    match = pattern.match(find("sum"))
    assert match is not None
    assert (match["x"], match["y"]) == (find("x"), find("y"))


def test_operands_of_other_operations_keep_their_order(find):
    pattern = op("subtract", op("multiply"), any_value())
    assert pattern.match(find("sub")) is None
    assert op("subtract", op("multiply"), any_value(), any_order=True).match(find("sub")) is not None
    assert op("add", op("multiply"), any_value(), any_order=False).match(find("sum")) is None


def test_same_name_must_be_the_same_instruction(find):
    square = op("multiply", any_value("x"), any_value("x"))
    assert square.match(find("sq")) is not None
    assert square.match(find("mul")) is None
    assert "bound to 'x'" in square.explain(find("mul"))


def test_a_first_choice_that_leads_nowhere_is_taken_back(find):
    # Operand 0 matches `a` in the first order, but then the outer pattern needs it to be the other operand.
    inner = op("add", any_value("a"), any_value("b"))
    pattern = op("tuple", any_value(), any_value(), op("multiply", inner, inner.bind("whole"))).bind("t")
    assert len(list(pattern.matches(find("t")))) >= 2
    wanted = op("tuple", op("subtract", any_value("b"), any_value("a")), op("negate", inner), any_value())
    match = wanted.match(find("t"))
    assert match is not None
    assert (match["a"], match["b"]) == (find("mul"), find("y"))


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        (op(["add", "subtract"]), "sum", True),
        (op(["add", "subtract"]), "neg", False),
        (any_value().with_users(2), "sum", True),
        (any_value().with_one_user(), "sum", False),
        (any_value().with_one_use(), "neg", True),
        (any_value().with_shape(Shape.array(DType.F32, (4,))), "neg", True),
        (any_value().with_shape(Shape.array(DType.F32, (5,))), "neg", False),
        (any_value().with_dtype(DType.F64, DType.F32), "neg", True),
        (any_value().with_dtype(DType.S32), "neg", False),
        (any_value().with_rank(1), "neg", True),
        (any_value().with_rank(1), "t", False),
        (op("broadcast").with_attribute("dimensions", ()), "b", True),
        (op("broadcast").with_attribute("dimensions", (0,)), "b", False),
        (any_value().with_attribute("dimensions", ()), "neg", False),
        (constant(2), "two", True),
        (constant(3), "two", False),
        (constant(), "two", True),
        (constant(2 + 0j), "two", True),
        (splat(2), "b", True),
        (parameter(1), "y", True),
        (parameter(0), "y", False),
        (op("negate") | op("add"), "sum", True),
        (one_of(op("negate"), op("abs")), "sum", False),
        (any_value().where(lambda one: one.name == "neg", "the name neg"), "neg", True),
        (any_value().where(lambda one: one.name == "neg", "the name neg"), "sum", False),
        (op("add", any_value()), "sum", False),
    ],
)
def test_conditions(find, pattern, name, matches):
    instruction: HloInstruction = find(name)
    assert (pattern.match(instruction) is not None) == matches
    assert (pattern.explain(instruction) == "") == matches


def test_explanation_names_the_deepest_stumbling_block(find):
    pattern = op("negate", op("add", any_value(), op("multiply", any_value(), splat(3))))
    assert pattern.explain(find("neg")) == (
        "%two (operand 0 of operand 1 of operand 1 of operand 0 of the root): expected a constant 3"
    )
    assert op("abs").explain(find("neg")) == "%neg: operation is negate, expected abs"
    assert op("add", any_value()).explain(find("sum")) == "%sum: has 2 operands, expected 1"


def test_find_goes_through_a_module(find):
    module = find("t").module
    assert [match.root.name for match in op("multiply").find(module)] == ["mul", "sq"]
    assert not list(op("divide").find(module.entry_computation))
