"""XLA's own operations as graph operations (`XlaDot`, `XlaPad`, ...), as TensorFlow registers them.

Each is one HLO instruction. Numbers that HLO has as attributes are inputs here and must be known when the operation is
compiled; what they are when the graph is built says the shapes of the outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.constant_resolver import ConstantResolver
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import LoweringContext, Variables
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension

if TYPE_CHECKING:
    from xlalite.hlo.proto.message import ProtoMessage

Numbers: TypeAlias = Mapping[str, Array]
Build: TypeAlias = Callable[[Builder, Operation, Sequence[Handle], Numbers], Handle]


# Attributes that change nothing here: all products are as exact as their element type.
_PRECISION = ("precision_config",)
_DEFAULTS: Mapping[str, object] = {"precision_config": "", "is_stable": False, "batch_group_count": 1}

_UNLIKELY_SIZES = (10007, 20011)


def _declare(
    name: str,
    inputs: Sequence[str],
    build: Build,
    numbers: Sequence[str] = (),
    attrs: Sequence[str] = (),
) -> None:
    """Declares an operation by the instruction that it is.

    Args:
        name: The operation's type.
        inputs: All inputs in order.
        build: Makes the result, a tuple for several outputs, of the array inputs and the numbers.
        numbers: The inputs that must be known.
        attrs: Names of the attributes.
    """

    def infer(op: Operation) -> Sequence[OutputType]:
        arrays = [each for each, declared in zip(op.inputs, _input_names(op), strict=True) if declared not in numbers]
        known = {each: constant_value(op.inputs[op.spec.input_range(each, len(op.inputs))[0]]) for each in numbers}
        wanted = op.attrs.get("preferred_element_type")
        dtypes = [wanted or tensor.dtype for tensor in op.inputs[: _array_count(op.type, len(op.inputs))]]
        if any(each.shape.rank is None for each in arrays) or any(each is None for each in known.values()):
            return [(dtype, unknown_shape()) for dtype in dtypes]
        given = {each: value for each, value in known.items() if value is not None}

        def shapes(unknown: int) -> list[tuple[int, ...]]:
            """What the operation gives when each unknown size is another one, from `unknown` on."""
            b = Builder("shapes")
            guesses = itertools.count(unknown, unknown // 1000)
            sizes = [[next(guesses) if size is None else size for size in each.shape.as_list()] for each in arrays]
            handles = [b.parameter(Shape.array(each.dtype.hlo, own)) for each, own in zip(arrays, sizes, strict=True)]
            shape = build(b, op, handles, given).shape
            return [each.dims for each in (shape.elements if shape.is_tuple else (shape,))]

        if all(each.shape.is_fully_defined() for each in arrays):
            return [(dtype, TensorShape(dims)) for dtype, dims in zip(dtypes, shapes(0), strict=True)]
        try:
            pairs = list(zip(*map(shapes, _UNLIKELY_SIZES), strict=True))
        except ShapeError:
            return [(dtype, unknown_shape()) for dtype in dtypes]
        # What is the same whatever the unknown sizes are does not depend on them; 0 may be for want of room.
        agreed = [[a if a == b != 0 else None for a, b in zip(*pair, strict=True)] for pair in pairs]
        return [(dtype, TensorShape(dims)) for dtype, dims in zip(dtypes, agreed, strict=True)]

    def lower(ctx: LoweringContext, op: Operation, handles: tuple[Handle, ...]) -> Sequence[Handle]:
        result = build(ctx.builder, op, handles, {each: ctx.constant(op, each) for each in numbers})
        if not result.shape.is_tuple:
            return [result]
        return [ctx.builder.element(result, i) for i in range(len(result.shape.elements))]

    register(
        OpSpec(
            name,
            infer,
            inputs=(*inputs,),
            attrs=(*attrs,),
            defaults={each: _DEFAULTS[each] for each in attrs if each in _DEFAULTS},
            lower=lower,
            constant_inputs=(*numbers,),
            gradient=None,
            group=None,
        )
    )


def _array_count(op_type: str, inputs: int) -> int:
    """How many arrays an operation works on side by side; it has as many outputs."""
    counts = {"XlaVariadicSort": inputs - 1, **dict.fromkeys(("XlaVariadicReduce", "XlaVariadicReduceV2"), inputs // 2)}
    return counts.get(op_type, 2 if op_type in ("XlaBroadcastHelper", "XlaKeyValueSort") else 1)


def function_arguments(op_type: str, attr: str, inputs: Sequence[Tensor]) -> list[OutputType]:
    """The scalars that the function in an attribute takes: two of each array."""
    types = [(each.dtype, TensorShape(())) for each in inputs[: _array_count(op_type, len(inputs))]]
    return [each for each in types for _ in range(2)] if attr == "comparator" else types * 2


def _input_names(op: Operation) -> list[str]:
    """The declared name of each input; one that ends in `*` stands for several."""
    further = len(op.inputs) - len(op.spec.inputs) + 1
    return [name for name in op.spec.inputs for _ in range(further if name.endswith("*") else 1)]


def _ints(values: Array) -> tuple[int, ...]:
    return tuple(int(each) for each in np.ravel(values))


def _message(op: Operation, type_name: str) -> ProtoMessage:
    """The message in `dimension_numbers`."""
    import xlalite.hlo.proto.data_messages  # noqa: F401  # the tables of messages are read when they are needed
    from xlalite.hlo.proto.wire import decode

    given = op.get_attr("dimension_numbers")
    return decode(given if isinstance(given, bytes) else given.encode("latin-1"), type_name)


def _scalar_function(b: Builder, op: Operation, name: str) -> HloComputation:
    """A function of scalars."""
    function: FunctionGraph = op.get_attr(name)
    if function.captures:
        raise ShapeError(f"{name} uses a tensor of the graph around it: {next(iter(function.captures)).name!r}")
    shapes = [Shape.array(each.dtype.hlo) for each in function.inputs]

    def body(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        context = LoweringContext(inner, Variables(), ConstantResolver())
        results = context.lower_function(inner, function, parameters, Variables())
        return results[0] if len(results) == 1 else inner.tuple(results)

    return b.subcomputation(f"{op.name.replace('/', '_')}_{name}", shapes, body)


# Products.


def _require_pairs(what: str, arrays: Sequence[Handle], left: Sequence[int], right: Sequence[int]) -> None:
    """Refuses dimensions of a product that do not pair, in TensorFlow's words."""
    if len(left) != len(right):
        counts = f"Got: {len(left)} and {len(right)}"
        raise ShapeError(f"Must specify the same number of {what} dimensions for lhs and rhs. {counts}")
    for one, other in zip(left, right, strict=True):
        if max(one - len(arrays[0].dims), other - len(arrays[1].dims)) < 0 <= min(one, other):
            sizes = arrays[0].dims[one], arrays[1].dims[other]
            if sizes[0] != sizes[1]:
                raise ShapeError(f"{what.title()} dimension sizes do not match. Got: {sizes[0]} and {sizes[1]}")


