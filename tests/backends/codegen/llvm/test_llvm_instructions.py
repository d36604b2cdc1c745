"""Every instruction method, run on scalars and on vectors against NumPy."""

import numpy as np
import pytest

from xlalite.backends.codegen.llvm import (
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    PTR,
    VOID,
    TargetInfo,
    constant,
    vector,
    widened,
)

NUMPY = {I8: np.int8, I16: np.int16, I32: np.int32, I64: np.int64, F32: np.float32, F64: np.float64, F16: np.float16}
INTEGERS = np.array([[0, 5, -7, 2**31 - 1, -(2**31), 12, -1, 77], [3, -2, 9, 4, 6, -12, 1, 31]], np.int32)
FLOATS = np.array([[0.5, -0.0, 2.5, np.nan, -np.inf, 3.5, -1.25, 9.0], [2.0, 0.0, -3.0, 1.0, 4.0, 3.5, np.nan, -0.5]])


def run(compile_text, module, emit, lanes, inputs, result):
    """Applies `emit(fb, *values)` to arrays, `lanes` elements at a time."""
    types = [{np.dtype(d): t for t, d in NUMPY.items()}[array.dtype] for array in inputs]
    fb = module.function("apply", VOID, (*[PTR] * len(inputs), PTR, I64))
    *sources, target, count = fb.parameters
    with fb.loop(0, count, lanes) as i:
        values = [fb.load(widened(t, lanes), fb.gep(t, p, i), align=1) for t, p in zip(types, sources, strict=True)]
        value = emit(fb, *values)
        if value.type.scalar is I1:
            value = fb.zext(value, I8)
        assert value.type.lanes == lanes
        fb.store(value, fb.gep(value.type.scalar, target, i), align=1)
    fb.ret()
    out = np.zeros(inputs[0].size, result)
    compile_text(module)("apply", *[np.ascontiguousarray(a) for a in inputs], out, inputs[0].size)
    return out


