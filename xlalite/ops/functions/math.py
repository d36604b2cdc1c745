"""Mathematics on tensors: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.declarations import elementwise_binary
from xlalite.ops.declarations.filling import all_axes
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to, floating, promote


def _unary(op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(x: Any, name: str | None = None) -> Tensor:
        return node(op_type, [convert_to_tensor(x)], None, name)

    return _documented(function, op_type, summary)


def _unary_floating(op_type: str, summary: str) -> Callable[..., Tensor]:
    """A function of real or complex numbers; integers become float64, as in NumPy."""

    def function(x: Any, name: str | None = None) -> Tensor:
        return node(op_type, [floating(convert_to_tensor(x))], None, name)

    return _documented(function, op_type, summary)


def _binary(op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return node(op_type, promote(x, y), None, name)

    return _documented(function, op_type, summary)


def _documented(function: Callable[..., Tensor], op_type: str, summary: str) -> Callable[..., Tensor]:
    function.__doc__ = f"{summary} Element by element, with NumPy's broadcasting and promotion."
    function.__qualname__ = function.__name__ = op_type.lower()
    return function


negative = _unary("Neg", "-x.")
sign = _unary("Sign", "-1, 0 or 1.")
square = _unary("Square", "x * x.")
floor = _unary("Floor", "Largest integer not above x.")
ceil = _unary("Ceil", "Smallest integer not below x.")
rint = _unary("Rint", "Nearest integer, halves to even.")
round = _unary("Round", "Nearest integer, halves to even.")
conj = _unary("Conj", "Complex conjugate.")
logical_not = _unary("LogicalNot", "Logical not.")
is_nan = _unary("IsNan", "Whether x is NaN.")
is_inf = _unary("IsInf", "Whether x is infinite.")
is_finite = _unary("IsFinite", "Whether x is neither infinite nor NaN.")
exp = _unary_floating("Exp", "e^x.")
expm1 = _unary_floating("Expm1", "e^x - 1, exact near 0.")
log = _unary_floating("Log", "Natural logarithm.")
log1p = _unary_floating("Log1p", "log(1 + x), exact near 0.")
sqrt = _unary_floating("Sqrt", "Square root.")
rsqrt = _unary_floating("Rsqrt", "1 / sqrt(x).")
reciprocal = _unary_floating("Reciprocal", "1 / x.")
tanh = _unary_floating("Tanh", "Hyperbolic tangent.")
sigmoid = _unary_floating("Sigmoid", "1 / (1 + e^-x).")
sin = _unary_floating("Sin", "Sine.")
cos = _unary_floating("Cos", "Cosine.")
tan = _unary_floating("Tan", "Tangent.")
sinh = _unary_floating("Sinh", "Hyperbolic sine.")
cosh = _unary_floating("Cosh", "Hyperbolic cosine.")
asin = _unary_floating("Asin", "Inverse sine.")
acos = _unary_floating("Acos", "Inverse cosine.")
atan = _unary_floating("Atan", "Inverse tangent.")
erf = _unary_floating("Erf", "Error function.")

add = _binary("Add", "x + y.")
subtract = _binary("Sub", "x - y.")
multiply = _binary("Mul", "x * y.")
floordiv = _binary("FloorDiv", "x / y rounded down.")
floormod = _binary("FloorMod", "Remainder with the sign of y.")
truncatediv = _binary("TruncateDiv", "x / y rounded toward zero, of integers.")
truncatemod = _binary("TruncateMod", "Remainder with the sign of x.")
maximum = _binary("Maximum", "The larger one; NaN if either is.")
minimum = _binary("Minimum", "The smaller one; NaN if either is.")
squared_difference = _binary("SquaredDifference", "(x - y)^2.")
pow = _binary("Pow", "x^y.")
atan2 = _binary("Atan2", "Angle of the point (y, x).")
xlogy = _binary("Xlogy", "x log(y), 0 where x is 0.")
div_no_nan = _binary("DivNoNan", "x / y, 0 where y is 0.")
equal = _binary("Equal", "x == y.")
not_equal = _binary("NotEqual", "x != y.")
less = _binary("Less", "x < y.")
less_equal = _binary("LessEqual", "x <= y.")
greater = _binary("Greater", "x > y.")
greater_equal = _binary("GreaterEqual", "x >= y.")
logical_and = _binary("LogicalAnd", "Logical and.")
logical_or = _binary("LogicalOr", "Logical or.")
mod = floormod
sub = subtract
mul = multiply
floor_div = floordiv


def logical_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Logical exclusive or."""
    return node("NotEqual", [convert_to_tensor(x, dtypes.bool_), convert_to_tensor(y, dtypes.bool_)], None, name)


