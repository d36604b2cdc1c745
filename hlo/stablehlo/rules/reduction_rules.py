"""Reductions, windows, maps: operations with a function on elements."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.reduction import MapAttrs, ReduceAttrs
from xlalite.hlo.ops.windows import ReduceWindowAttrs, SelectAndScatterAttrs
from xlalite.hlo.stablehlo.rules.context import ImportRule, OperationContext
from xlalite.hlo.types.window import Window, WindowDimension


def _reduce(context: OperationContext) -> tuple[Handle, ...]:
    attrs = ReduceAttrs(context.integers("dimensions"))
    return context.unpack(context.op("reduce", context.operands, attrs, (context.function(name="reducer"),)))


def _map(context: OperationContext) -> Handle:
    attrs = MapAttrs(context.integers("dimensions"))
    return context.op("map", context.operands, attrs, (context.function(name="mapped"),))


def make_window(
    context: OperationContext, sizes: Sequence[int], *, base: str, dilation: str, reversals: Sequence[bool] = ()
) -> Window:
    """The window that strides, padding and dilations describe.

    Args:
        context: The operation.
        sizes: Window elements of each dimension.
        base: Name of the attribute with the base dilation.
        dilation: Name of the attribute with the window dilation.
        reversals: Which dimensions are read backwards; none when empty.

    Raises:
        ParseError: The attributes do not fit together.
    """
    rank = len(sizes)
    ones = (1,) * rank
    strides = context.integers("window_strides", ones)
    bases, dilations = context.integers(base, ones), context.integers(dilation, ones)
    pads = [(0, 0)] * rank
    if context.has("padding"):
        matrix = context.matrix(context.attribute("padding"), "padding")
        if matrix.shape != (rank, 2) and matrix.size:
            raise context.error(f"the padding must have {rank} pairs")
        pads = [(int(low), int(high)) for low, high in matrix.reshape(-1, 2)]
    flags = tuple(reversals) or (False,) * rank
    if not len(strides) == len(bases) == len(dilations) == len(pads) == len(flags) == rank:
        raise context.error(f"the attributes of the window must have {rank} entries each")
    window = Window(
        tuple(
            WindowDimension(size, stride, pad[0], pad[1], lhs, rhs, flag)
            for size, stride, pad, lhs, rhs, flag in zip(sizes, strides, pads, bases, dilations, flags, strict=True)
        )
    )
    if window.problem is not None:
        raise context.error(window.problem)
    return window


def _reduce_window(context: OperationContext) -> tuple[Handle, ...]:
    sizes = context.integers("window_dimensions")
    window = make_window(context, sizes, base="base_dilations", dilation="window_dilations")
    function = context.function(name="reducer")
    return context.unpack(context.op("reduce-window", context.operands, ReduceWindowAttrs(window), (function,)))


def _select_and_scatter(context: OperationContext) -> Handle:
    rank = context.operands[0].shape.rank if context.operands else 0
    sizes = context.integers("window_dimensions", (1,) * rank)
    window = make_window(context, sizes, base="base_dilations", dilation="window_dilations")
    functions = (context.function(0, 2, "select"), context.function(1, 2, "scatter"))
    return context.op("select-and-scatter", context.take(3), SelectAndScatterAttrs(window), functions)


def _batch_norm(opcode: str) -> ImportRule:
    def rule(context: OperationContext) -> tuple[Handle, ...]:
        attrs = OPS[opcode].attrs(context.get("epsilon", float), context.get("feature_index", int))
        return context.unpack(context.op(opcode, context.operands, attrs))

    return rule


RULES: dict[str, ImportRule] = {
    "reduce": _reduce,
    "map": _map,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "batch_norm_training": _batch_norm("batch-norm-training"),
    "batch_norm_inference": _batch_norm("batch-norm-inference"),
    "batch_norm_grad": _batch_norm("batch-norm-grad"),
}
