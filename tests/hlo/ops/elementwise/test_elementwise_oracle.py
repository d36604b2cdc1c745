"""The evaluator against XLA's own CPU compiler: many operations in one module for each element type."""

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType

pytestmark = pytest.mark.oracle

FLOAT_UNARY = [
    "abs",
    "negate",
    "sign",
    "ceil",
    "floor",
    "round-nearest-afz",
    "round-nearest-even",
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "tanh",
    "tan",
    "sine",
    "cosine",
    "sqrt",
    "rsqrt",
    "cbrt",
    "erf",
    "is-finite",
]
FLOAT_BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "remainder",
    "power",
    "maximum",
    "minimum",
    "atan2",
]
INTEGER_UNARY = ["negate", "not", "popcnt", "count-leading-zeros"]
INTEGER_BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "remainder",
    "maximum",
    "minimum",
    "and",
    "or",
    "xor",
    "shift-left",
    "shift-right-logical",
    "shift-right-arithmetic",
]
COMPLEX_UNARY = [
    "negate",
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "tanh",
    "tan",
    "sine",
    "cosine",
    "sqrt",
    "rsqrt",
    "sign",
]
COMPLEX_BINARY = ["add", "subtract", "multiply", "divide", "power"]


def module_of(opcodes, dtype, size):
    """One module that applies each operation to the first operand, or to both, and returns all results."""
    t = f"{dtype.value}[{size}]"
    lines = [f"x = {t} parameter(0)", f"y = {t} parameter(1)"]
    shapes = []
    for i, (opcode, arity) in enumerate(opcodes):
        result = f"pred[{size}]" if opcode == "is-finite" else t
        lines.append(f"r{i} = {result} {opcode}({'x' if arity == 1 else 'x, y'})")
        shapes.append(result)
    names = ", ".join(f"r{i}" for i in range(len(opcodes)))
    lines.append(f"ROOT all = ({', '.join(shapes)}) tuple({names})")
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}"


def compare(opcodes, x, y, tolerance, run_with_xla, apply_op):
    dtype = DType.from_numpy(x.dtype)
    expected = run_with_xla(module_of(opcodes, dtype, x.size), x, y)
    for (opcode, arity), truth in zip(opcodes, expected, strict=True):
        found = apply_op(opcode, *(x, y)[:arity])
        assert found.dtype == truth.dtype
        if not tolerance:
            np.testing.assert_array_equal(found, truth, err_msg=opcode)
            continue
        wide = np.complex128 if dtype.is_complex else np.float64
        np.testing.assert_allclose(
            found.astype(wide), truth.astype(wide), rtol=tolerance, atol=1e-37, err_msg=opcode, equal_nan=True
        )


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(DType.F32, 2e-6), (DType.F64, 2e-13), (DType.BF16, 1e-2), (DType.F16, 2e-3)]
)
def test_floating_point_agrees(dtype, tolerance, run_with_xla, apply_op, rng):
    special = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 1e4, -1e4])
    x = np.concatenate([special, np.repeat(special, 3), rng.normal(size=100) * 3]).astype(dtype.numpy)
    y = rng.permutation(x)
    # XLA's maximum and minimum may lose a NaN, and its pow of bf16 goes another way at infinity.
    opcodes = [(o, 1) for o in FLOAT_UNARY] + [(o, 2) for o in FLOAT_BINARY if o not in ("maximum", "minimum", "power")]
    compare(opcodes, x, y, tolerance, run_with_xla, apply_op)
    finite = np.isfinite(x.astype(np.float64)) & np.isfinite(y.astype(np.float64))
    ordered = [(o, 2) for o in ("maximum", "minimum", "power")]
    compare(ordered, x[finite], y[finite], tolerance, run_with_xla, apply_op)


@pytest.mark.parametrize(
    "dtype", [DType.S8, DType.S32, DType.S64, DType.U8, DType.U32, DType.U64], ids=lambda dtype: dtype.value
)
def test_integers_agree(dtype, run_with_xla, apply_op, rng):
    info = np.iinfo(dtype.numpy)
    special = [info.min, info.min + 1, 0, 1, 2, 3, 7, 31, 32, 33, info.max, info.max - 1] + [-1, -2] * dtype.is_signed
    x, y = (side.ravel() for side in np.meshgrid(*[np.array(special).astype(dtype.numpy)] * 2))
    opcodes = [(o, 1) for o in INTEGER_UNARY] + [(o, 2) for o in INTEGER_BINARY]
    if dtype.is_signed:
        opcodes += [("abs", 1), ("sign", 1)]
    compare(opcodes, x, y, 0, run_with_xla, apply_op)
    # XLA looks at the low bits of a large exponent only.
    small = (y >= 0) & (y < 32) if dtype.is_signed else y < 32
    compare([("power", 2)], x[small], y[small], 0, run_with_xla, apply_op)


def test_complex_numbers_agree(run_with_xla, apply_op, rng):
    x, y = ((rng.normal(size=50) + 1j * rng.normal(size=50)).astype(np.complex64) for _ in range(2))
    opcodes = [(o, 1) for o in COMPLEX_UNARY] + [(o, 2) for o in COMPLEX_BINARY]
    compare(opcodes, x, y, 1e-5, run_with_xla, apply_op)


def test_conversions_agree(run_with_xla, apply_op):
    x = np.array([0, -0.0, 1.5, -1.5, 127.9, 128, -129, 255.5, 3e9, -3e9, 1e20, -1e20, np.inf, -np.inf, np.nan])
    targets = ["s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "pred"]
    for source in (DType.F32, DType.F64):
        values = x.astype(source.numpy)
        lines = [f"r{i} = {t}[15] convert(x)" for i, t in enumerate(targets)]
        root = f"ROOT t = ({', '.join(t + '[15]' for t in targets)}) tuple({', '.join(f'r{i}' for i in range(12))})"
        text = "\n ".join([f"HloModule m\nENTRY e {{ x = {source.value}[15] parameter(0)", *lines, root]) + "}"
        for target, truth in zip(targets, run_with_xla(text, values), strict=True):
            found = apply_op("convert", values, result=DType.from_name(target))
            np.testing.assert_array_equal(found.astype(np.float64), truth.astype(np.float64), err_msg=target)
