"""Classes drawn beside the true ones, with how often each is to be expected.

They are drawn on the host, as random numbers are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from xlalite.framework.graph.dtypes import float32, int32, int64
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.random_seed import get_seed
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import operation
from xlalite.ops.helpers.random_stream import WHY_HOST, RandomStream, stream_for
from xlalite.ops.helpers.shape_rules import require_type

Sampled = tuple[Tensor, Tensor, Tensor]
_ATTRS = ("num_true", "num_sampled", "unique", "range_max", "seed", "seed2")
_FIXED = {"vocab_file": "", "distortion": 1.0, "num_reserved_ids": 0, "num_shards": 1, "shard": 0, "unigrams": ()}
_DEFAULTS = {"seed": 0, "seed2": 0, **_FIXED}


class _Distribution(Protocol):
    """How classes are drawn."""

    @property
    def possible(self) -> int:
        """How many classes can be drawn."""
        ...

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """That many classes."""
        ...

    def probability(self, classes: Array) -> Array:
        """How likely each is in one draw."""
        ...


@dataclass(frozen=True, slots=True)
class _Uniform:
    """All classes alike."""

    size: int

    @property
    def possible(self) -> int:
        return self.size

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        return rng.integers(0, self.size, count)

    def probability(self, classes: Array) -> Array:
        return np.full(classes.shape, 1 / self.size)


@dataclass(frozen=True, slots=True)
class _LogUniform:
    """Roughly Zipf's: class k with probability log(1 + 1 / (k + 1)) / log(size + 1)."""

    size: int

    @property
    def possible(self) -> int:
        return self.size

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        drawn = np.exp(rng.random(count) * np.log(self.size + 1)).astype(np.int64) - 1
        return np.asarray(np.minimum(drawn, self.size - 1))

    def probability(self, classes: Array) -> Array:
        return np.asarray(np.log1p(1 / (classes + 1.0)) / np.log(self.size + 1.0))


@dataclass(frozen=True, slots=True)
class _Weighted:
    """Each class by its weight."""

    weights: Array

    @property
    def possible(self) -> int:
        return int(np.count_nonzero(self.weights))

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        sums = np.cumsum(self.weights)
        found = np.searchsorted(sums, rng.random(count) * sums[-1], side="right")
        return np.asarray(np.minimum(found, len(sums) - 1))

    def probability(self, classes: Array) -> Array:
        return np.asarray(self.weights[classes] / self.weights.sum())


def _of_unigrams(op: Operation) -> _Distribution:
    counts: list[float] = [float(each) for each in op.get_attr("unigrams")]
    if op.get_attr("vocab_file"):
        with open(op.get_attr("vocab_file"), encoding="utf-8") as file:
            counts = [float(line.rsplit(",", 1)[-1]) for line in file.read().splitlines() if line]
    weights = np.concatenate([np.zeros(op.get_attr("num_reserved_ids")), np.array(counts) ** op.get_attr("distortion")])
    if len(weights) != op.get_attr("range_max"):
        raise InvalidArgumentError(
            None, op, f"{len(weights)} classes have a count or are reserved; range_max is {op.get_attr('range_max')}"
        )
    weights[np.arange(len(weights)) % op.get_attr("num_shards") != op.get_attr("shard")] = 0
    return _Weighted(weights)


@dataclass(frozen=True, slots=True)
class _Sampler:
    """What one operation keeps in a session."""

    stream: RandomStream
    distribution: _Distribution


def _draw(op: Operation, sampler: _Sampler) -> tuple[Array, int]:
    """The classes, and after how many draws there were enough of them."""
    count, rng = op.get_attr("num_sampled"), sampler.stream.generator
    if not op.get_attr("unique"):
        return sampler.distribution.draw(rng, count), count
    if sampler.distribution.possible < count:
        raise InvalidArgumentError(
            None, op, f"{count} different classes cannot be drawn from {sampler.distribution.possible}"
        )
    drawn = np.zeros(0, np.int64)
    first = np.zeros(0, np.int64)
    while len(first) < count:
        drawn = np.concatenate([drawn, sampler.distribution.draw(rng, max(count, len(drawn)))])
        first = np.sort(np.unique(drawn, return_index=True)[1])
    chosen = first[:count]
    return drawn[chosen], int(chosen[-1]) + 1 if count else 0


def _expected(op: Operation, sampler: _Sampler, classes: Array, draws: int) -> Array:
    """How often each class is among those that were drawn."""
    chance = sampler.distribution.probability(classes)
    if not op.get_attr("unique"):
        return np.asarray(chance * op.get_attr("num_sampled"), np.float32)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(draws * np.log1p(-chance)), np.float32)


def _infer(op: Operation) -> Sequence[OutputType]:
    true_classes = op.inputs[0]
    require_type(true_classes, {int64}, "true_classes")
    if op.get_attr("num_sampled") < 0 or op.get_attr("num_true") < 1:
        raise ShapeError(
            f"num_true must be positive and num_sampled not negative, found {op.get_attr('num_true')} and "
            f"{op.get_attr('num_sampled')}"
        )
    shape = true_classes.shape.merge_with([None, op.get_attr("num_true")])
    drawn = TensorShape([op.get_attr("num_sampled")])
    return [(int64, drawn), (float32, shape), (float32, drawn)]


