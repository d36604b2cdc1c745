"""Shapes and rearrangement of tensors: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import Dimension, ShapeLike, TensorShape, as_shape
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.shape_rules import broadcast_shapes
from xlalite.ops.helpers.sizes import as_size_vector

# Beyond this many elements `zeros` and `ones` become a Fill rather than a constant in the graph.
_MAX_CONSTANT_ELEMENTS = 1000


def placeholder(dtype: Any, shape: ShapeLike = None, name: str | None = None) -> Tensor:
    """A value to be fed; sizes of `shape` may be None, and so may the whole shape."""
    return node("Placeholder", (), {"dtype": as_dtype(dtype), "shape": as_shape(shape)}, name)


def placeholder_with_default(input: Any, shape: ShapeLike, name: str | None = None) -> Tensor:
    """A value that may be fed and otherwise is `input`."""
    return node("PlaceholderWithDefault", [convert_to_tensor(input)], {"shape": as_shape(shape)}, name)


def identity(input: Any, name: str | None = None) -> Tensor:
    """The same value as a tensor of its own."""
    return node("Identity", [convert_to_tensor(input)], None, name)


def ensure_shape(x: Any, shape: ShapeLike, name: str | None = None) -> Tensor:
    """The same value, which must have the shape.

    Raises:
        ShapeError: what is known of its shape says otherwise.
    """
    return node("EnsureShape", [convert_to_tensor(x)], {"shape": as_shape(shape)}, name)


def identity_n(inputs: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """The same values, all available together."""
    return list(operation("IdentityN", [convert_to_tensor(value) for value in inputs], None, name).outputs)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The same value, which gradients treat as a constant."""
    return node("StopGradient", [convert_to_tensor(input)], None, name)


def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Tensor:
    """The same value, through which gradients are an error."""
    return node("PreventGradient", [convert_to_tensor(input)], {"message": message}, name)


# Sizes.


