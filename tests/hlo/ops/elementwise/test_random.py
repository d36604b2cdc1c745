"""Random bits against published vectors and XLA; distributions against their moments; stochastic rounding."""

import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.numerics.random_bits import philox_bits, threefry_bits
from xlalite.hlo.ops.random import (
    Distribution,
    RandomAlgorithm,
    RngAttrs,
    RngBitGeneratorAttrs,
    RngGetAndUpdateStateAttrs,
)
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape


def random_bits(algorithm, state, dtype, dims):
    state = np.array(state, np.uint64)
    builder = Builder("test")
    parameter = builder.parameter(Shape.array(DType.U64, state.shape))
    shape = Shape.tuple([parameter.shape, Shape.array(dtype, dims)])
    root = builder.op("rng-bit-generator", (parameter,), RngBitGeneratorAttrs(algorithm), shape=shape)
    return evaluate(builder.build(root), state)


def test_philox_encrypts_as_published():
    """Known answers of the Random123 library for Philox-4x32-10."""
    pi = 0x243F6A88
    words, _ = philox_bits(0, 0, (4,), 32)
    assert [hex(word) for word in words] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    words, _ = philox_bits(2**64 - 1, 2**128 - 1, (4,), 32)
    assert [hex(word) for word in words] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]
    counter = pi | 0x85A308D3 << 32 | 0x13198A2E << 64 | 0x03707344 << 96
    words, _ = philox_bits(0xA4093822 | 0x299F31D0 << 32, counter, (4,), 32)
    assert [hex(word) for word in words] == ["0xd16cfe09", "0x94fdcceb", "0x5001e420", "0x24126ea1"]


def test_threefry_encrypts_as_published():
    """Known answers of the Random123 library for Threefry-2x32-20."""
    words, _ = threefry_bits(0, 0, (2,), 32)
    assert [hex(word) for word in words] == ["0x6b200159", "0x99ba4efe"]
    words, _ = threefry_bits(2**64 - 1, 2**64 - 1, (2,), 32)
    assert [hex(word) for word in words] == ["0x1cb996fc", "0xbb002be7"]
    words, _ = threefry_bits(0x13198A2E | 0x03707344 << 32, 0x243F6A88 | 0x85A308D3 << 32, (2,), 32)
    assert [hex(word) for word in words] == ["0xc4923a9c", "0x483df7a0"]


@pytest.mark.oracle
@pytest.mark.parametrize("name", [algorithm.value for algorithm in RandomAlgorithm])
def test_bits_and_states_are_xlas(name, run_with_xla):
    algorithm = RandomAlgorithm(name)
    cases = [
        ([2**63 + 12345678901, 2**64 - 2], DType.U32, (3, 4)),
        ([1, 2], DType.U64, (3, 5)),
        ([1, 2], DType.U8, (5, 3)),
        ([1, 2], DType.U16, ()),
        ([1, 2], DType.U32, (0, 3)),
    ]
    if algorithm is not RandomAlgorithm.THREE_FRY:
        cases = [*cases[:1], ([5, 2**64 - 1, 2**64 - 1], DType.U32, (2, 3, 4)), ([1, 2, 3], DType.U64, (5,))]
    for state, dtype, dims in cases:
        s, r = f"u64[{len(state)}]", Shape.array(dtype, dims).text()
        root = f"ROOT r = ({s}, {r}) rng-bit-generator(s), algorithm={name}"
        text = f"HloModule m\nENTRY e {{ s = {s} parameter(0)\n {root} }}"
        expected_state, expected_bits = run_with_xla(text, np.array(state, np.uint64))
        found_state, found_bits = random_bits(algorithm, state, dtype, dims)
        np.testing.assert_array_equal(found_bits, expected_bits)
        np.testing.assert_array_equal(found_state, expected_state)


def test_equal_states_give_equal_bits_and_the_next_state_gives_others():
    for algorithm in RandomAlgorithm:
        state, bits = random_bits(algorithm, [7, 9], DType.U32, (1000,))
        np.testing.assert_array_equal(bits, random_bits(algorithm, [7, 9], DType.U32, (1000,))[1])
        more = random_bits(algorithm, state, DType.U32, (1000,))[1]
        assert not np.isin(more, bits).any()
        assert abs(bits.mean() / 2**32 - 0.5) < 0.05


def test_the_counter_carries_over_words():
    state, _ = random_bits(RandomAlgorithm.PHILOX, [1, 2**64 - 1, 5], DType.U32, (8,))
    assert state.tolist() == [1, 1, 6]
    state, _ = random_bits(RandomAlgorithm.THREE_FRY, [1, 2**64 - 1], DType.U32, (4,))
    assert state.tolist() == [1, 1]


def test_signed_bits_are_the_unsigned_ones():
    unsigned = random_bits(RandomAlgorithm.PHILOX, [7, 9], DType.U32, (10,))[1]
    signed = random_bits(RandomAlgorithm.PHILOX, [7, 9], DType.S32, (10,))[1]
    np.testing.assert_array_equal(signed.view(np.uint32), unsigned)