def _declare(name: str, make: Callable[[Operation], _Distribution], learns: bool, attrs: tuple[str, ...] = ()) -> None:
    def kernel(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
        true_classes = np.asarray(inputs[0])
        size = op.get_attr("range_max")
        if true_classes.size and not (true_classes.min() >= 0 and true_classes.max() < size):
            raise InvalidArgumentError(None, op, f"a true class is out of range, expected 0 to {size - 1}")
        sampler = context.state(op, lambda: _Sampler(stream_for(op), make(op)))
        with sampler.stream.lock:
            drawn, draws = _draw(op, sampler)
            found = [drawn, *(_expected(op, sampler, classes, draws) for classes in (true_classes, drawn))]
            if learns:
                assert isinstance(sampler.distribution, _Weighted), "only weights can grow"
                np.add.at(sampler.distribution.weights, true_classes.ravel(), 1)
            return found

    _register(name, kernel, (*_ATTRS, *attrs))


def _register(name: str, kernel: Callable[..., Sequence[HostValue]], attrs: tuple[str, ...]) -> None:
    register(
        OpSpec(
            name,
            _infer,
            inputs=("true_classes",),
            attrs=attrs,
            defaults={each: value for each, value in _DEFAULTS.items() if each in attrs},
            host_kernel=kernel,
            gradient=None,
            group=None,
            is_stateful=True,
            why_host=WHY_HOST,
        )
    )


def _all(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    count, true_classes = op.get_attr("num_sampled"), np.asarray(inputs[0])
    return [np.arange(count), np.ones(true_classes.shape, np.float32), np.ones(count, np.float32)]


_declare("UniformCandidateSampler", lambda op: _Uniform(op.get_attr("range_max")), False)
_declare("LogUniformCandidateSampler", lambda op: _LogUniform(op.get_attr("range_max")), False)
_declare("LearnedUnigramCandidateSampler", lambda op: _Weighted(np.ones(op.get_attr("range_max"))), True)
_declare(
    "FixedUnigramCandidateSampler",
    _of_unigrams,
    False,
    tuple(_FIXED),
)
_register("AllCandidateSampler", _all, tuple(name for name in _ATTRS if name != "range_max"))


# ComputeAccidentalHits(true_classes, sampled_candidates): where a true class was drawn.


def _hits_infer(op: Operation) -> Sequence[OutputType]:
    for tensor in op.inputs:
        require_type(tensor, {int64}, "classes")
    op.inputs[0].shape.assert_is_compatible_with([None, op.get_attr("num_true")])
    op.inputs[1].shape.with_rank(1)
    return [(int32, TensorShape([None])), (int64, TensorShape([None])), (float32, TensorShape([None]))]


def _hits(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    true_classes, drawn = (np.asarray(value) for value in inputs)
    rows, _, columns = np.nonzero(true_classes[:, :, None] == drawn)
    weights = np.full(len(rows), np.finfo(np.float32).min)
    return [rows.astype(np.int32), columns.astype(np.int64), weights]


register(
    OpSpec(
        "ComputeAccidentalHits",
        _hits_infer,
        inputs=("true_classes", "sampled_candidates"),
        attrs=("num_true", "seed", "seed2"),
        defaults={"seed": 0, "seed2": 0},
        host_kernel=_hits,
        gradient=None,
        group=None,
        why_host="how many true classes were drawn depends on their values",
    )
)


# The functions users call.


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Classes from 0 to `range_max - 1`, all alike likely.

    Args:
        true_classes: `[batch, num_true]`.
        num_true: True classes of each example.
        num_sampled: How many are drawn.
        unique: Draw until they are all different.
        range_max: Number of classes.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        The classes, how often each true one is to be expected among them, and how often each that was drawn.
    """
    return _sample(
        "UniformCandidateSampler", true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max
    )


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """As `uniform_candidate_sampler`, for classes in the order of their frequency, which follows Zipf's law."""
    return _sample(
        "LogUniformCandidateSampler", true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max
    )


def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """As `uniform_candidate_sampler`, with the frequency of the true classes seen so far."""
    return _sample(
        "LearnedUnigramCandidateSampler", true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max
    )


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """As `uniform_candidate_sampler`, with frequencies that are given, or stand last in the lines of a file.

    Raises:
        ShapeError: both or none of file and frequencies are given.
    """
    if bool(vocab_file) == bool(unigrams):
        raise ShapeError("fixed_unigram_candidate_sampler: exactly one of vocab_file and unigrams is needed")
    return _sample(
        "FixedUnigramCandidateSampler",
        true_classes,
        num_true,
        num_sampled,
        unique,
        seed,
        name,
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=float(distortion),
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=tuple(float(each) for each in unigrams),
    )


def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: int | None = None, name: str | None = None
) -> Sampled:
    """All classes from 0 to `num_sampled - 1`, for tests of what samples."""
    return _sample("AllCandidateSampler", true_classes, num_true, num_sampled, unique, seed, name)


def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: int | None = None, name: str | None = None
) -> Sampled:
    """Examples whose true class was drawn, where among those drawn it is, and the lowest number for each."""
    graph_seed, op_seed = get_seed(seed)
    inputs = [convert_to_tensor(true_classes, int64), convert_to_tensor(sampled_candidates, int64)]
    attrs = {"num_true": num_true, "seed": graph_seed, "seed2": op_seed}
    rows, columns, weights = operation("ComputeAccidentalHits", inputs, attrs, name).outputs
    return rows, columns, weights


def _sample(
    op_type: str,
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None,
    name: str | None,
    **attrs: object,
) -> Sampled:
    graph_seed, op_seed = get_seed(seed)
    common = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "seed": graph_seed, "seed2": op_seed}
    classes = convert_to_tensor(true_classes, int64)
    drawn, true_counts, drawn_counts = operation(op_type, [classes], {**common, **attrs}, name).outputs
    return drawn, true_counts, drawn_counts