A, B = INTEGERS
X, Y = FLOATS
with np.errstate(all="ignore"):
    INTEGER_CASES = {
        "add": (lambda fb, a, b: fb.add(a, b), A + B),
        "sub": (lambda fb, a, b: fb.sub(a, b), A - B),
        "mul": (lambda fb, a, b: fb.mul(a, b), A * B),
        "add_number": (lambda fb, a, b: fb.add(a, 3, "nsw") if a is b else fb.add(a, -3), A - 3),
        "sdiv": (lambda fb, a, b: fb.sdiv(a, b), (A.astype(float) / B).astype(np.int64).astype(np.int32)),
        "udiv": (lambda fb, a, b: fb.udiv(a, b), A.view(np.uint32) // B.view(np.uint32)),
        "srem": (lambda fb, a, b: fb.srem(a, b), np.fmod(A, B)),
        "urem": (lambda fb, a, b: fb.urem(a, b), A.view(np.uint32) % B.view(np.uint32)),
        "shl": (lambda fb, a, b: fb.shl(a, fb.and_(b, 31)), A << (B & 31)),
        "lshr": (lambda fb, a, b: fb.lshr(a, fb.and_(b, 31)), A.view(np.uint32) >> (B & 31).astype(np.uint32)),
        "ashr": (lambda fb, a, b: fb.ashr(a, fb.and_(b, 31)), A >> (B & 31)),
        "and": (lambda fb, a, b: fb.and_(a, b), A & B),
        "or": (lambda fb, a, b: fb.or_(a, b), A | B),
        "xor": (lambda fb, a, b: fb.xor(a, b), A ^ B),
        "not": (lambda fb, a, b: fb.not_(a), ~A),
        "neg": (lambda fb, a, b: fb.neg(a), -A),
        "smin": (lambda fb, a, b: fb.smin(a, b), np.minimum(A, B)),
        "smax": (lambda fb, a, b: fb.smax(a, 3), np.maximum(A, 3)),
        "umin": (lambda fb, a, b: fb.umin(a, b), np.minimum(A.view(np.uint32), B.view(np.uint32))),
        "umax": (lambda fb, a, b: fb.umax(a, b), np.maximum(A.view(np.uint32), B.view(np.uint32))),
        "abs": (lambda fb, a, b: fb.abs(a), np.abs(A)),
        "ctpop": (lambda fb, a, b: fb.ctpop(a), [int(v).bit_count() for v in A.view(np.uint32)]),
        "ctlz": (lambda fb, a, b: fb.ctlz(a), [32 - int(v).bit_length() for v in A.view(np.uint32)]),
        "cttz": (lambda fb, a, b: fb.cttz(a), [f"{int(v):032b}1"[::-1][1:].find("1") % 33 for v in A.view(np.uint32)]),
        "bswap": (lambda fb, a, b: fb.bswap(a), A.byteswap()),
        "bitreverse": (lambda fb, a, b: fb.bitreverse(a), [int(f"{int(v):032b}"[::-1], 2) for v in A.view(np.uint32)]),
        "fshl": (lambda fb, a, b: fb.fshl(a, b, 8), (A << 8) | (B.view(np.uint32) >> 24).view(np.int32)),
        "fshr": (lambda fb, a, b: fb.fshr(a, b, 8), (A << 24) | (B.view(np.uint32) >> 8).view(np.int32)),
        "icmp": (lambda fb, a, b: fb.icmp("slt", a, b), A < B),
        "icmp_unsigned": (lambda fb, a, b: fb.icmp("ugt", a, 7), A.view(np.uint32) > 7),
        "select": (lambda fb, a, b: fb.select(fb.icmp("eq", b, 9), 1, a), np.where(B == 9, 1, A)),
        "overflow": (lambda fb, a, b: fb.with_overflow("sadd", a, b)[1], (A.astype(np.int64) + B) != (A + B)),
        "overflow_result": (lambda fb, a, b: fb.with_overflow("smul", a, b)[0], A * B),
        "trunc": (lambda fb, a, b: fb.trunc(a, I8), A.astype(np.int8)),
        "sext": (lambda fb, a, b: fb.sext(a, I64), A.astype(np.int64)),
        "zext": (lambda fb, a, b: fb.zext(a, I64), A.view(np.uint32).astype(np.int64)),
        "sitofp": (lambda fb, a, b: fb.sitofp(a, F64), A.astype(np.float64)),
        "uitofp": (lambda fb, a, b: fb.uitofp(a, F32), A.view(np.uint32).astype(np.float32)),
        "freeze": (lambda fb, a, b: fb.freeze(a), A),
        "bitcast": (lambda fb, a, b: fb.bitcast(a, F32), A.view(np.float32)),
    }
    FLOAT_CASES = {
        "fadd": (lambda fb, x, y: fb.fadd(x, y), X + Y),
        "fsub": (lambda fb, x, y: fb.fsub(x, y, ""), X - Y),
        "fmul": (lambda fb, x, y: fb.fmul(x, 0.1), X * 0.1),
        "fdiv": (lambda fb, x, y: fb.fdiv(x, y), X / Y),
        "fneg": (lambda fb, x, y: fb.fneg(x), -X),
        "fma": (lambda fb, x, y: fb.fma(x, y, 1.0), X * Y + 1),
        "mul_add": (lambda fb, x, y: fb.mul_add(x, 2.0, y), X * 2 + Y),
        "fabs": (lambda fb, x, y: fb.fabs(x), np.abs(X)),
        "sqrt": (lambda fb, x, y: fb.sqrt(x), np.sqrt(X)),
        "floor": (lambda fb, x, y: fb.floor(x), np.floor(X)),
        "ceil": (lambda fb, x, y: fb.ceil(x), np.ceil(X)),
        "ftrunc": (lambda fb, x, y: fb.ftrunc(x), np.trunc(X)),
        "rint": (lambda fb, x, y: fb.rint(x), np.rint(X)),
        "round": (lambda fb, x, y: fb.round(x), np.copysign(np.floor(np.abs(X) + 0.5), X)),
        "roundeven": (lambda fb, x, y: fb.roundeven(x), np.rint(X)),
        "copysign": (lambda fb, x, y: fb.copysign(y, x), np.copysign(Y, X)),
        "minimum": (lambda fb, x, y: fb.minimum(x, y), np.where(X == 0, -0.0, np.minimum(X, Y))),
        "maximum": (lambda fb, x, y: fb.maximum(x, y), np.where(X == 0, 0.0, np.maximum(X, Y))),
        "minnum": (lambda fb, x, y: fb.minnum(x, fb.fadd(y, 1.0)), np.fmin(X, Y + 1)),
        "maxnum": (lambda fb, x, y: fb.maxnum(x, fb.fadd(y, 1.0)), np.fmax(X, Y + 1)),
        "fcmp_ordered": (lambda fb, x, y: fb.fcmp("olt", x, y), X < Y),
        "fcmp_unordered": (lambda fb, x, y: fb.fcmp("uno", x, y), np.isnan(X) | np.isnan(Y)),
        "fcmp_une": (lambda fb, x, y: fb.fcmp("une", x, 0.5), X != 0.5),
        "is_fpclass": (lambda fb, x, y: fb.is_fpclass(x, 0x207), ~np.isfinite(X)),
        "fptosi_sat": (lambda fb, x, y: fb.fptosi_sat(x, I32), [0, 0, 2, 0, -(2**31), 3, -1, 9]),
        "arithmetic_fence": (
            lambda fb, x, y: fb.fptosi_sat(fb.arithmetic_fence(x), I32),
            [0, 0, 2, 0, -(2**31), 3, -1, 9],
        ),
        "fptoui_sat": (lambda fb, x, y: fb.fptoui_sat(fb.fneg(x), I8), [0, 0, 0, 0, -1, 0, 1, 0]),
        "fptosi": (lambda fb, x, y: fb.fptosi(fb.select(fb.fcmp("ord", x, y), y, 7.0), I32), [2, 0, -3, 7, 4, 3, 7, 0]),
        "fptoui": (lambda fb, x, y: fb.fptoui(fb.fabs(fb.maxnum(x, -9.0)), I64), [0, 0, 2, 9, 9, 3, 1, 9]),
        "fptrunc": (lambda fb, x, y: fb.fptrunc(x, F32), X.astype(np.float32)),
        "fpext": (lambda fb, x, y: fb.fpext(fb.fptrunc(x, F32), F64), X),
        "bitcast": (lambda fb, x, y: fb.bitcast(x, I64), X.view(np.int64)),
    }
if TargetInfo.host().has("f16c"):
    FLOAT_CASES["fptrunc_half"] = lambda fb, x, y: fb.fptrunc(fb.fptrunc(x, F32), F16), X.astype(np.float16)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("case", INTEGER_CASES)
def test_integer_method(compile_text, module, case, lanes):
    emit, expected = INTEGER_CASES[case]
    expected = np.asarray(expected)
    narrow = {np.dtype(bool): np.int8, np.dtype(np.uint32): np.int32}
    dtype = narrow.get(expected.dtype, expected.dtype)
    if expected.dtype == np.int64 and case not in ("sext", "zext"):
        dtype = np.int32
    got = run(compile_text, module, emit, lanes, [A, B], dtype)
    np.testing.assert_array_equal(got.view(np.uint8), expected.astype(dtype).view(np.uint8))


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("case", FLOAT_CASES)
def test_float_method(compile_text, module, case, lanes):
    emit, expected = FLOAT_CASES[case]
    expected = np.asarray(expected)
    dtype = np.int8 if expected.dtype == bool else expected.dtype
    dtype = {"fptosi_sat": np.int32, "arithmetic_fence": np.int32, "fptoui_sat": np.int8, "fptosi": np.int32}.get(
        case, dtype
    )
    got = run(compile_text, module, emit, lanes, [X, Y], dtype)
    expected = expected.astype(dtype)
    np.testing.assert_array_equal(got, expected)
    if dtype == np.float64:
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))