def shape(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The sizes of `input` as a vector."""
    tensor, wanted = convert_to_tensor(input), as_dtype(out_type)
    if tensor.shape.is_fully_defined():
        return constant(np.array(tensor.shape.known_dims(), wanted.numpy_dtype), name=name or "Shape")
    return node("Shape", [tensor], {"out_type": wanted}, name)


def shape_n(input: Sequence[Any], out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The sizes of several tensors."""
    tensors = [convert_to_tensor(value) for value in input]
    return list(operation("ShapeN", tensors, {"out_type": as_dtype(out_type)}, name).outputs)


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of `input`."""
    tensor = convert_to_tensor(input)
    if tensor.shape.rank is not None:
        return constant(tensor.shape.rank, dtypes.int32, name=name or "Rank")
    return node("Rank", [tensor], {"out_type": dtypes.int32}, name)


def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements of `input`."""
    tensor, wanted = convert_to_tensor(input), as_dtype(out_type)
    count = tensor.shape.num_elements()
    if count is not None:
        return constant(count, wanted, name=name or "Size")
    return node("Size", [tensor], {"out_type": wanted}, name)


def broadcast_static_shape(shape_x: ShapeLike, shape_y: ShapeLike) -> TensorShape:
    """The shape two operands are broadcast to."""
    return broadcast_shapes(as_shape(shape_x), as_shape(shape_y))


# The same elements with other sizes or in another order.


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """`tensor` with other sizes, one of which may be -1."""
    return node("Reshape", [convert_to_tensor(tensor), as_size_vector(shape)], None, name)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """`input` with a new dimension of size 1."""
    position = axis if axis is not None else dim
    if position is None:
        raise ShapeError("expand_dims: say where with axis=")
    return node("ExpandDims", [convert_to_tensor(input), convert_to_tensor(position)], None, name)


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """`input` without the listed dimensions of size 1, or without any."""
    listed = axis if axis is not None else squeeze_dims
    axes = () if listed is None else (listed,) if isinstance(listed, int) else tuple(int(i) for i in listed)
    return node("Squeeze", [convert_to_tensor(input)], {"squeeze_dims": axes}, name)


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """Dimensions in the order of `perm`, reversed by default."""
    tensor = convert_to_tensor(a)
    if perm is None:
        if tensor.shape.rank is None:
            order = node("Range", [rank(tensor) - 1, constant(-1), constant(-1)])
        else:
            order = constant(np.arange(tensor.shape.rank - 1, -1, -1, dtype=np.int32))
    else:
        order = as_size_vector(perm)
    moved = node("Transpose", [tensor, order], None, name)
    return node("Conj", [moved]) if conjugate and tensor.dtype.is_complex else moved


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """`tensor` with the order of elements turned round along the listed dimensions."""
    return node("ReverseV2", [convert_to_tensor(tensor), as_size_vector(axis)], None, name)


reverse_v2 = reverse


# Joining and taking apart.


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Tensors one after another along a dimension."""
    operands = promote(*values) if isinstance(values, list | tuple) else (convert_to_tensor(values),)
    if len(operands) == 1:
        return identity(operands[0], name)
    return node("ConcatV2", [*operands, convert_to_tensor(axis)], None, name)


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors side by side along a new dimension."""
    return node("Pack", promote(*values), {"axis": axis}, name)


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """The slices along a dimension, whose size must be known."""
    tensor = convert_to_tensor(value)
    if num is None:
        dims = tensor.shape.dims
        found = None if dims is None else dims[axis]
        if found is None:
            raise ShapeError(f"unstack: dimension {axis} of {tensor.name!r} {tensor.shape} is unknown; pass num=")
        num = found
    return list(operation("Unpack", [tensor], {"num": num, "axis": axis}, name).outputs)


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """`value` in equal parts (a number) or in parts of given sizes (a vector)."""
    tensor, along = convert_to_tensor(value), convert_to_tensor(axis)
    if isinstance(num_or_size_splits, int | np.integer | Dimension):
        return list(operation("Split", [along, tensor], {"num_split": int(num_or_size_splits)}, name).outputs)
    sizes = as_size_vector(num_or_size_splits)
    count = num if num is not None else (sizes.shape.dims or (None,))[0]
    if count is None:
        raise ShapeError("split: the number of parts is unknown; pass num=")
    return list(operation("SplitV", [tensor, sizes, along], {"num_split": count}, name).outputs)


# Cutting and padding.


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """A box from `begin` of the given sizes; a size of -1 means all that is left."""
    first, sizes = promote(as_size_vector(begin), as_size_vector(size))
    return node("Slice", [convert_to_tensor(input_), first, sizes], None, name)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> Tensor:
    """A box with steps; each mask has one bit for each entry of `begin`."""
    first, last = promote(as_size_vector(begin), as_size_vector(end))
    steps = node("OnesLike", [first]) if strides is None else cast_to(as_size_vector(strides), first.dtype)
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    return node("StridedSlice", [convert_to_tensor(input_), first, last, steps], masks, name)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """`tensor` with values around it; `paddings` is `[rank, 2]`: how many before and after in each dimension.

    The mode is CONSTANT, REFLECT or SYMMETRIC; the last of these repeats the elements at the ends.
    """
    x, around = convert_to_tensor(tensor), convert_to_tensor(paddings)
    if mode.upper() != "CONSTANT":
        return node("MirrorPad", [x, around], {"mode": mode.upper()}, name)
    if isinstance(constant_values, int | float) and constant_values == 0:
        return node("Pad", [x, around], None, name)
    return node("PadV2", [x, around, cast_to(promote(constant_values)[0], x.dtype)], None, name)


# Filling.


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str = "zeros") -> Tensor:
    """Zeros."""
    return _filled(shape, 0, dtype, name)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str = "ones") -> Tensor:
    """Ones."""
    return _filled(shape, 1, dtype, name)


def _filled(shape: Any, number: int, dtype: Any, name: str) -> Tensor:
    wanted = as_dtype(dtype)
    sizes = as_size_vector(shape)
    if sizes.op.spec.is_constant:
        dims = tuple(int(size) for size in sizes.op.get_attr("value"))
        if min(dims, default=0) < 0:
            raise ShapeError(f"{name}: a size must not be negative, found {list(dims)}")
        if math.prod(dims) <= _MAX_CONSTANT_ELEMENTS:
            return constant(np.full(dims, number, wanted.numpy_dtype), name=name)
    return node("Fill", [sizes, constant(bool(number) if wanted.is_bool else number, wanted)], None, name)


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """One value everywhere."""
    return node("Fill", [as_size_vector(dims), convert_to_tensor(value)], None, name)


def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Zeros of the shape of `tensor`, and of its type unless another is given."""
    return _like("ZerosLike", tensor, dtype, name)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones of the shape of `tensor`, and of its type unless another is given."""
    return _like("OnesLike", tensor, dtype, name)


