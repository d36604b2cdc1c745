"""gather and scatter, against loops over index vectors."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.gathering import GatherAttrs, ScatterAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import ProgramShape, Shape

F32, S32 = DType.F32, DType.S32


@dataclass(frozen=True)
class Plan:
    """Random dimension numbers, in terms common to gather and scatter."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    window: tuple[int, ...]
    addressed: tuple[int, ...]
    dropped: tuple[int, ...]
    operand_batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    vector_dim: int
    window_dims: tuple[int, ...]
    result: tuple[int, ...]

    def batch(self) -> tuple[int, ...]:
        return tuple(size for dim, size in enumerate(self.indices) if dim != self.vector_dim)

    def kept(self) -> list[int]:
        gone = (*self.dropped, *self.operand_batching)
        return [dim for dim in range(len(self.operand)) if dim not in gone]

    def start(self, indices: np.ndarray, position: tuple[int, ...]) -> list[int]:
        """Start of the window at a batch position, not clamped."""
        full = list(position)
        full.insert(self.vector_dim, slice(None))
        vector = np.atleast_1d(indices[tuple(full)]) if self.vector_dim < indices.ndim else [indices[position]]
        start = [0] * len(self.operand)
        for component, dim in enumerate(self.addressed):
            start[dim] = int(vector[component])
        for dim, along in zip(self.operand_batching, self.indices_batching, strict=True):
            start[dim] = position[along - (along > self.vector_dim)]
        return start

    def place(self, position: tuple[int, ...], offset: tuple[int, ...]) -> tuple[int, ...]:
        """Index into the result (or the updates) of an element of the window at a batch position."""
        windows, batches = iter(offset), iter(position)
        return tuple(next(windows) if dim in self.window_dims else next(batches) for dim in range(len(self.result)))


def random_plan(rng: np.random.Generator) -> Plan:
    rank, batch_rank = int(rng.integers(1, 5)), int(rng.integers(0, 3))
    operand = rng.integers(1, 5, rank).tolist()
    order = rng.permutation(rank).tolist()
    batching_count = int(rng.integers(0, min(rank, batch_rank) + 1))
    operand_batching = sorted(order[:batching_count])
    rest = order[batching_count:]
    addressed = rest[: int(rng.integers(0, len(rest) + 1))]
    dropped = sorted(dim for dim in rest if rng.random() < 0.4)
    batch = rng.integers(0 if rng.random() < 0.1 else 1, 4, batch_rank).tolist()
    along = rng.permutation(batch_rank).tolist()[:batching_count]
    for dim, position in zip(operand_batching, along, strict=True):
        operand[dim] = batch[position] = max(1, batch[position])
    vector_dim = int(rng.integers(0, batch_rank + 1))
    implicit = len(addressed) == 1 and rng.random() < 0.3
    if implicit:
        vector_dim, indices = batch_rank, list(batch)
    else:
        indices = [*batch[:vector_dim], len(addressed), *batch[vector_dim:]]
    gone = {*dropped, *operand_batching}
    window = [1 if dim in gone else int(rng.integers(0, size + 1)) for dim, size in enumerate(operand)]
    kept = [window[dim] for dim in range(rank) if dim not in gone]
    total = batch_rank + len(kept)
    window_dims = sorted(rng.permutation(total).tolist()[: len(kept)])
    windows, batches = iter(kept), iter(batch)
    result = [next(windows) if dim in window_dims else next(batches) for dim in range(total)]
    return Plan(
        tuple(operand),
        tuple(indices),
        tuple(window),
        tuple(addressed),
        tuple(dropped),
        tuple(operand_batching),
        tuple(position + (position >= vector_dim) for position in along),
        vector_dim,
        tuple(window_dims),
        tuple(result),
    )


def gather(x: np.ndarray, indices: np.ndarray, attrs: GatherAttrs) -> np.ndarray:
    builder = Builder("gather")
    operands = [builder.parameter(Shape.array(DType.from_numpy(v.dtype), v.shape)) for v in (x, indices)]
    return np.asarray(evaluate(builder.build_module(builder.op("gather", operands, attrs)), x, indices))


