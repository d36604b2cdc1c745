"""Tuples, control flow, calls, exchange with the host, operations in two halves: what has another form in StableHLO."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.numerics.bits import reinterpreted_dims
from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction
from xlalite.hlo.ops.custom import ApiVersion, CustomCallAttrs
from xlalite.hlo.ops.sorting import SortAttrs
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Opaque
from xlalite.hlo.stablehlo.writing.exporter import (
    NOTHING,
    Attributes,
    ExportContext,
    ExportRule,
    Leaf,
    Tree,
    array_leaf,
    leaves,
)
from xlalite.hlo.stablehlo.writing.simple_rules import integers
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

_DEVICE_TO_DEVICE, _DEVICE_TO_HOST, _HOST_TO_DEVICE = 1, 2, 3
_API_VERSIONS = tuple(ApiVersion)


def _tuple(context: ExportContext) -> Tree:
    return context.operands


def _element_of(position: int) -> ExportRule:
    """The part of an operation in two halves that its end gives."""
    return lambda context: element(context.operands[0], position)


def element(tree: Tree, position: int) -> Tree:
    """An element of a tuple."""
    assert isinstance(tree, tuple), "the shape rule lets only tuples through"
    return tree[position]


def _get_tuple_element(context: ExportContext) -> Tree:
    found = element(context.operands[0], context.instruction.attrs.index)
    return context.block.known(found, context.instruction.shape)


def _operand(context: ExportContext) -> Tree:
    return context.operands[0]


def _operation(name: str) -> ExportRule:
    return lambda context: context.op(name)


def _conditional(context: ExportContext) -> Tree:
    selector, *operands = context.operands
    branches = [
        context.block.branch(computation, (operand,))
        for computation, operand in zip(context.called, operands, strict=True)
    ]
    name = "if" if array_leaf(selector).shape.dtype is DType.PRED else "case"
    return context.op(name, operands=leaves(selector), regions=branches)


def _call(context: ExportContext) -> Tree:
    symbol = context.block.export.symbol(context.called[0])
    if not context.instruction.attrs.is_composite:
        return context.op("func.call", {"callee": symbol}, regions=())
    written = dict(context.instruction.frontend_attributes)
    attributes: Attributes = {"decomposition": symbol, "name": written.get("composite.name", symbol.name)}
    version = written.get("composite.version", "0")
    attributes["version"] = int(version) if version.isdecimal() else 0
    return context.op("composite", attributes, regions=())


def _inline(context: ExportContext) -> Tree:
    return context.block.inline(context.called[0], context.operands)


def _custom_call(context: ExportContext) -> Tree:
    """Its operands and results are as its target knows them, so tuples stay tuples."""
    attrs: CustomCallAttrs = context.instruction.attrs
    attributes: Attributes = {
        "call_target_name": attrs.custom_call_target,
        "api_version": _API_VERSIONS.index(attrs.api_version),
        "has_side_effect": attrs.custom_call_has_side_effect,
    }
    if context.instruction.backend_config:
        text = context.instruction.backend_config
        attributes["backend_config"] = Opaque(text) if attrs.api_version is ApiVersion.TYPED_FFI else text
    if attrs.operand_layout_constraints is not None:
        attributes["operand_layouts"] = _layouts(attrs.operand_layout_constraints)
        attributes["result_layouts"] = _layouts(
            context.instruction.shape.elements if context.instruction.shape.is_tuple else (context.instruction.shape,)
        )
    if attrs.output_to_operand_aliasing:
        attributes["output_operand_aliases"] = tuple(
            {"output_tuple_indices": output, "operand_index": number, "operand_tuple_indices": index}
            for output, number, index in attrs.output_to_operand_aliasing
        )
    if context.called:
        attributes["called_computations"] = tuple(context.block.export.symbol(called) for called in context.called)
    operands = [_whole(context, operand) for operand in context.operands]
    shape = context.instruction.shape
    if shape.is_tuple and (len(shape.elements) < 2 or any(part.is_tuple for part in shape.elements)):
        return _apart(context, context.block.one("custom_call", operands, shape.without_layout(), attributes))
    return context.op("custom_call", attributes, operands, regions=())


def _layouts(shapes: tuple[Shape, ...]) -> Attribute:
    orders = [shape.minor_to_major if shape.is_array else () for shape in shapes]
    return tuple(replace(integers(order), shape=Shape.array(DType.S64, (len(order),))) for order in orders)


def _whole(context: ExportContext, tree: Tree) -> Leaf:
    """A tuple as one value."""
    if isinstance(tree, Leaf):
        return tree
    parts = [_whole(context, part) for part in tree]
    return context.block.one("tuple", parts, Shape.tuple([part.shape for part in parts]))


def _apart(context: ExportContext, value: Leaf) -> Tree:
    """The elements of a tuple that is one value."""
    if not value.shape.is_tuple:
        return value
    return tuple(
        _apart(context, context.block.one("get_tuple_element", [value], part, {"index": position}))
        for position, part in enumerate(value.shape.elements)
    )


def _optimization_barrier(context: ExportContext) -> Tree:
    return context.op("optimization_barrier") if context.arrays else context.operands[0]


def _add_dependency(context: ExportContext) -> Tree:
    both = Shape.tuple([operand.shape for operand in context.instruction.operands])
    return element(context.op("optimization_barrier", shape=both), 0)


def _bitcast(context: ExportContext) -> Tree:
    """The elements in the order of memory, their bits taken for others, in the order of the result."""
    (value,) = context.arrays
    source, result = context.instruction.operand(0).shape, context.instruction.shape
    before, after = source.minor_to_major[::-1], result.minor_to_major[::-1]
    value = _transposed(context, value, before)
    if source.dtype is not result.dtype:
        value = _other_bits(context, value, result.dtype)
    value = _reshaped(context, value, [result.dims[dimension] for dimension in after])
    return _transposed(context, value, tuple(int(place) for place in np.argsort(after)))


def _other_bits(context: ExportContext, value: Leaf, dtype: DType) -> Leaf:
    """The bits of a row of elements as elements of another type."""
    count, bits = value.shape.element_count, value.shape.dtype.bits
    ratio = max(1, dtype.bits // bits)
    value = _reshaped(context, value, (count // ratio, ratio) if ratio > 1 else (count,))
    dims = reinterpreted_dims(value.shape.dims, value.shape.dtype, dtype)
    if dims is None:
        raise context.error(f"{value.shape.text()} cannot be taken for {dtype.value}")
    return context.block.one("bitcast_convert", [value], Shape.array(dtype, dims))


def _reshaped(context: ExportContext, value: Leaf, dims: tuple[int, ...] | list[int]) -> Leaf:
    if value.shape.dims == tuple(dims):
        return value
    return context.block.one("reshape", [value], value.shape.with_dims(dims))


def _transposed(context: ExportContext, value: Leaf, order: tuple[int, ...]) -> Leaf:
    if order == tuple(range(len(order))):
        return value
    shape = value.shape.with_dims([value.shape.dims[place] for place in order])
    return context.block.one("transpose", [value], shape, {"permutation": order})


def _copy_start(context: ExportContext) -> Tree:
    return context.operands[0], context.operands[0], NOTHING


def _async_start(context: ExportContext) -> Tree:
    result = context.block.inline(context.called[0], context.operands)
    return (context.operands, result, *(NOTHING for _ in context.instruction.shape.elements[2:]))


def _channel(context: ExportContext, to_host: int) -> Attributes:
    """Which channel, and between whom."""
    attrs = context.instruction.attrs
    kind = to_host if attrs.is_host_transfer else _DEVICE_TO_DEVICE
    return {
        "channel_handle": {"handle": attrs.channel_id or 0, "type": kind},
        "is_host_transfer": attrs.is_host_transfer,
    }


def _send(context: ExportContext) -> Tree:
    done = context.op("send", _channel(context, _DEVICE_TO_HOST), shape=Shape.token())
    return context.operands[0], NOTHING, done


def _recv(context: ExportContext) -> Tree:
    value, _, token = context.instruction.shape.elements
    received = context.op("recv", _channel(context, _HOST_TO_DEVICE), shape=Shape.tuple([value, token]))
    return element(received, 0), NOTHING, element(received, 1)


def _recv_done(context: ExportContext) -> Tree:
    return element(context.operands[0], 0), element(context.operands[0], 2)


def _infeed(context: ExportContext) -> Tree:
    return context.op("infeed", {"infeed_config": context.instruction.attrs.infeed_config})


def _outfeed(context: ExportContext) -> Tree:
    return context.op("outfeed", {"outfeed_config": context.instruction.attrs.outfeed_config})


def _top_k(context: ExportContext) -> Tree:
    """The smallest elements are those that come first when all are sorted."""
    attrs = context.instruction.attrs
    if attrs.largest:
        return context.op("chlo.top_k", {"k": attrs.k})
    operand, module = context.arrays[0].shape, HloModule("smallest")
    less = Builder("less", module)
    pair = [
        less.parameter(Shape.array(dtype), f"p{n}") for n, dtype in enumerate([operand.dtype] * 2 + [DType.S32] * 2)
    ]
    kind = ComparisonType.TOTALORDER if operand.dtype.is_floating else None
    comparator = less.build(less.op("compare", pair[:2], CompareAttrs(Direction.LT, kind)))
    builder, last = Builder("smallest", module), operand.rank - 1
    unsorted = (builder.parameter(operand, "values"), builder.iota(DType.S32, operand.dims, last))
    ascending = builder.op("sort", unsorted, SortAttrs((last,), True), (comparator,))
    sizes = context.instruction.shape.elements[0].dims
    cut = [builder.slice(ascending[place], (0,) * operand.rank, sizes, (1,) * operand.rank) for place in range(2)]
    return context.block.inline(builder.build(builder.tuple(cut)), context.operands)


RULES: dict[str, ExportRule] = {
    "tuple": _tuple,
    "get-tuple-element": _get_tuple_element,
    "while": _operation("while"),
    "conditional": _conditional,
    "call": _call,
    "fusion": _inline,
    "custom-call": _custom_call,
    "opt-barrier": _optimization_barrier,
    "add-dependency": _add_dependency,
    "after-all": _operation("after_all"),
    "domain": _operand,
    "copy": _operand,
    "bitcast": _bitcast,
    "copy-start": _copy_start,
    "copy-done": _element_of(0),
    "async-start": _async_start,
    "async-update": _operand,
    "async-done": _element_of(1),
    "infeed": _infeed,
    "outfeed": _outfeed,
    "send": _send,
    "send-done": _element_of(2),
    "recv": _recv,
    "recv-done": _recv_done,
    "topk": _top_k,
    "partition-id": _operation("partition_id"),
    "replica-id": _operation("replica_id"),
}
