"""Special values, lanes, narrow formats, and how functions are shared."""

import math

import numpy as np
import pytest

from xlalite.backends.codegen.llvm import F32, F64, I32, LLVMBuildError, ModuleBuilder, constant, vector
from xlalite.backends.codegen.math import MATH_FUNCTIONS, emit_math

INF, NAN = math.inf, math.nan
SPECIAL = {
    "exponential": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (1e30, INF), (-1e30, 0)],
    "exponential-minus-one": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1), (1e-40, 1e-40), (-1e30, -1)],
    "log": [(1, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (-INF, NAN), (-1e-40, NAN)],
    "log-plus-one": [(0.0, 0.0), (-0.0, -0.0), (-1, -INF), (-2, NAN), (INF, INF), (-INF, NAN), (1e-40, 1e-40)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (1e-40, 1e-40), (-1e-40, -1e-40), (50, 1)],
    "logistic": [(0.0, 0.5), (INF, 1), (-INF, 0), (200, 1)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e-40, 1e-40), (1000, INF)],
    "cosh": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (-1000, INF)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (10, 1)],
    "sine": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "cosine": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1, math.pi / 2), (-1, -math.pi / 2), (2, NAN), (INF, NAN)],
    "acos": [(1, 0.0), (-1, math.pi), (0.0, math.pi / 2), (1.5, NAN), (-INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2), (1e-40, 1e-40), (1, math.pi / 4)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e-40, 1e-40)],
    "acosh": [(1, 0.0), (0.5, NAN), (-INF, NAN), (INF, INF)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1, INF), (-1, -INF), (2, NAN), (INF, NAN), (1e-40, 1e-40)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1, NAN), (4, 2)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1, NAN), (4, 0.5)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (-8, -2), (27, 3), (2.0**-147, 2.0**-49)],
}
POWER = [
    *[(x, 0.0, 1) for x in (0.0, -0.0, 1, -3, INF, -INF, NAN)],
    *[(x, -0.0, 1) for x in (0.0, INF, NAN)],
    *[(1, y, 1) for y in (5, -0.5, INF, -INF, NAN)],
    *[(-1, INF, 1), (-1, -INF, 1), (-1, 3, -1), (-1, 4, 1), (-1, 0.5, NAN), (-1, NAN, NAN)],
    *[(0.0, 3, 0.0), (-0.0, 3, -0.0), (0.0, 2, 0.0), (-0.0, 2, 0.0), (0.0, 0.5, 0.0), (-0.0, 0.5, 0.0)],
    *[(0.0, -3, INF), (-0.0, -3, -INF), (-0.0, -2, INF), (-0.0, -0.5, INF), (0.0, INF, 0.0), (0.0, -INF, INF)],
    *[(INF, 2, INF), (INF, -2, 0.0), (-INF, 3, -INF), (-INF, 2, INF), (-INF, -3, -0.0), (-INF, -2, 0.0)],
    *[(-INF, 0.5, INF), (-INF, -0.5, 0.0), (0.5, INF, 0.0), (0.5, -INF, INF), (-2, INF, INF), (-2, -INF, 0.0)],
    *[(-8, 1 / 3, NAN), (-2, 3, -8), (-2, 2, 4), (4, 0.5, 2), (2, 200000, INF), (-2, 200001, -INF)],
    *[(0.5, 200000, 0.0), (-0.5, 200001, -0.0), (NAN, 2, NAN), (2, NAN, NAN), (-2, 2.0**60, INF), (3, 2, 9)],
]
PI = math.pi
ATAN2 = [
    *[(0.0, 1, 0.0), (-0.0, 1, -0.0), (0.0, -1, PI), (-0.0, -1, -PI), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0)],
    *[(0.0, -0.0, PI), (-0.0, -0.0, -PI), (1, 0.0, PI / 2), (-1, -0.0, -PI / 2), (1, 1, PI / 4), (1, -1, 3 * PI / 4)],
    *[(1, INF, 0.0), (-1, INF, -0.0), (1, -INF, PI), (-1, -INF, -PI), (INF, 1, PI / 2), (-INF, -1, -PI / 2)],
    *[(INF, INF, PI / 4), (-INF, INF, -PI / 4), (INF, -INF, 3 * PI / 4), (-INF, -INF, -3 * PI / 4)],
    *[(NAN, 1, NAN), (1, NAN, NAN), (INF, NAN, NAN), (1e-40, 1, 1e-40), (0.0, INF, 0.0), (0.0, -INF, PI)],
]
REMAINDER = [
    *[(5.5, 2, 1.5), (-5.5, 2, -1.5), (5.5, -2, 1.5), (4, 2, 0.0), (-4, 2, -0.0), (1, INF, 1), (-1, -INF, -1)],
    *[(INF, 2, NAN), (1, 0.0, NAN), (0.0, 3, 0.0), (-0.0, 3, -0.0), (NAN, 1, NAN), (1, NAN, NAN), (1e30, 7, None)],
    *[(0.0, 0.0, NAN), (1e-40, 1, 1e-40), (2.0**-148, 2.0**-149, 0.0)],
]


