"""Which computations are recognised as finding an extreme with its position, however they are spelt."""

import pytest

from xlalite.hlo.ir.extreme import Extreme, recognise_extreme
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse


def module_of(body: str, value: str = "f32", position: str = "s32") -> HloModule:
    return parse(f"""HloModule m
pick {{ a = {value}[] parameter(0)
 i = {position}[] parameter(1)
 b = {value}[] parameter(2)
 j = {position}[] parameter(3)
 {body.replace("$T", value).replace("$P", position)} }}
ENTRY e {{ x = {value}[4,8] parameter(0)
 n = {position}[4,8] iota(), iota_dimension=1
 s = {value}[] parameter(1)
 z = {position}[] constant(0)
 ROOT r = ({value}[4], {position}[4]) reduce(x, n, s, z), dimensions={{1}}, to_apply=pick }}""")


def recognised(body: str, value: str = "f32", position: str = "s32") -> Extreme | None:
    root = module_of(body, value, position).entry_computation.root
    return recognise_extreme(root.called_computations[0])


CHOICE = """x = $T[] select(w, a, b)
 k = $P[] select(w, i, j)
 ROOT r = ($T[], $P[]) tuple(x, k)"""
JAX = """w = pred[] compare(a, b), direction=$D
 nan = pred[] compare(a, a), direction=NE
 first = pred[] or(w, nan)
 equal = pred[] compare(a, b), direction=EQ
 earlier = pred[] compare(i, j), direction=LT
 tie = pred[] and(equal, earlier)
 index = pred[] or(first, tie)
 x = $T[] select(first, a, b)
 k = $P[] select(index, i, j)
 ROOT r = ($T[], $P[]) tuple(x, k)"""
SMALLER_POSITION_OF_EQUALS = """w = pred[] compare(a, b), direction=GE
 x = $T[] select(w, a, b)
 equal = pred[] compare(a, b), direction=EQ
 low = $P[] minimum(i, j)
 n = $P[] select(w, i, j)
 k = $P[] select(equal, low, n)
 ROOT r = ($T[], $P[]) tuple(x, k)"""
FIRST = f"""ge = pred[] compare(a, b), direction=GE
 nan = pred[] compare(a, a), direction=NE
 w = pred[] or(ge, nan)
 {CHOICE}"""
LAST = """ge = pred[] compare(b, a), direction=GE
 nan = pred[] compare(b, b), direction=NE
 w = pred[] or(ge, nan)
 x = $T[] select(w, b, a)
 k = $P[] select(w, j, i)
 ROOT r = ($T[], $P[]) tuple(x, k)"""
NAN_AFTER = f"""ge = pred[] compare(a, b), direction=GE
 nan = pred[] compare(b, b), direction=NE
 w = pred[] or(ge, nan)
 {CHOICE}"""
NEGATED = f"""lt = pred[] compare(a, b), direction=LT
 not = pred[] not(lt)
 number = pred[] compare(b, b), direction=EQ
 nan = pred[] compare(a, a), direction=NE
 c = pred[] and(not, number)
 w = pred[] or(c, nan)
 {CHOICE}"""
WIDENED = f"""wa = f32[] convert(a)
 wb = f32[] convert(b)
 ge = pred[] compare(wa, wb), direction=GE
 nan = pred[] compare(wa, wa), direction=NE
 w = pred[] or(ge, nan)
 {CHOICE}"""
WITHOUT_NAN = f"w = pred[] compare(a, b), direction=GE\n {CHOICE}"


@pytest.mark.parametrize(
    ("body", "value", "found"),
    [
        (JAX.replace("$D", "GT"), "f32", "first maximum, NaN before all numbers"),
        (JAX.replace("$D", "LT"), "bf16", "first minimum, NaN before all numbers"),
        (JAX.replace("$D", "LT"), "s8", "first minimum"),
        (SMALLER_POSITION_OF_EQUALS, "s32", "first maximum"),
        (SMALLER_POSITION_OF_EQUALS, "u64", "first maximum"),
        (FIRST, "f64", "first maximum, NaN before all numbers"),
        (LAST, "f16", "last maximum, NaN before all numbers"),
        (NAN_AFTER, "f32", "first maximum, NaN after all numbers"),
        (NEGATED, "f32", "first maximum, NaN before all numbers"),
        (WIDENED, "bf16", "first maximum, NaN before all numbers"),
        (WITHOUT_NAN, "u8", "first maximum"),
        (WITHOUT_NAN, "pred", "first maximum"),
        (WITHOUT_NAN.replace("GE", "GT"), "s64", "last maximum"),
        (WITHOUT_NAN.replace("GE", "LE"), "s64", "first minimum"),
    ],
)
def test_every_spelling_is_recognised(body: str, value: str, found: str) -> None:
    assert str(recognised(body, value)) == found


def test_jax_gives_the_last_of_equal_zeros_and_the_first_position() -> None:
    extreme = recognised(JAX.replace("$D", "GT"))
    assert extreme is not None
    assert (extreme.last_value, extreme.last_position, extreme.has_one_winner) == (True, False, False)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        # NaN has no place in the order: numbers after it win, numbers before it lose.
        (WITHOUT_NAN, "f32"),
        (WITHOUT_NAN.replace("GE", "LT"), "f32"),
        (SMALLER_POSITION_OF_EQUALS, "f32"),
        # The first of NaNs, the last of equal numbers.
        (FIRST.replace("GE", "GT"), "f32"),
        # The value of the maximum, the position of the minimum.
        (WITHOUT_NAN.replace("select(w, i, j)", "select(w, j, i)"), "s32"),
        # The order of bits, where -0 is less than +0.
        (FIRST.replace("direction=GE", "direction=GE, type=TOTALORDER"), "f32"),
        # A position that is none of the two.
        (WITHOUT_NAN.replace("k = $P[] select(w, i, j)", "k = $P[] add(i, j)"), "s32"),
        # The smaller position, whatever the values.
        (WITHOUT_NAN.replace("k = $P[] select(w, i, j)", "k = $P[] minimum(i, j)"), "s32"),
        # The relation of a value to a position.
        (WITHOUT_NAN.replace("compare(a, b)", "compare(a, j)"), "s32"),
        # Rounded before they are compared.
        (WIDENED.replace("f32[]", "bf16[]"), "f32"),
    ],
)
def test_what_looks_alike_is_not_recognised(body: str, value: str) -> None:
    assert recognised(body, value) is None