@pytest.mark.parametrize("seed", range(100))
def test_gather_against_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plan = random_plan(rng)
    x = rng.integers(0, 1000, plan.operand).astype(np.int32)
    indices = rng.integers(-3, 7, plan.indices).astype(np.int32)
    attrs = GatherAttrs(
        plan.window_dims,
        plan.dropped,
        plan.addressed,
        plan.operand_batching,
        plan.indices_batching,
        plan.vector_dim,
        plan.window,
    )
    expected = np.empty(plan.result, np.int32)
    for position in np.ndindex(*plan.batch()):
        start = [
            min(max(s, 0), size - w)
            for s, size, w in zip(plan.start(indices, position), plan.operand, plan.window, strict=True)
        ]
        for offset in np.ndindex(*(plan.window[dim] for dim in plan.kept())):
            index = list(start)
            for dim, o in zip(plan.kept(), offset, strict=True):
                index[dim] += o
            expected[plan.place(position, offset)] = x[tuple(index)]
    np.testing.assert_array_equal(gather(x, indices, attrs), expected)


Body = Callable[[Builder, tuple[Handle, ...]], Handle]
BODIES: dict[str, tuple[Body, Callable[[int, int], int]]] = {
    "add": (lambda b, p: p[0] + p[1], lambda a, b: a + b),
    "maximum": (lambda b, p: b.op("maximum", p), max),
    "assign": (lambda b, p: p[1], lambda a, b: b),
    "keep": (lambda b, p: p[0], lambda a, b: a),
    "other": (lambda b, p: p[0] * 2 - p[1], lambda a, b: a * 2 - b),
}


