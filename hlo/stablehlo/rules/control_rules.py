"""Loops, branches, calls, tuples, tokens, and exchange with the host."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.sparse import csr_product
from xlalite.hlo.ops.control_flow import CallAttrs
from xlalite.hlo.ops.custom import ApiVersion, CustomCallAttrs
from xlalite.hlo.ops.host_transfer import ChannelAttrs, InfeedAttrs, OutfeedAttrs
from xlalite.hlo.ops.sorting import SortAttrs
from xlalite.hlo.spelling.codecs import OutputAlias
from xlalite.hlo.stablehlo.reading.syntax import Opaque, Operation, Region, Symbol
from xlalite.hlo.stablehlo.rules.context import ImportRule, OperationContext, elements
from xlalite.hlo.stablehlo.rules.elementwise_rules import twin
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Layout, Shape

_API_VERSIONS = tuple(ApiVersion)
_REDUCED = re.compile(r"\breduction_dim = (\d+)")


def _gathered(context: OperationContext, values: tuple[Handle, ...]) -> Handle:
    """One value for several: the only one, or a tuple."""
    return values[0] if len(values) == 1 else context.builder.tuple(values)


def _while(context: OperationContext) -> tuple[Handle, ...]:
    """The state is the values of the loop and what its regions use from outside, which never changes."""
    condition, body = context.region(0, 2), context.region(1, 2)
    lowering, token = context.lowering, context.operation.token
    captured = lowering.captured((condition, body), token)
    state = (*context.operands, *(lowering.value(name, token) for name in captured))
    initial = _gathered(context, state)
    shapes = tuple(operand.shape for operand in context.operands)
    called = []
    for region, name in ((condition, "condition"), (body, "body")):
        names = _argument_names(context, region, shapes)
        inner, returned = lowering.block(region, name, names, captured, initial.shape)
        if region is condition:
            if len(returned) != 1:
                raise context.error("the condition must return one value")
            called.append(inner.finish(returned[0]))
            continue
        if tuple(value.shape for value in returned) != shapes:
            raise context.error("the body must return values of the loop's types")
        kept = tuple(inner.value(name, token) for name in captured)
        new = (*returned, *kept)
        called.append(inner.finish(new[0] if len(new) == 1 else inner.builder.tuple(new)))
    result = context.builder.op("while", (initial,), None, called)
    return elements(result)[: len(shapes)] if len(state) != 1 else (result,)[: len(shapes)]


def _argument_names(context: OperationContext, region: Region, shapes: tuple[Shape, ...]) -> tuple[str, ...]:
    if tuple(argument.shape for argument in region.arguments) != shapes:
        raise context.error("the parameters of the regions must have the types of the operands")
    return tuple(argument.name for argument in region.arguments)


def _branches(context: OperationContext) -> tuple[Handle, ...]:
    """`if` and `case`: each branch has what it uses from outside as its operand."""
    (selector,) = context.take(1)
    lowering, token = context.lowering, context.operation.token
    operands, called = [selector], []
    for number, region in enumerate(context.operation.regions):
        _argument_names(context, region, ())
        captured = lowering.captured((region,), token)
        operand = _gathered(context, tuple(lowering.value(name, token) for name in captured))
        inner, returned = lowering.block(region, f"branch_{number}", (), captured, operand.shape)
        if len(returned) != len(context.results):
            raise context.error(f"branch {number} returns {len(returned)} values, expected {len(context.results)}")
        called.append(inner.finish(returned[0] if len(returned) == 1 else inner.builder.tuple(returned)))
        operands.append(operand)
    result = context.builder.op("conditional", operands, None, called)
    return (result,) if len(context.results) == 1 else elements(result)


def _call(context: OperationContext) -> tuple[Handle, ...]:
    return _call_function(context, context.get("callee", Symbol).name, CallAttrs())


def _composite(context: OperationContext) -> tuple[Handle, ...]:
    """A call of the decomposition that keeps the name of what it stands for."""
    results = _call_function(context, context.get("decomposition", Symbol).name, CallAttrs(is_composite=True))
    call = results[0].instruction if results else None
    if call is not None:
        call = call.operand(0) if call.opcode == "get-tuple-element" else call
        call.frontend_attributes = (
            ("composite.name", context.get("name", str)),
            ("composite.version", str(context.get("version", int, 0))),
        )
    return results


def _call_function(context: OperationContext, name: str, attrs: CallAttrs) -> tuple[Handle, ...]:
    computation = context.lowering.table.computations.get(name)
    if computation is None:
        raise context.error(f"there is no function @{name}")
    result = context.builder.op("call", context.operands, attrs, (computation,))
    return (result,) if len(context.results) == 1 else elements(result)


def _custom_call(context: OperationContext) -> tuple[Handle, ...]:
    key = "callee" if context.has("callee") else "call_target_name"
    target = context.get(key, Symbol).name if key == "callee" else context.get(key, str)
    known = context.lowering.table.rules.get(_of_chlo(target))
    if known is not None:
        fields = context.get("mhlo.attributes", dict, {})
        operation = replace(context.operation, name=_of_chlo(target), attributes=fields)
        return as_tuple(known(replace(context, operation=operation)))
    own = _CALLS.get(target)
    if own is not None:
        return own(context)
    version = context.get("api_version", int, 1)
    if not 0 <= version < len(_API_VERSIONS):
        raise context.error(f"there is no API version {version}")
    attrs = CustomCallAttrs(
        custom_call_target=target,
        custom_call_has_side_effect=context.get("has_side_effect", bool, False),
        api_version=_API_VERSIONS[version],
        operand_layout_constraints=_operand_layouts(context),
        output_to_operand_aliasing=_aliases(context),
    )
    result = context.op("custom-call", context.operands, attrs)
    result.instruction.backend_config = _backend_config(context)
    return context.unpack(result)


def _approximate_top_k(context: OperationContext) -> tuple[Handle, ...]:
    """The first elements of all, sorted: exactly those that are sought, as XLA finds them on processors."""
    operands, match = context.operands[: len(context.results)], _REDUCED.search(_backend_config(context))
    known = context.lowering.table.computations
    comparators = [known[name] for name in called_functions(context.operation) if name in known]
    if match is None or not operands or len(comparators) != 1:
        raise context.error("needs a comparator and `reduction_dim` for ApproxTopK")
    result = context.builder.op("sort", operands, SortAttrs((int(match[1]),), is_stable=True), comparators)
    found = (result,) if len(operands) == 1 else elements(result)
    return tuple(
        context.builder.slice(each, [0] * shape.rank, shape.dims)
        for each, shape in zip(found, context.results, strict=True)
    )


def _order(context: OperationContext) -> tuple[Handle, ...]:
    """What jax wishes about the order of two operations: nothing, as no result shows it."""
    context.take(2)
    return ()


def _same(context: OperationContext) -> tuple[Handle, ...]:
    """What only says where or how a value lies in memory, which is all alike."""
    return context.take(1)


def _sparse_product(context: OperationContext) -> tuple[Handle, ...]:
    """The product of a matrix of compressed rows with a dense matrix or a vector."""
    data, starts, columns, dense = context.take(4)
    has_ranks = [len(each.dims) for each in (data, starts, columns)] == [1, 1, 1] and len(dense.dims) in (1, 2)
    if not has_ranks or data.dims != columns.dims or not starts.dims[0] or starts.dtype is not columns.dtype:
        raise context.error("expected data[entries], starts[rows + 1], columns[entries] and a matrix or a vector")
    return (csr_product(data, starts, columns, dense),)


_CALLS: dict[str, Callable[[OperationContext], tuple[Handle, ...]]] = {
    "ApproxTopK": _approximate_top_k,
    "control_dep": _order,
    "cpu_csr_sparse_dense_ffi": _sparse_product,
    **dict.fromkeys(("annotate_device_placement", "LayoutConstraint", "MoveToDevice", "MoveToHost"), _same),
}
"""Custom calls that are something else in HLO."""


def called_functions(operation: Operation) -> list[str]:
    """Names of the functions that an operation may call."""
    several = operation.attributes.get("called_computations")
    called = several if isinstance(several, tuple) else ()
    names = (*(operation.attributes.get(key) for key in ("callee", "decomposition")), *called)
    return [each.name if isinstance(each, Symbol) else each for each in names if isinstance(each, Symbol | str)]


def as_tuple(results: Handle | Sequence[Handle]) -> tuple[Handle, ...]:
    """What a rule gives, as several values."""
    return (results,) if isinstance(results, Handle) else tuple(results)


def _of_chlo(target: str) -> str:
    """The operation of CHLO that a call stands for where that dialect cannot be said: `mhlo.topk` is `chlo.top_k`."""
    dialect, _, name = target.partition(".")
    return f"chlo.{'top_k' if name == 'topk' else name}" if dialect == "mhlo" else ""


def _backend_config(context: OperationContext) -> str:
    attributes = context.operation.attributes
    for key in ("mhlo.backend_config", "backend_config"):
        match attributes.get(key):
            case Opaque(text) | (str() as text) if text:
                return text
            case _:
                continue
    return ""


def _operand_layouts(context: OperationContext) -> tuple[Shape, ...] | None:
    if not context.has("operand_layouts"):
        return None
    layouts = context.attribute("operand_layouts")
    if not isinstance(layouts, tuple) or len(layouts) != len(context.operands):
        raise context.error("operand_layouts must have one entry for each operand")
    shapes = []
    for operand, layout in zip(context.operands, layouts, strict=True):
        order = context.as_integers(layout, "operand_layouts")
        if not operand.shape.is_array:
            shapes.append(operand.shape)
            continue
        if sorted(order) != list(range(operand.shape.rank)):
            raise context.error(f"operand_layouts: {list(order)} does not order the dimensions of an operand")
        shapes.append(replace(operand.shape, layout=Layout(order)))
    return tuple(shapes)


def _aliases(context: OperationContext) -> tuple[OutputAlias, ...]:
    entries = context.operation.attributes.get("output_operand_aliases", ())
    found: list[OutputAlias] = []
    for entry in entries if isinstance(entries, tuple) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("operand_index"), int):
            raise context.error("output_operand_aliases has an unknown form")
        number = context.as_integers((entry["operand_index"],), "operand_index")[0]
        output, operand = (
            context.as_integers(entry.get(key), key) for key in ("output_tuple_indices", "operand_tuple_indices")
        )
        found.append((output, number, operand))
    return tuple(found)


def _get_tuple_element(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    return context.builder.element(operand, context.get("index", int))


def _optimization_barrier(context: OperationContext) -> tuple[Handle, ...]:
    if not context.operands:
        return ()
    result = context.builder.op("opt-barrier", (_gathered(context, context.operands),))
    return (result,) if len(context.operands) == 1 else elements(result)


def channel_id(context: OperationContext) -> int | None:
    """The handle of the channel; 0 stands for none."""
    handle = context.get("channel_handle", dict, {}).get("handle", 0)
    if not isinstance(handle, int):
        raise context.error("the handle of the channel must be an integer")
    return handle or None


def _infeed(context: OperationContext) -> tuple[Handle, ...]:
    *data, token = context.results
    shape = Shape.tuple([data[0] if len(data) == 1 else Shape.tuple(data), token])
    attrs = InfeedAttrs(context.get("infeed_config", str, ""))
    received, done = elements(context.builder.op("infeed", context.take(1), attrs, shape=shape))
    return (*((received,) if len(data) == 1 else elements(received)), done)


def _outfeed(context: OperationContext) -> Handle:
    *data, token = context.operands
    value = _gathered(context, tuple(data))
    attrs = OutfeedAttrs(outfeed_shape=value.shape, outfeed_config=context.get("outfeed_config", str, ""))
    return context.op("outfeed", (value, token), attrs)


def _send(context: OperationContext) -> Handle:
    *data, token = context.operands
    attrs = ChannelAttrs(channel_id(context), context.get("is_host_transfer", bool, False))
    started = context.builder.op("send", (_gathered(context, tuple(data)), token), attrs)
    return context.op("send-done", (started,), attrs)


def _recv(context: OperationContext) -> tuple[Handle, ...]:
    *data, _ = context.results
    attrs = ChannelAttrs(channel_id(context), context.get("is_host_transfer", bool, False))
    value = data[0] if len(data) == 1 else Shape.tuple(data)
    shape = Shape.tuple([value, Shape.array(DType.U32), Shape.token()])
    started = context.builder.op("recv", context.take(1), attrs, shape=shape)
    received, done = elements(context.builder.op("recv-done", (started,), attrs))
    return (*((received,) if len(data) == 1 else elements(received)), done)


def _async_start(context: OperationContext) -> Handle:
    """A tuple of what the region gives: it is done when it has started."""
    region = context.region(0, 1)
    _argument_names(context, region, tuple(operand.shape for operand in context.operands))
    result = context.builder.op(
        "call", context.operands, CallAttrs(), (context.lowering.element_function(region, "async_computation"),)
    )
    return result if len(region.returned) > 1 else context.builder.tuple((result,))


def _async_done(context: OperationContext) -> tuple[Handle, ...]:
    (started,) = context.take(1)
    if not started.shape.is_tuple:
        raise context.error(f"expected what async_start gives, found {started.shape.text()}")
    return elements(started)


RULES: dict[str, ImportRule] = {
    "async_start": _async_start,
    "async_done": _async_done,
    "while": _while,
    "if": _branches,
    "case": _branches,
    "composite": _composite,
    "custom_call": _custom_call,
    "tuple": twin("tuple"),
    "get_tuple_element": _get_tuple_element,
    "optimization_barrier": _optimization_barrier,
    "after_all": twin("after-all"),
    "create_token": twin("after-all"),
    "infeed": _infeed,
    "outfeed": _outfeed,
    "send": _send,
    "recv": _recv,
}

FUNCTION_RULES: dict[str, ImportRule] = {"call": _call, "func.call": _call}