def abs(x: Any, name: str | None = None) -> Tensor:
    """Absolute value; of complex numbers, their magnitude."""
    tensor = convert_to_tensor(x)
    return node("ComplexAbs" if tensor.dtype.is_complex else "Abs", [tensor], None, name)


def real(x: Any, name: str | None = None) -> Tensor:
    """Real part; of real numbers the numbers themselves."""
    tensor = convert_to_tensor(x)
    return node("Real", [tensor], None, name) if tensor.dtype.is_complex else tensor


def imag(x: Any, name: str | None = None) -> Tensor:
    """Imaginary part; of real numbers zeros."""
    tensor = convert_to_tensor(x)
    return node("Imag" if tensor.dtype.is_complex else "ZerosLike", [tensor], None, name)


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """X / y; integers are divided as float64."""
    return node("RealDiv", [floating(tensor) for tensor in promote(x, y)], None, name or "truediv")


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """X / y as Python divides."""
    return truediv(x, y, name)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """X / y as Python 2 divided: integers are rounded down."""
    operands = promote(x, y)
    return node("FloorDiv" if operands[0].dtype.is_integer else "RealDiv", operands, None, name or "div")


realdiv = truediv


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`x` in another element type; the tensor itself if it has that type already."""
    tensor, wanted = convert_to_tensor(x), as_dtype(dtype)
    return tensor if tensor.dtype is wanted else node("Cast", [tensor], {"dtype": wanted}, name)


def to_float(x: Any, name: str = "ToFloat") -> Tensor:
    """`x` as float32."""
    return cast(x, dtypes.float32, name)


def to_int32(x: Any, name: str = "ToInt32") -> Tensor:
    """`x` as int32."""
    return cast(x, dtypes.int32, name)


def to_int64(x: Any, name: str = "ToInt64") -> Tensor:
    """`x` as int64."""
    return cast(x, dtypes.int64, name)


def bitcast(x: Any, type: Any, name: str | None = None) -> Tensor:
    """The same bits read as another element type."""
    return node("Bitcast", [convert_to_tensor(x)], {"dtype": as_dtype(type)}, name)


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of two matrices; that one is said to have many zeros changes nothing."""
    return matmul(a, b, transpose_a, transpose_b, name=name)


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
    output_type: Any = None,
) -> Tensor:
    """Matrix product `[..., m, k] x [..., k, n] -> [..., m, n]`; leading dimensions are broadcast.

    With an `output_type` the factors are converted to it first.

    Raises:
        ShapeError: the contracting sizes differ, or an operand has fewer than two dimensions.
    """
    x, y = promote(a, b) if output_type is None else (cast(a, output_type), cast(b, output_type))
    if 2 in (x.shape.rank, y.shape.rank) and x.shape.rank in (2, None) and y.shape.rank in (2, None):
        if (adjoint_a or adjoint_b) and x.dtype.is_complex:
            x = elementwise_binary.conjugate(x) if adjoint_a else x
            y = elementwise_binary.conjugate(y) if adjoint_b else y
        attrs = {"transpose_a": transpose_a or adjoint_a, "transpose_b": transpose_b or adjoint_b}
        return node("MatMul", [x, y], attrs, name)
    x = elementwise_binary.conjugate(x) if transpose_a else x
    y = elementwise_binary.conjugate(y) if transpose_b else y
    attrs = {"adj_x": transpose_a or adjoint_a, "adj_y": transpose_b or adjoint_b}
    return node("BatchMatMulV2", [x, y], attrs, name or "MatMul")


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """`scalar * x`, of tensors and `IndexedSlices`.

    Raises:
        ShapeError: the first one is no scalar.
    """
    factor = convert_to_tensor(scalar, x.dtype if isinstance(x, Tensor | IndexedSlices) else None)
    if factor.shape.rank not in (None, 0):
        raise ShapeError(f"scalar_mul: expected a scalar, found a tensor of shape {factor.shape}")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(multiply(factor, x.values, name), x.indices, x.dense_shape)
    return multiply(factor, x, name)


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    operands = promote(*inputs)
    return operands[0] if len(operands) == 1 and name is None else node("AddN", operands, None, name)


