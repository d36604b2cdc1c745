"""iota, broadcast, reshape, transpose, reverse, slice, dynamic slices, pad, concatenate."""

from collections.abc import Callable

import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.reshaping import BroadcastAttrs, IotaAttrs, ReshapeAttrs, ReverseAttrs, TransposeAttrs
from xlalite.hlo.ops.slicing import ConcatenateAttrs, DynamicSliceAttrs, PadAttrs, SliceAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

ARRAY_TYPES = [dtype for dtype in DType if dtype.is_array]
F32, S32 = DType.F32, DType.S32


def apply(opcode: str, attrs: object, *values: np.ndarray, shape: Shape | None = None) -> np.ndarray:
    builder = Builder(opcode)
    operands = [builder.parameter(Shape.array(DType.from_numpy(value.dtype), value.shape)) for value in values]
    module = builder.build_module(builder.op(opcode, operands, attrs, shape=shape))
    return np.asarray(evaluate(module, *values))


def infer(opcode: str, attrs: object, *operands: Shape, declared: Shape | None = None) -> Shape:
    return OPS[opcode].infer_shape(operands, attrs, (), declared)


def numbers(dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    counted = np.arange(int(np.prod(dims))).reshape(dims)
    return (counted % 2 == 0) if dtype is DType.PRED else counted.astype(np.float32).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", ARRAY_TYPES, ids=lambda dtype: dtype.value)
def test_movement_keeps_the_bits_of_every_type(dtype: DType) -> None:
    x = numbers(dtype, (2, 3))
    moved = apply("transpose", TransposeAttrs((1, 0)), x)
    assert moved.dtype == dtype.numpy
    assert moved.tobytes() == np.ascontiguousarray(x.T).tobytes()
    assert apply("reverse", ReverseAttrs((1,)), x).tobytes() == np.ascontiguousarray(x[:, ::-1]).tobytes()
    padded = apply("pad", PadAttrs(((1, 0, 0), (0, 1, 1))), x, x[0, 1])
    assert padded[1:, ::2][:, :3].tobytes() == np.ascontiguousarray(x).tobytes()
    assert apply("concatenate", ConcatenateAttrs((0,)), x, x).tobytes() == x.tobytes() * 2


@pytest.mark.parametrize("dtype", [d for d in ARRAY_TYPES if d is not DType.PRED], ids=lambda dtype: dtype.value)
def test_iota_counts_and_wraps(dtype: DType) -> None:
    found = apply("iota", IotaAttrs(1), shape=Shape.array(dtype, (2, 5)))
    assert found.dtype == dtype.numpy
    assert found[1].tobytes() == np.arange(5).astype(dtype.numpy).tobytes()
    if dtype is DType.S8:
        wrapped = apply("iota", IotaAttrs(0), shape=Shape.array(dtype, (300,)))
        np.testing.assert_array_equal(wrapped, np.arange(300).astype(np.int8))


def test_iota_refuses_scalars_and_pred() -> None:
    with pytest.raises(ShapeError, match="at least one dimension"):
        infer("iota", IotaAttrs(0), declared=Shape.array(F32))
    with pytest.raises(ShapeError, match="pred has no iota"):
        infer("iota", IotaAttrs(0), declared=Shape.array(DType.PRED, (2,)))


def test_broadcast_places_operand_dimensions() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = apply("broadcast", BroadcastAttrs((2, 0)), x, shape=Shape.array(F32, (3, 4, 2)))
    np.testing.assert_array_equal(found, np.broadcast_to(x.T[:, None, :], (3, 4, 2)))
    scalar = apply("broadcast", BroadcastAttrs(), np.float32(7).reshape(()), shape=Shape.array(F32, (0, 2)))
    assert scalar.shape == (0, 2)


@pytest.mark.parametrize(
    ("attrs", "operand", "result", "message"),
    [
        (BroadcastAttrs((0,)), (1,), (3,), "sizes of 1 are not stretched"),
        (BroadcastAttrs((0, 0)), (3, 3), (3, 3), "names a dimension twice"),
        (BroadcastAttrs((2,)), (3,), (3, 3), "not a dimension of rank 2"),
        (BroadcastAttrs(()), (3,), (3, 3), "0 entries for an operand of rank 1"),
    ],
)
def test_broadcast_errors(attrs: BroadcastAttrs, operand: tuple, result: tuple, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        infer("broadcast", attrs, Shape.array(F32, operand), declared=Shape.array(F32, result))


def test_reshape_is_row_major_and_counts_elements() -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    moved = apply("reshape", ReshapeAttrs(), x.T.copy(), shape=Shape.array(S32, (2, 6)))
    np.testing.assert_array_equal(moved, x.T.reshape(2, 6))
    with pytest.raises(ShapeError, match=r"f32\[5\] has 5 elements, the operand has 6"):
        infer("reshape", ReshapeAttrs(), Shape.array(F32, (2, 3)), declared=Shape.array(F32, (5,)))
    with pytest.raises(ShapeError, match="element type is f32, the result's is s32"):
        infer("reshape", ReshapeAttrs(), Shape.array(F32, (6,)), declared=Shape.array(S32, (6,)))


def test_transpose_refuses_what_is_no_permutation() -> None:
    with pytest.raises(ShapeError, match=r"dimensions \[0, 0\] is no permutation"):
        infer("transpose", TransposeAttrs((0, 0)), Shape.array(F32, (2, 3)))


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        (((0, 3, 0),), "stride of dimension 0 must be positive"),
        (((2, 1, 1),), r"range \[2:1\] does not lie in dimension 0 of size 3"),
        (((0, 4, 1),), r"range \[0:4\] does not lie"),
        (((0, 3, 1), (0, 1, 1)), "2 ranges for an operand of rank 1"),
    ],
)
def test_slice_errors(ranges: tuple, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        infer("slice", SliceAttrs(ranges), Shape.array(F32, (3,)))


def test_slice_rounds_the_size_up() -> None:
    x = np.arange(10)
    np.testing.assert_array_equal(apply("slice", SliceAttrs(((1, 9, 3),)), x), x[1:9:3])
    assert apply("slice", SliceAttrs(((4, 4, 2),)), x).shape == (0,)


@pytest.mark.parametrize("index_type", ["s8", "u8", "s32", "u32", "s64", "u64"])
def test_dynamic_slices_clamp_every_index_type(index_type: str) -> None:
    dtype = DType.from_name(index_type)
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    limits = np.iinfo(dtype.numpy)
    for start in (limits.min, 0, 2, 3, limits.max):
        indices = [np.array(start, dtype.numpy), np.array(1, dtype.numpy)]
        row = min(max(int(start), 0), 2)
        found = apply("dynamic-slice", DynamicSliceAttrs((2, 3)), x, *indices)
        np.testing.assert_array_equal(found, x[row : row + 2, 1:4])
        update = np.full((2, 3), -1, np.float32)
        expected = x.copy()
        expected[row : row + 2, 1:4] = -1
        np.testing.assert_array_equal(apply("dynamic-update-slice", None, x, update, *indices), expected)


def test_dynamic_slice_takes_one_index_vector_as_older_programs_do() -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    found = apply("dynamic-slice", DynamicSliceAttrs((1, 2)), x, np.array([9, -9], np.int32))
    np.testing.assert_array_equal(found, x[3:4, 0:2])


def test_dynamic_slice_errors() -> None:
    x, i, f = Shape.array(F32, (4,)), Shape.array(S32), Shape.array(F32)
    with pytest.raises(ShapeError, match="start indices must be integers, found f32"):
        infer("dynamic-slice", DynamicSliceAttrs((2,)), x, f)
    with pytest.raises(ShapeError, match=r"slice size 5 of dimension 0 is not in \[0, 4\]"):
        infer("dynamic-slice", DynamicSliceAttrs((5,)), x, i)
    with pytest.raises(ShapeError, match="2 start indices for an operand of rank 1"):
        infer("dynamic-slice", DynamicSliceAttrs((2,)), x, i, i)
    with pytest.raises(ShapeError, match="the update is 5, the operand's is only 4"):
        infer("dynamic-update-slice", None, x, Shape.array(F32, (5,)), i)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_pad_against_a_loop(size: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal(size).astype(np.float32)
    for low in range(-7, 5):
        for high in range(-7, 5):
            for interior in range(4):
                total = low + high + size + max(size - 1, 0) * interior
                if total < 0:
                    continue
                expected = np.full(total, 9, np.float32)
                for i in range(size):
                    place = low + i * (interior + 1)
                    if 0 <= place < total:
                        expected[place] = x[i]
                found = apply("pad", PadAttrs(((low, high, interior),)), x, np.float32(9).reshape(()))
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("padding", "value", "message"),
    [
        (((0, 0, -1),), F32, "interior padding of dimension 0 is negative"),
        (((-2, -2, 0),), F32, "makes dimension 0 negative: -1"),
        (((0, 0, 0),), S32, "the padding value's is s32"),
        ((), F32, "0 entries for an operand of rank 1"),
    ],
)
def test_pad_errors(padding: tuple, value: DType, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        infer("pad", PadAttrs(padding), Shape.array(F32, (3,)), Shape.array(value))


def test_concatenate_errors() -> None:
    with pytest.raises(ShapeError, match="operands 0 and 1 differ in more than dimension 0"):
        infer("concatenate", ConcatenateAttrs((0,)), Shape.array(F32, (2, 3)), Shape.array(F32, (2, 4)))
    with pytest.raises(ShapeError, match="needs at least one operand"):
        infer("concatenate", ConcatenateAttrs((0,)))


def test_pure_movement_is_marked() -> None:
    moving = {name for name, op in OPS.items() if op.has(Trait.DATA_MOVEMENT)}
    expected = {"iota", "broadcast", "reshape", "transpose", "reverse", "slice", "dynamic-slice", "pad", "gather"}
    assert expected | {"concatenate", "dynamic-update-slice"} <= moving
    assert not moving & {"reduce", "dot", "add", "scatter", "sort"}


def test_movement_of_ten_million_elements_is_quick(run: Callable[..., np.ndarray]) -> None:
    x = np.zeros((2500, 4000), np.float32)
    found = run(
        "HloModule m\nENTRY e { x = f32[2500,4000] parameter(0)  t = f32[4000,2500] transpose(x), dimensions={1,0}\n"
        "ROOT r = f32[10000000] reshape(t) }",
        x,
    )
    assert found.shape == (10_000_000,)
