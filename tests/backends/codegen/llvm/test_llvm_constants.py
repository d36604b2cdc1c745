"""Types and constants: LLVM must read back exactly the bits that were asked for."""

import math

import ml_dtypes
import numpy as np
import pytest

from xlalite.backends.codegen.llvm import (
    BF16,
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
    LLVMBuildError,
    Value,
    array,
    constant,
    constant_bits,
    integer,
    poison,
    struct,
    undef,
    vector,
    vector_constant,
    widened,
    zero,
)

FLOATS = [
    (F16, np.float16, np.uint16),
    (BF16, ml_dtypes.bfloat16, np.uint16),
    (F32, np.float32, np.uint32),
    (F64, np.float64, np.uint64),
]
NUMBERS = [0.0, -0.0, 1.0, -1.5, 0.1, math.pi, 1e-40, -3e-320, 5e-324, 6e-8, 2.0**-25, 2.9e-8, 65519.0, 65520.0]
NUMBERS += [3.4028235677973366e38, 3.5e38, 1e300, math.inf, -math.inf, 1 + 2**-8, 1 + 3 * 2**-9, 1 + 2**-11, 2.0**-149]


def stored(compile_text, module, values, numpy_dtype):
    """The bits of constants, written to memory by compiled code."""
    fb = module.function("store_all", VOID, (PTR,))
    for position, value in enumerate(values):
        fb.store(value, fb.gep(value.type, fb.parameters[0], position), align=1)
    fb.ret()
    out = np.zeros(sum(v.type.lanes for v in values), numpy_dtype)
    compile_text(module)("store_all", out)
    return out


def test_types_are_interned_and_spelled_as_llvm_does():
    assert vector(F32, 8) is vector(F32, 8)
    assert vector(F32, 8).text == "<8 x float>"
    assert vector(F32, 8).with_scalar(I1) is vector(I1, 8)
    assert F32.with_scalar(I1) is I1
    assert widened(F64, 1) is F64
    assert widened(F64, 2) is vector(F64, 2)
    assert integer(32) is I32
    assert integer(24).text == "i24"
    assert array(I8, 3).text == "[3 x i8]"
    assert struct(I32, vector(F32, 4), PTR).text == "{ i32, <4 x float>, ptr }"
    assert struct(I32, vector(F32, 4), I8).size_bytes == 21
    assert vector(I1, 12).size_bytes == 2
    with pytest.raises(TypeError, match="no vector"):
        vector(VOID, 4)


@pytest.mark.parametrize(("type_", "numpy_dtype", "bits"), FLOATS, ids=lambda x: str(x))
def test_float_constants_are_rounded_once(compile_text, module, type_, numpy_dtype, bits):
    constants = [constant(type_, number) for number in NUMBERS]
    with np.errstate(over="ignore"):
        # float -> bfloat16 in ml_dtypes goes through float32; all the sample's ties survive that.
        expected = np.array(NUMBERS).astype(numpy_dtype)
    got = stored(compile_text, module, constants, bits)
    np.testing.assert_array_equal(got, expected.view(bits))


@pytest.mark.parametrize(("type_", "numpy_dtype", "bits"), FLOATS, ids=lambda x: str(x))
def test_not_a_number_stays_one_and_payloads_are_kept(compile_text, module, type_, numpy_dtype, bits):
    pattern = int(np.array(-np.nan, numpy_dtype).view(bits)) | 5
    got = stored(compile_text, module, [constant(type_, math.nan), constant_bits(type_, pattern)], bits)
    assert np.isnan(got[:1].view(numpy_dtype)[0])
    assert int(got[1]) == pattern


@pytest.mark.parametrize(
    ("type_", "numpy_dtype"), [(I8, np.int8), (I16, np.int16), (I32, np.int32), (I64, np.int64)], ids=str
)
def test_integer_constants_wrap(compile_text, module, type_, numpy_dtype):
    numbers = [0, 1, -1, 255, 2**31, 2**63, 2**64 - 1, -(2**63), True]
    got = stored(compile_text, module, [constant(type_, number) for number in numbers], numpy_dtype)
    expected = [(n & (2**64 - 1)) for n in numbers]
    np.testing.assert_array_equal(got, np.array(expected, np.uint64).astype(numpy_dtype))


def test_vector_constants(compile_text, module):
    type_ = vector(F32, 4)
    values = [
        constant(type_, -0.0),
        vector_constant(type_, [1, -0.0, math.inf, 0.1]),
        zero(type_),
        constant_bits(type_, 0x3F800001),
    ]
    got = stored(compile_text, module, values, np.float32).reshape(4, 4)
    assert np.signbit(got[0]).all()
    np.testing.assert_array_equal(got[1], np.array([1, -0.0, np.inf, 0.1], np.float32))
    assert not got[2].any()
    np.testing.assert_array_equal(got[3].view(np.uint32), 0x3F800001)


def test_zero_of_every_kind():
    assert zero(PTR).text == "null"
    assert zero(I1).text == "false"
    assert zero(struct(I32)).text == "zeroinitializer"
    assert repr(undef(F32)) == "float undef"
    assert repr(poison(I8)) == "i8 poison"
    assert isinstance(constant(I1, -1), Value)
    assert constant(I1, -1).text == "true"


def test_a_fraction_is_no_integer_constant():
    with pytest.raises(LLVMBuildError, match=r"1\.5 is not an integer, wanted i32"):
        constant(I32, 1.5)
    with pytest.raises(LLVMBuildError, match="no number constants of type ptr"):
        constant(PTR, 1)
    with pytest.raises(LLVMBuildError, match="2 numbers for <4 x float>"):
        vector_constant(vector(F32, 4), [1, 2])