def _like(op_type: str, value: Any, dtype: Any, name: str | None) -> Tensor:
    tensor = convert_to_tensor(value)
    return node(op_type, [tensor if dtype is None else cast_to(tensor, as_dtype(dtype))], None, name)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated to larger sizes by NumPy's rules."""
    return node("BroadcastTo", [convert_to_tensor(input), as_size_vector(shape)], None, name)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """`input` repeated `multiples[i]` times along dimension i."""
    return node("Tile", [convert_to_tensor(input), as_size_vector(multiples)], None, name)


# Selection.


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Rows of `params`, a tensor or a variable, at `indices`.

    Args:
        params: What to take from.
        indices: Which rows; those out of range clamp.
        validate_indices: Accepted for compatibility.
        name: Name of the operation.
        axis: The dimension along which rows are counted; that behind the batches by default.
        batch_dims: So many first dimensions of `params` and `indices` belong together.
    """
    index = convert_to_tensor(indices)
    if batch_dims:
        from xlalite.ops.functions.selection import gather_with_batches  # which stands above

        along = batch_dims if axis is None else int(axis)
        return gather_with_batches(convert_to_tensor(params), index, along, batch_dims, name)
    handle = getattr(params, "handle", None)
    if isinstance(handle, Tensor) and (axis is None or (isinstance(axis, int) and axis == 0)):
        return node("ResourceGather", [handle, index], None, name)
    return node("GatherV2", [convert_to_tensor(params), index, convert_to_tensor(axis or 0)], None, name)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """A new dimension of size `depth`: `on_value` at the index, `off_value` elsewhere."""
    on, off = promote(1 if on_value is None else on_value, 0 if off_value is None else off_value)
    if dtype is not None:
        wanted = as_dtype(dtype)
    else:
        wanted = dtypes.float32 if on_value is None and off_value is None else on.dtype
    inputs = [convert_to_tensor(indices), convert_to_tensor(depth), cast_to(on, wanted), cast_to(off, wanted)]
    return node("OneHot", inputs, {"axis": -1 if axis is None else axis}, name)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Elements of `x` where the condition holds, of `y` elsewhere; with neither, the positions of true elements.

    As in TensorFlow 1, a condition that is a vector chooses whole rows of `x` and `y` of higher rank. Positions are a
    matrix `[number of true elements, rank]`.

    Raises:
        ShapeError: only one of `x` and `y` is given.
    """
    chooser = convert_to_tensor(condition)
    if x is None and y is None:
        return node("Where", [chooser], None, name)
    if x is None or y is None:
        raise ShapeError("where: give both x and y, or neither")
    t, e = promote(x, y)
    by_rows = chooser.shape.rank == 1 and t.shape.rank is not None and t.shape.rank > 1
    return node("Select" if by_rows else "SelectV2", [chooser, t, e], None, name or "Select")


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Elements of `x` where the condition holds, of `y` elsewhere, all three broadcast together; else as `where`."""
    if x is None and y is None:
        return where(condition, name=name)
    return node("SelectV2", [convert_to_tensor(condition), *promote(x, y)], None, name)


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """The first `seq_lengths[i]` elements of each sequence in a batch turned round.

    Raises:
        ShapeError: it is not said along which dimension sequences lie.
    """
    along = seq_axis if seq_axis is not None else seq_dim
    if along is None:
        raise ShapeError("reverse_sequence: say along which dimension with seq_axis=")
    batch = batch_axis if batch_axis is not None else batch_dim or 0
    operands = [convert_to_tensor(input), convert_to_tensor(seq_lengths)]
    return node("ReverseSequence", operands, {"seq_dim": along, "batch_dim": batch}, name)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Elements shifted along dimensions; what goes out at one end comes in at the other."""
    operands = [convert_to_tensor(value) for value in (input, shift, axis)]
    return node("Roll", operands, None, name)


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """Coordinates of a grid: each vector repeated along the dimensions of the others.

    Raises:
        ShapeError: the indexing is neither xy nor ij.
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: indexing {indexing!r} is neither 'xy' nor 'ij'")
    vectors = [reshape(each, [-1]) for each in promote(*args)]
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = [1, 0]
    counts: list[Tensor] = [size(vectors[i]) for i in np.argsort(places)]
    sizes = node("Pack", counts, {"axis": 0})
    return [
        broadcast_to(reshape(vector, [-1 if i == place else 1 for i in range(len(vectors))]), sizes)
        for vector, place in zip(vectors, places, strict=True)
    ]


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation that undoes `x`."""
    return node("InvertPermutation", [as_size_vector(x)], None, name)