# Reductions. `axis` is None for all dimensions; keep_dims and reduction_indices are older spellings.


def _reduction(op_type: str, name_of_op: str, summary: str) -> Callable[..., Tensor]:
    def function(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        tensor = convert_to_tensor(input_tensor)
        chosen = axis if axis is not None else reduction_indices
        axes = all_axes(tensor) if chosen is None else convert_to_tensor(_axis_value(chosen))
        keep = bool(keepdims if keepdims is not None else keep_dims)
        return node(op_type, [tensor, axes], {"keep_dims": keep}, name or name_of_op)

    function.__doc__ = f"{summary} Along `axis`, or along all dimensions; kept with size 1 when `keepdims`."
    function.__name__ = function.__qualname__ = f"reduce_{op_type.lower()}"
    return function


def _axis_value(axis: Any) -> Any:
    return np.array(axis, np.int32) if isinstance(axis, list | tuple) and not axis else axis


reduce_sum = _reduction("Sum", "Sum", "The sum.")
reduce_mean = _reduction("Mean", "Mean", "The mean; integers are divided toward zero.")
reduce_prod = _reduction("Prod", "Prod", "The product.")
reduce_max = _reduction("Max", "Max", "The largest element; NaN if there is one.")
reduce_min = _reduction("Min", "Min", "The smallest element; NaN if there is one.")
reduce_all = _reduction("All", "All", "Whether all elements are true.")
reduce_any = _reduction("Any", "Any", "Whether an element is true.")


def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """log(sum(e^x)), computed so that e^x cannot overflow."""
    tensor = convert_to_tensor(input_tensor)
    largest = reduce_max(tensor, axis, True)
    safe = node("SelectV2", [is_finite(largest), largest, node("ZerosLike", [largest])])
    anchor = node("StopGradient", [safe])
    total = log(reduce_sum(exp(tensor - anchor), axis, True)) + anchor
    return total if keepdims else reduce_sum(total, axis, False, name)


def argmax(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    """Position of the largest element along a dimension, the first one of several."""
    return _arg("ArgMax", input, axis, dimension, output_type, name)


def argmin(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    """Position of the smallest element along a dimension, the first one of several."""
    return _arg("ArgMin", input, axis, dimension, output_type, name)


def _arg(op_type: str, x: Any, axis: Any, dimension: Any, output_type: Any, name: str | None) -> Tensor:
    along = axis if axis is not None else dimension if dimension is not None else 0
    attrs = {"output_type": as_dtype(output_type)}
    return node(op_type, [convert_to_tensor(x), convert_to_tensor(along)], attrs, name)


# Sequences.


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """start, start + delta, ... before limit; with one argument, from 0."""
    first, last = (0, start) if limit is None else (start, limit)
    operands = promote(first, last, delta)
    wanted = operands[0].dtype if dtype is None else as_dtype(dtype)
    return node("Range", [cast_to(operand, wanted) for operand in operands], None, name)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """`num` evenly spaced numbers, both ends included."""
    ends = [floating(tensor) for tensor in promote(start, stop)]
    return node("LinSpace", [*ends, convert_to_tensor(num)], None, name)


lin_space = linspace


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running sums along a dimension; `exclusive` leaves out the element itself, `reverse` starts at the end."""
    attrs = {"exclusive": exclusive, "reverse": reverse}
    return node("Cumsum", [convert_to_tensor(x), convert_to_tensor(axis)], attrs, name)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running products along a dimension; `exclusive` leaves out the element itself, `reverse` starts at the end."""
    attrs = {"exclusive": exclusive, "reverse": reverse}
    return node("Cumprod", [convert_to_tensor(x), convert_to_tensor(axis)], attrs, name)


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Row i of the result sums the rows of `data` whose id is i; negative ids are left out."""
    operands = [convert_to_tensor(value) for value in (data, segment_ids, num_segments)]
    return node("UnsortedSegmentSum", operands, None, name)


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Tensor:
    """Elements kept between two bounds."""
    return maximum(minimum(t, clip_value_max), clip_value_min, name or "clip_by_value")


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The common sizes of two shapes, as a tensor."""
    return node("BroadcastArgs", promote(shape_x, shape_y))