def scatter(body: Body, attrs: ScatterAttrs, *values: np.ndarray) -> np.ndarray:
    builder = Builder("scatter")
    scalars = [Shape.array(DType.from_numpy(v.dtype)) for v in values[: len(values) // 2]]
    function = builder.subcomputation("f", scalars * 2, body)
    operands = [builder.parameter(Shape.array(DType.from_numpy(v.dtype), v.shape)) for v in values]
    return evaluate(builder.build_module(builder.op("scatter", operands, attrs, (function,))), *values)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("name", BODIES)
def test_scatter_against_a_loop(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    plan = random_plan(rng)
    body, combine = BODIES[name]
    x = rng.integers(-9, 9, plan.operand).astype(np.int64)
    indices = rng.integers(-2, 5, plan.indices).astype(np.int32)
    updates = rng.integers(-9, 9, plan.result).astype(np.int64)
    attrs = ScatterAttrs(
        plan.window_dims,
        plan.dropped,
        plan.addressed,
        plan.operand_batching,
        plan.indices_batching,
        plan.vector_dim,
    )
    expected = x.copy()
    for position in np.ndindex(*plan.batch()):
        start = plan.start(indices, position)
        if any(not 0 <= s <= size - w for s, size, w in zip(start, plan.operand, plan.window, strict=True)):
            continue
        for offset in np.ndindex(*(plan.window[dim] for dim in plan.kept())):
            index = list(start)
            for dim, o in zip(plan.kept(), offset, strict=True):
                index[dim] += o
            expected[tuple(index)] = combine(expected[tuple(index)], updates[plan.place(position, offset)])
    np.testing.assert_array_equal(scatter(body, attrs, x, indices, updates), expected)


ROWS = ScatterAttrs((1,), (0,), (0,), index_vector_dim=1)


def test_unsigned_indices_are_never_negative() -> None:
    x = np.arange(5, dtype=np.float32)
    attrs = GatherAttrs((), (0,), (0,), index_vector_dim=1, slice_sizes=(1,))
    for dtype in (np.uint8, np.uint32, np.uint64):
        top = np.iinfo(dtype).max
        np.testing.assert_array_equal(gather(x, np.array([[top], [1]], dtype), attrs), [4, 1])
        updates = np.array([7, 9], np.float32)
        found = scatter(
            BODIES["assign"][0],
            ScatterAttrs((), (0,), (0,), index_vector_dim=1),
            x,
            np.array([[top], [1]], dtype),
            updates,
        )
        np.testing.assert_array_equal(found, [0, 9, 2, 3, 4])


def test_float_sums_at_one_place_round_once() -> None:
    values = np.random.default_rng(1).standard_normal(10_000).astype(np.float32)
    found = scatter(
        BODIES["add"][0],
        ScatterAttrs((), (0,), (0,), index_vector_dim=1),
        np.zeros(3, np.float32),
        np.ones((10_000, 1), np.int32),
        values,
    )
    np.testing.assert_array_equal(found, [0, values.astype(np.float64).sum().astype(np.float32), 0])


def test_scatter_leaves_other_elements_bit_for_bit() -> None:
    x = np.array([np.nan, -0.0, 1e-40, 5], np.float32)
    attrs = ScatterAttrs((), (0,), (0,), index_vector_dim=1)
    found = scatter(BODIES["add"][0], attrs, x, np.array([[3], [9]], np.int32), np.ones(2, np.float32))
    assert np.asarray(found)[:3].tobytes() == x[:3].tobytes()
    assert found[3] == 6


def test_variadic_scatter_keeps_values_together() -> None:
    def larger(b: Builder, p: tuple[Handle, ...]) -> Handle:
        wins = b.compare(p[2], p[0], "GT")
        return b.tuple((b.select(wins, p[2], p[0]), b.select(wins, p[3], p[1])))

    values, owners = scatter(
        larger,
        ScatterAttrs((), (0,), (0,), index_vector_dim=1),
        np.zeros(3, np.float32),
        np.full(3, -1, np.int32),
        np.array([[0], [2], [0], [0], [7]], np.int32),
        np.array([1, 5, 3, 2, 9], np.float32),
        np.arange(5, dtype=np.int32),
    )
    np.testing.assert_array_equal(values, [3, 0, 5])
    np.testing.assert_array_equal(owners, [2, -1, 1])


@pytest.mark.parametrize(
    ("attrs", "indices", "message"),
    [
        (GatherAttrs((1,), (0,), (0,), (), (), 1, (1,)), (4, 1), "slice_sizes has 1 entries for an operand of rank 2"),
        (GatherAttrs((1,), (0,), (0,), (), (), 1, (2, 3)), (4, 1), "slice size 2 of dimension 0, which is dropped"),
        (GatherAttrs((1,), (0,), (0,), (), (), 1, (1, 4)), (4, 1), r"slice size 4 of dimension 1 is not in \[0, 3\]"),
        (GatherAttrs((1,), (0,), (0, 1), (), (), 1, (1, 3)), (4, 1), "index vectors have 1 components, 2 operand"),
        (GatherAttrs((), (0,), (0,), (), (), 1, (1, 3)), (4, 1), "offset_dims has 0 entries, windows keep 1"),
        (GatherAttrs((1,), (0,), (0,), (), (), 3, (1, 3)), (4, 1), r"index_vector_dim 3 is not in \[0, 2\]"),
        (GatherAttrs((1,), (), (0,), (1,), (0,), 1, (1, 1)), (4, 1), "batching dimension 1 of the operand is 3"),
        (GatherAttrs((2,), (0,), (0,), (), (), 1, (1, 3)), (4, 1), "not a dimension of rank 2"),
    ],
)
def test_gather_errors(attrs: GatherAttrs, indices: tuple, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        OPS["gather"].infer_shape([Shape.array(F32, (10, 3)), Shape.array(S32, indices)], attrs)


def test_gather_refuses_float_indices() -> None:
    attrs = GatherAttrs((1,), (0,), (0,), (), (), 1, (1, 3))
    with pytest.raises(ShapeError, match="indices must be integers, found f32"):
        OPS["gather"].infer_shape([Shape.array(F32, (10, 3)), Shape.array(F32, (4, 1))], attrs)


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ((4, 5), "dimension 1 of the updates is 5, dimension 1 of the operand is only 3"),
        ((5, 3), r"the updates have batch sizes \[5\], the indices \[4\]"),
    ],
)
def test_scatter_errors(updates: tuple, message: str) -> None:
    scalar = Shape.array(F32)
    shapes = [Shape.array(F32, (10, 3)), Shape.array(S32, (4, 1)), Shape.array(F32, updates)]
    with pytest.raises(ShapeError, match=message):
        OPS["scatter"].infer_shape(shapes, ROWS, [ProgramShape((scalar, scalar), scalar)])


def test_scatter_checks_its_computation() -> None:
    shapes = [Shape.array(F32, (10, 3)), Shape.array(S32, (4, 1)), Shape.array(F32, (4, 3))]
    with pytest.raises(ShapeError, match=r"expected \(f32\[\], f32\[\]\) -> f32\[\]"):
        OPS["scatter"].infer_shape(shapes, ROWS, [ProgramShape((Shape.array(F32),), Shape.array(F32))])
