import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.normalization.batch_norm_expander import BatchNormExpander
from xlalite.passes.normalization.lapack_expander import LapackExpander
from xlalite.passes.normalization.rng_bit_generator_expander import RngBitGeneratorExpander
from xlalite.passes.normalization.rng_expander import RngExpander
from xlalite.passes.normalization.top_k_expander import TopKExpander


@pytest.mark.parametrize("shape", ["u32[7]", "u32[4,3]", "u64[5]", "u16[3,3]", "u8[2,5]", "s32[6]", "u32[]", "u32[0]"])
@pytest.mark.parametrize(("algorithm", "words"), [("rng_three_fry", 2), ("rng_philox", 3), ("rng_default", 2)])
def test_random_bits_are_the_evaluator_s(shape: str, algorithm: str, words: int, transform) -> None:
    text = f"""HloModule m

ENTRY e {{
  s = u64[{words}] parameter(0)
  ROOT r = (u64[{words}], {shape}) rng-bit-generator(s), algorithm={algorithm}
}}
"""
    result = transform(RngBitGeneratorExpander(), text, evaluated=False)
    assert "rng-bit-generator" not in result.opcodes
    for state in ([2**64 - 1] * words, list(range(11, 11 + words))):
        argument = np.array(state, np.uint64)
        for expected, found in zip(evaluate(parse(text), argument), evaluate(result.module, argument), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize(
    ("distribution", "mean", "deviation"), [("rng_uniform", 3.0, 2 / 12**0.5), ("rng_normal", 2.0, 4.0)]
)
def test_random_numbers_have_their_distribution(
    dtype: str, distribution: str, mean: float, deviation: float, transform
) -> None:
    text = f"""HloModule m

ENTRY e {{
  a = {dtype}[] constant(2)
  b = {dtype}[] constant(4)
  ROOT r = {dtype}[100,200] rng(a, b), distribution={distribution}
}}
"""
    result = transform(RngExpander(), text, evaluated=False)
    RngBitGeneratorExpander().run(result.module)
    verify(result.module)
    first, second = (np.asarray(evaluate(result.module)).astype(np.float64) for _ in range(2))
    assert not np.array_equal(first, second)
    assert abs(first.mean() - mean) < 6 * deviation / first.size**0.5 + 0.02
    assert abs(first.std() / deviation - 1) < 0.05
    if distribution == "rng_uniform":
        assert first.min() >= 2
        assert first.max() < 4


def test_random_integers_lie_in_their_range(transform) -> None:
    text = """HloModule m

ENTRY e {
  a = s8[] constant(-3)
  b = s8[] constant(5)
  ROOT r = s8[1000] rng(a, b), distribution=rng_uniform
}
"""
    result = transform(RngExpander(), text, evaluated=False)
    assert sorted(set(np.asarray(evaluate(result.module)).tolist())) == list(range(-3, 5))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
def test_batch_norm_is_arithmetic(dtype: str, transform, rng: np.random.Generator) -> None:
    text = f"""HloModule m

ENTRY e {{
  x = {dtype}[2,3,4] parameter(0)
  scale = {dtype}[3] parameter(1)
  offset = {dtype}[3] parameter(2)
  t = ({dtype}[2,3,4], {dtype}[3], {dtype}[3]) batch-norm-training(x, scale, offset), epsilon=0.001, feature_index=1
  mean = {dtype}[3] get-tuple-element(t), index=1
  variance = {dtype}[3] get-tuple-element(t), index=2
  i = {dtype}[2,3,4] batch-norm-inference(x, scale, offset, mean, variance), epsilon=0.001, feature_index=1
  g = ({dtype}[2,3,4], {dtype}[3], {dtype}[3]) batch-norm-grad(x, scale, mean, variance, i), epsilon=1, feature_index=1
  ROOT r = tuple(t, i, g)
}}
"""
    result = transform(BatchNormExpander(), text, evaluated=False)
    assert not any(opcode.startswith("batch-norm") for opcode in result.opcodes)
    arguments = [rng.standard_normal(dims).astype(dtype.replace("f", "float")) for dims in ((2, 3, 4), (3,), (3,))]
    tolerance = {"f16": 5e-3, "f32": 1e-5, "f64": 1e-12}[dtype]
    for expected, found in zip(leaves(evaluate(parse(text), *arguments)), leaves(evaluate(result.module, *arguments)),
                               strict=True):  # fmt: skip
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def top_k(result: str, remark: str = "") -> str:
    return f"""HloModule m
ENTRY e {{
  x = f32[4,6] parameter(0)
  ROOT r = {result} custom-call(x), custom_call_target="TopK"{remark} }}"""


def test_the_call_for_the_largest_elements_becomes_topk(transform) -> None:
    result = transform(TopKExpander(), top_k("(f32[4,2], s32[4,2])"))
    assert result.module.entry_computation.root.opcode == "topk"
    assert result.module.entry_computation.root.attrs.k == 2


@pytest.mark.parametrize(
    "text",
    [
        top_k("(f32[4,2], s32[4,2])", ", custom_call_has_side_effect=true"),
        top_k("(f32[4,2], s64[4,2])"),
        top_k("(f32[4,2], s32[4,2])").replace("TopK", "Other"),
    ],
)
def test_other_calls_stay(transform, text: str) -> None:
    assert not transform(TopKExpander(), text, evaluated=False).changed


SYSTEM = """HloModule m
ENTRY e {
  a = f32[2,3,3] parameter(0)
  b = f32[2,4,3] parameter(1)
  ROOT r = f32[2,4,3] custom-call(a, b), custom_call_target="lapack_strsm_ffi",
    backend_config={diag = 78 : ui8, side = 82 : ui8, trans_x = 67 : ui8, uplo = 76 : ui8} }"""


def test_the_call_for_a_triangular_system_becomes_triangular_solve(transform) -> None:
    root = transform(LapackExpander(), SYSTEM).module.entry_computation.root
    assert root.opcode == "triangular-solve"
    assert (root.attrs.left_side, root.attrs.lower, root.attrs.unit_diagonal) == (False, True, False)
    assert root.attrs.transpose_a.value == "ADJOINT"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("strsm", "sgetrf"),
        ("strsm", "dtrsm"),
        ("side = 82", "side = 76"),
        ("uplo = 76", "uplo = 65"),
        ("[2,3,3]", "[1,3,3]"),
        ("[2,3,3]", "[2,3,4]"),
        ('_ffi",', '_ffi", custom_call_has_side_effect=true,'),
    ],
)
def test_calls_for_something_else_stay(transform, old: str, new: str) -> None:
    assert not transform(LapackExpander(), SYSTEM.replace(old, new), evaluated=False).changed
