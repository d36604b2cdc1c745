"""Generators: bits against published values of the algorithms, what a state becomes, and what is refused."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import xlalite as tf
from xlalite.framework.graph import dtypes
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.hlo.errors import ShapeError

# The known answers of Random123 (Salmon et al. 2011) for Threefry-2x32 and Philox-4x32: counter, key, result.
KNOWN = [
    ("threefry", [0x00000000, 0x00000000], [0x00000000, 0x00000000], [0x6B200159, 0x99BA4EFE]),
    ("threefry", [0xFFFFFFFF, 0xFFFFFFFF], [0xFFFFFFFF, 0xFFFFFFFF], [0x1CB996FC, 0xBB002BE7]),
    ("threefry", [0x243F6A88, 0x85A308D3], [0x13198A2E, 0x03707344], [0xC4923A9C, 0x483DF7A0]),
    ("philox", [0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ("philox", [0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        "philox",
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]
BOTH = pytest.mark.parametrize("alg", ["philox", "threefry"])


def _joined(words: list[int]) -> list[int]:
    return [low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)]


def _run(*steps: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(step) for step in steps]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(("alg", "counter", "key", "expected"), KNOWN)
def test_bits_are_those_published(
    graph: Any, alg: str, counter: list[int], key: list[int], expected: list[int], jit: bool
) -> None:
    with tf.jit_scope(jit):
        gen = tf.random.Generator(state=_joined(counter) + _joined(key), alg=alg)
        words = gen.uniform_full_int([len(expected)], tf.uint32)
        pairs = gen.uniform_full_int([len(expected) // 2])
        reset = gen.reset(_joined(counter) + _joined(key))
    one, _, two = _run(words, reset, pairs)
    assert one.tolist() == expected
    assert two.tolist() == _joined(expected)


@BOTH
def test_a_state_moves_on_by_256_for_each_number_and_carries(graph: Any, alg: str) -> None:
    gen = tf.random.Generator.from_state([2**64 - 1, 283, 5][: {"philox": 3, "threefry": 2}[alg]], alg)
    high = [284, 5] if alg == "philox" else [283]
    before, _, after = _run(gen.skip(0), gen.normal([2, 3]), gen.state)
    assert before.tolist() == ([-1, 283, 5] if alg == "philox" else [-1, 283, 0])
    assert after.tolist() == [6 * 256 - 1, *high]


def test_a_seed_is_the_end_of_the_state() -> None:
    assert tf.random.create_rng_state(1234, "philox").tolist() == [1234, 0, 0]
    assert tf.random.create_rng_state(-1, 2).tolist() == [-1, -1]
    assert tf.random.create_rng_state([12, 2**64 - 1], "threefry").tolist() == [12, -1]
    assert tf.random.create_rng_state(np.array([7]), tf.random.Algorithm.PHILOX).tolist() == [0, 0, 7]


@BOTH
@pytest.mark.parametrize("dtype", [tf.int32, tf.uint32, tf.int64, tf.uint64, tf.bfloat16, tf.float32, tf.float64])
def test_uniform_numbers_are_uniform(graph: Any, alg: str, dtype: dtypes.DType) -> None:
    high = 100 if dtype.is_integer else 1
    gen = tf.random.Generator.from_seed(12, alg)
    (numbers,) = _run(gen.uniform([5000], maxval=high, dtype=dtype))
    counts = np.bincount((numbers.astype(float) * 10 // high).astype(int), minlength=10)
    assert numbers.dtype == dtype.as_numpy_dtype
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@BOTH
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_normal_numbers_are_normal(graph: Any, alg: str, dtype: dtypes.DType) -> None:
    gen = tf.random.Generator.from_seed(1234, alg)
    normal, cut = _run(gen.normal([5000], 2.0, 3.0, dtype), gen.truncated_normal([5000], dtype=dtype))
    assert scipy.stats.kstest((normal - 2) / 3, "norm").pvalue > 1e-3
    assert scipy.stats.kstest(cut, scipy.stats.truncnorm(-2, 2).cdf).pvalue > 1e-3


def test_draws_differ_and_copies_and_parts_have_states_of_their_own(graph: Any) -> None:
    gen = tf.random.Generator.from_key_counter(3, [1, 2], "philox")
    copy = tf.random.Generator(gen)
    parts = gen.split(2)
    draws = [each.uniform_full_int([3]) for each in (gen, copy, *parts)]
    with tf.Session() as session:
        session.run(gen.state.initializer)
        session.run([each.state.initializer for each in (copy, *parts)])
        first, second = session.run(draws), session.run(draws)
        assert len({tuple(each) for each in first + second}) == 8
        session.run([gen.reset_from_key_counter(9, [0, 0])])
        assert session.run([gen.key, gen.state])[1].tolist() == [0, 0, 9]
        session.run(gen.reset_from_seed(4))
        assert session.run(gen.state).tolist() == [4, 0, 0]
        assert session.run(gen.make_seeds(3)).shape == (2, 3)


def test_each_graph_has_a_generator_that_begins_anywhere(graph: Any) -> None:
    gen = tf.random.get_global_generator()
    assert tf.random.get_global_generator() is gen
    assert not np.array_equal(*(_run(gen.state)[0] for _ in range(2)))
    tf.random.set_global_generator(other := tf.random.Generator.from_seed(1))
    assert tf.random.get_global_generator() is other


@pytest.mark.parametrize("name", ["StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal"])
def test_draws_from_a_variable_are_those_from_its_key_and_counter(graph: Any, name: str) -> None:
    stateless = {"StatefulUniform": "StatelessRandomUniformV2", "StatefulTruncatedNormal": "StatelessTruncatedNormalV2"}
    gen = tf.random.Generator.from_state([5, 6, 7], "philox")
    drawn = getattr(tf.raw_ops, name)(resource=gen.state.handle, algorithm=1, shape=[7])
    same = getattr(tf.raw_ops, stateless.get(name, "StatelessRandomNormalV2"))(
        shape=[7], key=np.uint64([7]), counter=np.uint64([5, 6]), alg=1
    )
    one, two, state = _run(drawn, same, gen.state)
    np.testing.assert_array_equal(one, two)
    assert state.tolist() == [5 + 7 * 256, 6, 7]


def test_integers_from_a_variable(graph: Any) -> None:
    gen = tf.random.Generator.from_state([5, 6, 7], "philox")
    key = {"key": np.uint64([7]), "counter": np.uint64([5, 6]), "alg": 1}
    bounds = {"minval": np.int32(-3), "maxval": np.int32(11)}
    of_state = {"resource": gen.state.handle, "algorithm": 1, "shape": [50]}
    skip = tf.raw_ops.RngSkip(resource=gen.state.handle, algorithm=1, delta=np.int64(50))
    some, after_draw, _, _, after_skip, _, every = _run(
        tf.raw_ops.StatefulUniformInt(**of_state, **bounds),
        gen.state,
        gen.reset([5, 6, 7]),
        skip,
        gen.state,
        gen.reset([5, 6, 7]),
        tf.raw_ops.StatefulUniformFullInt(**of_state, dtype=tf.int32),
    )
    np.testing.assert_array_equal(after_draw, after_skip)
    same = tf.raw_ops.StatelessRandomUniformIntV2(shape=[50], **key, **bounds)
    same_of_all = tf.raw_ops.StatelessRandomUniformFullIntV2(shape=[50], **key, dtype=tf.int32)
    expected, expected_of_all = _run(same, same_of_all)
    np.testing.assert_array_equal(some, expected)
    np.testing.assert_array_equal(every, expected_of_all)
    assert some.min() == -3
    assert some.max() == 10


def test_a_key_and_a_counter_come_from_a_seed(graph: Any) -> None:
    seeds = [tf.constant([1, 2]), tf.constant([1, 3], tf.int64)]
    made = [tf.raw_ops.StatelessRandomGetKeyCounterAlg(seed=seed) for seed in seeds]
    pair = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seeds[0])
    ((key, counter, alg), other, again, algorithm) = _run(*made, pair, tf.raw_ops.StatelessRandomGetAlg())
    assert key.shape == (1,)
    assert counter.shape == (2,)
    assert alg == algorithm == 1
    assert key == again[0] != other[0]


def test_what_is_refused(graph: Any) -> None:
    gen = tf.random.Generator.from_seed(1, "threefry")

    def drawn(variable: Any, algorithm: Any) -> Any:
        return tf.raw_ops.StatefulUniform(resource=variable.handle, algorithm=algorithm, shape=[2])

    with pytest.raises(InvalidArgumentError, match=r"algorithm must be of shape \[\], not"):
        _run(drawn(gen.state, [0, 0]))
    with pytest.raises(InvalidArgumentError, match="Unsupported algorithm id: 123"):
        _run(drawn(gen.state, 123))
    with pytest.raises(InvalidArgumentError, match="The size of the state must be at least 3; got 2"):
        _run(drawn(gen.state, 1))
    with pytest.raises(InvalidArgumentError, match="Expected int64; got uint32"):
        drawn(tf.Variable(np.uint32([0, 0])), 2)
    with pytest.raises(InvalidArgumentError, match="one and only one dimension, not 2"):
        drawn(tf.Variable(np.int64([[0]])), 2)
    with pytest.raises(ShapeError, match="has 2 numbers"):
        gen.reset([1, 2, 3])
    with pytest.raises(ValueError, match="neither 'philox'"):
        tf.random.Generator.from_seed(1, "mersenne")
    with pytest.raises(ValueError, match="both be None or neither"):
        gen.uniform([2], None, 3, tf.int32)