def _dot(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    dims = _message(op, "DotDimensionNumbers")
    attrs = OPS["dot"].attrs(
        lhs_batch_dims=dims.integers("lhs_batch_dimensions"),
        lhs_contracting_dims=dims.integers("lhs_contracting_dimensions"),
        rhs_batch_dims=dims.integers("rhs_batch_dimensions"),
        rhs_contracting_dims=dims.integers("rhs_contracting_dimensions"),
    )
    wanted = op.attrs.get("preferred_element_type")
    _require_pairs("batch", arrays, attrs.lhs_batch_dims, attrs.rhs_batch_dims)
    _require_pairs("contracting", arrays, attrs.lhs_contracting_dims, attrs.rhs_contracting_dims)
    x, y = arrays if wanted is None else [b.convert(each, wanted.hlo) for each in arrays]
    return b.op("dot", (x, y), attrs)


def _convolution(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    dims = _message(op, "ConvolutionDimensionNumbers")
    wanted = op.attrs.get("preferred_element_type")
    image, kernel = arrays if wanted is None else [b.convert(each, wanted.hlo) for each in arrays]
    spatial = dims.integers("kernel_spatial_dimensions")
    window = [
        WindowDimension(kernel.dims[place], stride, low, high, base, dilation)
        for place, stride, (low, high), dilation, base in zip(
            spatial,
            _ints(numbers["window_strides"]),
            (_ints(row) for row in numbers["padding"]),
            _ints(numbers["rhs_dilation"]),
            _ints(numbers["lhs_dilation"]),
            strict=True,
        )
    ]
    labels = ConvolutionDims(
        _labels(dims, "input", "batch", "feature"),
        _labels(dims, "kernel", "input_feature", "output_feature"),
        _labels(dims, "output", "batch", "feature"),
    )
    attrs = OPS["convolution"].attrs(
        window=Window(tuple(window)),
        dim_labels=labels,
        feature_group_count=int(numbers["feature_group_count"]),
        batch_group_count=int(op.attrs.get("batch_group_count", 1)),
    )
    return b.op("convolution", (image, kernel), attrs)


def _labels(dims: ProtoMessage, what: str, first: str, second: str) -> str:
    """The dimensions of an operand in HLO's letters: `b01f`, `01io`."""
    letters = {dims.integer(f"{what}_{first}_dimension"): "i" if what == "kernel" else "b"}
    letters[dims.integer(f"{what}_{second}_dimension")] = "o" if what == "kernel" else "f"
    letters |= {place: str(i) for i, place in enumerate(dims.integers(f"{what}_spatial_dimensions"))}
    return "".join(letters[place] for place in sorted(letters))


_SIZES = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "feature_group_count")
_declare("XlaDot", ("lhs", "rhs"), _dot, attrs=("dimension_numbers", *_PRECISION))
_declare("XlaDotV2", ("lhs", "rhs"), _dot, attrs=("dimension_numbers", *_PRECISION, "preferred_element_type"))
_CONVOLUTION = ("dimension_numbers", *_PRECISION)
_declare("XlaConv", ("lhs", "rhs", *_SIZES), _convolution, _SIZES, _CONVOLUTION)
_FURTHER = ("preferred_element_type", "batch_group_count")
_declare("XlaConvV2", ("lhs", "rhs", *_SIZES), _convolution, _SIZES, (*_CONVOLUTION, *_FURTHER))


# Movement.


def _broadcast_helper(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    """Gives the operand of lower rank the rank of the other, its dimensions where `broadcast_dims` says."""
    x, y = arrays
    places = _ints(numbers["broadcast_dims"])
    if len(x.dims) == len(y.dims) or not (x.dims and y.dims):
        return b.tuple([x, y])
    low, high = (x, y) if len(x.dims) < len(y.dims) else (y, x)
    if len(places) != len(low.dims) or any(place not in range(len(high.dims)) for place in places):
        raise ShapeError(f"broadcast_dims {places} do not place the dimensions of {low.dims} in those of {high.dims}")
    dims = [1] * len(high.dims)
    for place, size in zip(places, low.dims, strict=True):
        dims[place] = size
    wide = b.broadcast(low, dims, places)
    return b.tuple([wide, y] if low is x else [x, wide])


def _dynamic_slice(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    operand, starts = arrays
    sizes = _ints(numbers["size_indices"])
    if starts.dims != (len(operand.dims),) or len(sizes) != len(operand.dims):
        raise ShapeError(
            f"start_indices {starts.dims} and size_indices {sizes} must have one entry for each dimension of "
            f"{operand.dims}"
        )
    return b.dynamic_slice(operand, b.scalars(starts), sizes)


def _dynamic_update(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    operand, update, starts = arrays
    return b.op("dynamic-update-slice", (operand, update, *b.scalars(starts)))


def _pad(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    if arrays[1].dims:
        raise ShapeError(
            f"padding_value input must be scalar, found rank {len(arrays[1].dims)} in {arrays[1].shape.text()}"
        )
    each = [_ints(numbers[name]) for name in _PADDINGS]
    rank = len(arrays[0].dims)
    for name, sizes in zip(_PADDINGS, each, strict=True):
        if len(sizes) != rank:
            raise ShapeError(f"{name} must be a 1D tensor of size {rank}, found {sizes} for {arrays[0].shape.text()}")
    return b.pad(arrays[0], arrays[1], list(zip(*each, strict=True)))


def _gather(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    dims = _message(op, "GatherDimensionNumbers")
    attrs = OPS["gather"].attrs(
        offset_dims=dims.integers("offset_dims"),
        collapsed_slice_dims=dims.integers("collapsed_slice_dims"),
        start_index_map=dims.integers("start_index_map"),
        index_vector_dim=dims.integer("index_vector_dim"),
        slice_sizes=_ints(numbers["slice_sizes"]),
        indices_are_sorted=op.get_attr("indices_are_sorted"),
    )
    return b.op("gather", arrays, attrs)


def _scatter(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    dims = _message(op, "ScatterDimensionNumbers")
    attrs = OPS["scatter"].attrs(
        update_window_dims=dims.integers("update_window_dims"),
        inserted_window_dims=dims.integers("inserted_window_dims"),
        scatter_dims_to_operand_dims=dims.integers("scatter_dims_to_operand_dims"),
        index_vector_dim=dims.integer("index_vector_dim"),
        indices_are_sorted=op.get_attr("indices_are_sorted"),
    )
    return b.op("scatter", arrays, attrs, (_scalar_function(b, op, "update_computation"),))


_PADDINGS = ("padding_low", "padding_high", "padding_interior")
_declare("XlaBroadcastHelper", ("lhs", "rhs", "broadcast_dims"), _broadcast_helper, ("broadcast_dims",))
_declare("XlaDynamicSlice", ("input", "start_indices", "size_indices"), _dynamic_slice, ("size_indices",))
_declare("XlaDynamicUpdateSlice", ("input", "update", "indices"), _dynamic_update)
_declare("XlaPad", ("input", "padding_value", *_PADDINGS), _pad, _PADDINGS)
_GATHER = ("operand", "start_indices", "slice_sizes")
_declare("XlaGather", _GATHER, _gather, ("slice_sizes",), ("dimension_numbers", "indices_are_sorted"))
_SCATTER = ("operand", "scatter_indices", "updates")
_declare("XlaScatter", _SCATTER, _scatter, attrs=("update_computation", "dimension_numbers", "indices_are_sorted"))


# Reductions and sorting by functions of scalars.


def _reduce(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    half = len(arrays) // 2
    dimensions = tuple(op.get_attr("dimensions_to_reduce"))
    return b.reduce(arrays[:half], arrays[half:], dimensions, _scalar_function(b, op, "reducer"))


def _window(numbers: Numbers, rank: int) -> Window:
    ones = np.ones(rank, np.int64)
    each = [_ints(numbers.get(name, ones)) for name in _WINDOW[:2]]
    pads = [_ints(row) for row in numbers["padding"]]
    dilations = [_ints(numbers.get(name, ones)) for name in ("base_dilations", "window_dilations")]
    return Window(
        tuple(
            WindowDimension(size, stride, low, high, base, dilation)
            for size, stride, (low, high), base, dilation in zip(*each, pads, *dilations, strict=True)
        )
    )


def _reduce_window(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    attrs = OPS["reduce-window"].attrs(window=_window(numbers, len(arrays[0].dims)))
    return b.op("reduce-window", arrays, attrs, (_scalar_function(b, op, "computation"),))


def _select_and_scatter(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    attrs = OPS["select-and-scatter"].attrs(window=_window(numbers, len(arrays[0].dims)))
    functions = (_scalar_function(b, op, "select"), _scalar_function(b, op, "scatter"))
    return b.op("select-and-scatter", arrays, attrs, functions)


def _sort(b: Builder, op: Operation, arrays: Sequence[Handle], numbers: Numbers) -> Handle:
    """Ascending by the first array, along the last dimension unless another is given."""
    rank = len(arrays[0].dims)
    dimension = int(numbers["dimension"]) if "dimension" in numbers else rank - 1
    if not 0 <= dimension < rank:
        raise ShapeError(f"dimension {dimension} is not in [0, {rank})")
    if "comparator" in op.attrs:
        order = _scalar_function(b, op, "comparator")
    else:
        shapes = [Shape.array(each.dtype) for each in arrays for _ in range(2)]
        name = f"{op.name.replace('/', '_')}_less"
        order = b.subcomputation(name, shapes, lambda inner, pair: inner.compare(pair[0], pair[1], "LT"))
    attrs = OPS["sort"].attrs(dimensions=(dimension,), is_stable=bool(op.attrs.get("is_stable", False)))
    return b.op("sort", arrays, attrs, (order,))


_WINDOW = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
_SELECTED = ("window_dimensions", "window_strides", "padding")
_REDUCED = ("dimensions_to_reduce", "reducer")
_declare("XlaReduce", ("input", "init_value"), _reduce, attrs=_REDUCED)
for _name in ("XlaVariadicReduce", "XlaVariadicReduceV2"):
    _declare(_name, ("inputs_and_init_values*",), _reduce, attrs=_REDUCED)
_declare("XlaReduceWindow", ("input", "init_value", *_WINDOW), _reduce_window, _WINDOW, ("computation",))
_declare(
    "XlaSelectAndScatter",
    ("operand", *_SELECTED, "source", "init_value"),
    _select_and_scatter,
    _SELECTED,
    ("select", "scatter"),
)
_declare("XlaSort", ("input",), _sort)
_declare("XlaKeyValueSort", ("keys", "values"), _sort)
_declare(
    "XlaVariadicSort",
    ("inputs*", "dimension"),
    _sort,
    ("dimension",),
    ("comparator", "is_stable"),
)