def test_rng_bit_generator_checks_state_and_result():
    with pytest.raises(ShapeError, match=r"the state of rng_three_fry must be u64\[2\]"):
        random_bits(RandomAlgorithm.THREE_FRY, [1, 2, 3], DType.U32, (4,))
    with pytest.raises(ShapeError, match="the bits must be integers of at least 8 bits"):
        random_bits(RandomAlgorithm.PHILOX, [1, 2], DType.F32, (4,))


def draw(distribution, a, b, dtype, dims):
    builder = Builder("test")
    parameters = [builder.constant(number, dtype) for number in (a, b)]
    root = builder.op("rng", parameters, RngAttrs(distribution), shape=Shape.array(dtype, dims))
    return evaluate(builder.build(root))


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64], ids=lambda dtype: dtype.value)
def test_uniform_numbers_fill_their_interval(dtype):
    numbers = draw(Distribution.UNIFORM, -1.0, 3.0, dtype, (50, 400)).astype(np.float64)
    assert numbers.min() >= -1
    assert numbers.max() < 3
    assert abs(numbers.mean() - 1) < 0.05
    assert abs(numbers.var() - 16 / 12) < 0.05


@pytest.mark.parametrize("dtype", [DType.S8, DType.U8, DType.S32, DType.U64, DType.S4], ids=lambda dtype: dtype.value)
def test_uniform_integers_reach_both_ends(dtype):
    low = -5 if dtype.is_signed else 2
    numbers = draw(Distribution.UNIFORM, low, 7, dtype, (3000,)).astype(np.int64)
    assert sorted(set(numbers.tolist())) == list(range(low, 7))


def test_normal_numbers_have_their_moments():
    numbers = draw(Distribution.NORMAL, 2.0, 3.0, DType.F32, (40000,)).astype(np.float64)
    assert abs(numbers.mean() - 2) < 0.1
    assert abs(numbers.std() - 3) < 0.1
    assert abs(((numbers - 2) ** 4).mean() / 81 - 3) < 0.3
    with pytest.raises(ShapeError, match="is not floating-point"):
        draw(Distribution.NORMAL, 2, 3, DType.S32, (4,))


def test_rng_gives_other_numbers_each_time_and_empty_arrays():
    first, second = (draw(Distribution.UNIFORM, 0.0, 1.0, DType.F64, (10,)) for _ in range(2))
    assert not np.isin(first, second).any()
    assert draw(Distribution.UNIFORM, 0.0, 1.0, DType.F64, (0, 3)).shape == (0, 3)


def test_the_process_state_moves_on_by_delta():
    builder = Builder("test")
    root = builder.op(
        "rng-get-and-update-state", (), RngGetAndUpdateStateAttrs(1000), shape=Shape.array(DType.U64, (2,))
    )
    computation = builder.build(root)
    states = [int(low) + (int(high) << 64) for low, high in (evaluate(computation) for _ in range(3))]
    assert states[1] - states[0] == states[2] - states[1] == 1000


@pytest.mark.parametrize("source", [DType.F16, DType.BF16, DType.F32, DType.F64], ids=lambda dtype: dtype.value)
def test_stochastic_convert_to_integers(source, apply_op):
    unsigned = f"u{source.size_bytes}"
    top = np.iinfo(unsigned).max
    x = np.array([1.5, 1.5, -1.5, -1.5, 300, -300, np.inf, -np.inf, np.nan, 2, -0.25]).astype(source.numpy)
    random = np.array([0, top, 0, top, 0, 0, 0, 0, 0, 0, top // 2], unsigned)
    found = apply_op("stochastic-convert", x, random, result=DType.S8)
    np.testing.assert_array_equal(found, [2, 1, -2, -1, 127, -128, 127, -128, 0, 2, 0])


@pytest.mark.parametrize("target", [DType.S8, DType.S32, DType.BF16, DType.F16, DType.F8E5M2], ids=lambda d: d.value)
def test_stochastic_convert_is_right_on_average(target, apply_op, rng):
    x = np.full(20000, 2.34375 + 1e-3, np.float32)
    random = rng.integers(0, 2**32, x.shape, np.uint32)
    found = apply_op("stochastic-convert", x, random, result=target).astype(np.float64)
    assert len(set(found.tolist())) == 2
    assert abs(found.mean() - x[0]) < 0.02 * (found.max() - found.min())
    negative = apply_op("stochastic-convert", -x, random, result=target).astype(np.float64)
    np.testing.assert_array_equal(negative, -found)


def test_stochastic_convert_leaves_exact_and_unbounded_floats(apply_op):
    x = np.array([1.0, -2.5, 0.0, np.inf, -np.inf, np.nan], np.float32)
    random = np.zeros(6, np.uint32)
    found = apply_op("stochastic-convert", x, random, result=DType.BF16).astype(np.float32)
    np.testing.assert_array_equal(found, x)


def test_stochastic_convert_needs_random_numbers_of_the_same_width(apply_op):
    with pytest.raises(ShapeError, match="the random numbers must be u32, found u16"):
        apply_op("stochastic-convert", np.zeros(2, np.float32), np.zeros(2, np.uint16), result=DType.S8)