def assert_same(got, expected):
    np.testing.assert_array_equal(got, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("target", ["host", "avx2", "baseline"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(apply_math, name, dtype, target):
    x, expected = np.array([*SPECIAL[name], (NAN, NAN)]).astype(dtype).T
    assert_same(apply_math(name, x.copy(), target=target), expected)


@pytest.mark.parametrize("target", ["host", "avx2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "rows"),
    [("power", POWER), ("atan2", ATAN2), ("remainder", REMAINDER)],
    ids=["power", "atan2", "remainder"],
)
def test_special_values_of_two_operands(apply_math, name, rows, dtype, target):
    with np.errstate(over="ignore", under="ignore"):
        x, y = (np.array([row[i] for row in rows]).astype(dtype) for i in range(2))
        expected = np.array([np.nan if row[2] is None else row[2] for row in rows]).astype(dtype)
    known = np.array([row[2] is not None for row in rows])
    assert_same(apply_math(name, x, y, target=target)[known], expected[known])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MATH_FUNCTIONS)
def test_a_lane_does_not_depend_on_the_width(apply_math, rng, name, dtype):
    bits = {4: np.uint32, 8: np.uint64}[dtype().itemsize]
    arrays = [
        np.concatenate(
            [
                rng.integers(0, np.iinfo(bits).max, 50, dtype=bits, endpoint=True).view(dtype),
                rng.standard_normal(150).astype(dtype),
            ]
        )
        for _ in range(MATH_FUNCTIONS[name].arity)
    ]
    scalar = apply_math(name, *arrays, lanes=1)
    for lanes in (2, 5, 16, 32):
        wide = apply_math(name, *arrays, lanes=lanes)
        same = (wide.view(bits) == scalar.view(bits)) | (np.isnan(wide) & np.isnan(scalar))
        assert same.all(), f"{lanes} lanes: {[a[~same] for a in arrays]}"


@pytest.mark.parametrize("name", ["sine", "cosine", "tan"])
def test_one_huge_angle_leaves_other_lanes_alone(apply_math, rng, name):
    x = rng.standard_normal(16).astype(np.float32)
    calm = apply_math(name, x)
    x[5] = 3e38
    mixed = apply_math(name, x)
    others = np.arange(16) != 5
    np.testing.assert_array_equal(mixed[others], calm[others])


def test_short_functions_stand_in_place_and_long_ones_are_shared():
    module = ModuleBuilder("sharing")
    wide = vector(F32, 16)
    fb = module.function("f", wide, (wide,))
    x = emit_math(fb, "exponential", fb.parameters[0])
    x = emit_math(fb, "power", x, emit_math(fb, "power", x, x))
    fb.ret(x)
    other = module.function("g", wide, (wide,))
    other.ret(emit_math(other, "power", *other.parameters * 2))
    text = module.text()
    assert text.count("define internal <16 x float> @xlalite.power.v16f32") == 1
    assert text.count("call <16 x float> @xlalite.power.v16f32") == 3
    assert "@xlalite.exponential" not in text


def test_contraction_never_changes_a_function():
    texts = []
    for contract in (True, False):
        module = ModuleBuilder("same", contract=contract)
        fb = module.function("f", F64, (F64,))
        fb.ret(emit_math(fb, "exponential", fb.parameters[0]))
        texts.append(module.text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("name", "operands", "message"),
    [
        ("gamma", [constant(F32, 1)], "no function 'gamma'; there are exponential,"),
        ("power", [constant(F32, 1)], "power takes 2 operands"),
        ("tanh", [constant(I32, 1)], "tanh takes f32 or f64"),
        ("atan2", [constant(F32, 1), constant(F64, 1)], "atan2 takes f32 or f64"),
    ],
)
def test_wrong_operands_are_refused(name, operands, message):
    fb = ModuleBuilder("wrong").function("f", F32)
    with pytest.raises(LLVMBuildError, match=message):
        emit_math(fb, name, *operands)