def test_contraction_is_chosen_by_the_builder(module):
    on = module.function("on", F32, (F32,), contract=True)
    on.ret(on.fadd(on.fmul(on.parameters[0], 2.0), 1.0))
    off = module.function("off", F32, (F32,), contract=False)
    off.ret(off.fadd(off.fmul(off.parameters[0], 2.0), 1.0))
    assert "fmul contract float" in on.text()
    assert "contract" not in off.text()


def test_mul_add_without_fma_rounds_twice(compile_text):
    from xlalite.backends.codegen.llvm import ModuleBuilder, TargetInfo

    module = ModuleBuilder("plain", TargetInfo.of("x86_64-unknown-linux-gnu", "x86-64"))
    fb = module.function("f", F64, (F64, F64))
    fb.ret(fb.mul_add(*fb.parameters, -1.0))
    assert "llvm.fma" not in module.text()
    x = 1 + 2.0**-30
    assert compile_text(module)("f", x, x) == x * x - 1


def test_lane_methods(compile_text, module):
    fb = module.function("lanes", VOID, (PTR, I32, I64))
    target, scalar, position = fb.parameters
    wide = vector(I32, 8)
    numbers = fb.lane_numbers(I32, 8, 10)
    splatted = fb.splat(scalar, 8)
    low, high = fb.split(numbers)
    rows = [
        fb.add(numbers, splatted),
        fb.concat(high, low),
        fb.insert(numbers, fb.extract(numbers, 7), 0),
        fb.insert(numbers, scalar, position),
        fb.shuffle(numbers, splatted, [8, 0, 9, 1, 7, 6, 5, -1]),
        fb.splat(fb.reduce(numbers, fb.add), 8),
        fb.splat(fb.extract(numbers, position), 8),
        fb.splat(fb.reduce(fb.slice_lanes(numbers, 1, 5), fb.sub), 8),
        fb.splat(fb.reduce(fb.slice_lanes(numbers, 1, 6), fb.add), 8),
    ]
    for row, value in enumerate(rows):
        fb.store(value, fb.gep(wide, target, row), align=4)
    assert fb.splat(scalar, 1) is scalar
    assert fb.reduce(scalar, fb.add) is scalar
    assert fb.lane_numbers(I32, 1).text == "0"
    fb.ret()
    out = np.zeros((9, 8), np.int32)
    compile_text(module)("lanes", out, 5, 3)
    n = np.arange(8) * 10
    np.testing.assert_array_equal(out[0], n + 5)
    np.testing.assert_array_equal(out[1], np.roll(n, 4))
    np.testing.assert_array_equal(out[2], [70, *n[1:]])
    np.testing.assert_array_equal(out[3], [0, 10, 20, 5, 40, 50, 60, 70])
    np.testing.assert_array_equal(out[4, :7], [5, 0, 5, 10, 70, 60, 50])
    assert (out[5] == 280).all()
    assert (out[6] == 30).all()
    assert (out[7] == 10 - 20 - 30 - 40 - 50).all()
    assert (out[8] == 210).all()


def test_any_and_all_lanes(compile_text, module):
    fb = module.function("masks", I32, (PTR,))
    values = fb.load(vector(I32, 5), fb.parameters[0], align=4)
    positive = fb.icmp("sgt", values, 0)
    result = fb.or_(fb.zext(fb.any_lane(positive), I32), fb.shl(fb.zext(fb.all_lanes(positive), I32), 1))
    flag = constant(I1, 1)
    assert fb.any_lane(flag) is flag
    assert fb.all_lanes(flag) is flag
    fb.ret(result)
    code = compile_text(module)
    assert code("masks", np.array([0, 0, -1, 0, 0], np.int32)) == 0
    assert code("masks", np.array([0, 0, -1, 0, 1], np.int32)) == 1
    assert code("masks", np.array([1, 2, 3, 4, 1], np.int32)) == 3
