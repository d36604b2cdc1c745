"""Operations that call Python or print. They run on the host."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import string
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.shape import Shape
from xlalite.ops.helpers.declare import declare_outputs
from xlalite.ops.helpers.gradient_rules import of_one_output
from xlalite.ops.helpers.shape_rules import no_outputs

# PyFunc(input...): what a Python function gives.


def _call_infer(op: Operation) -> Sequence[OutputType]:
    return [(dtype, unknown_shape()) for dtype in op.get_attr("Tout")]


def _call(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    result = op.get_attr("token")(*[np.array(value) for value in inputs])
    types = op.get_attr("Tout")
    given = list(result) if isinstance(result, list | tuple) else [] if result is None and not types else [result]
    if len(given) != len(types):
        raise InvalidArgumentError(None, op, f"the function gives {len(given)} values, expected {len(types)}")
    found: list[HostValue] = []
    for number, (value, dtype) in enumerate(zip(given, types, strict=True)):
        array = _text_array(value) if dtype is string else np.array(value)
        if dtype is not string and array.dtype.newbyteorder("=") != dtype.numpy_dtype:
            raise InvalidArgumentError(
                None, op, f"value {number} of the function has element type {array.dtype}, expected {dtype.name}"
            )
        found.append(array.astype(dtype.numpy_dtype, copy=False))
    return found


def _text_array(value: object) -> Array:
    given = np.asarray(value, object)
    result = np.empty(given.shape, object)
    result.ravel()[:] = [each.encode() if isinstance(each, str) else each for each in given.ravel()]
    return result


for _name, _is_stateful in (("PyFunc", True), ("PyFuncStateless", False)):
    register(
        OpSpec(
            _name,
            _call_infer,
            inputs=("input*",),
            attrs=("token", "Tout"),
            host_kernel=_call,
            gradient=None,
            group=None,
            is_stateful=_is_stateful,
            why_host="it calls a Python function",
        )
    )


# Print(input, data...): the input; prints the data on the way. PrintV2(input): prints a text.


def _print_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[0].dtype, op.inputs[0].shape)]


def _print(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    first, most = op.get_attr("first_n"), op.get_attr("summarize")
    counter: Iterator[int] = context.state(op, itertools.count)
    if first < 0 or next(counter) < first:
        shown = "".join(f"[{shortened(np.asarray(value), most)}]" for value in inputs[1:])
        print(f"{op.get_attr('message')}{shown}", file=sys.stderr)
    return [inputs[0]]


def shortened(array: Array, most: int) -> str:
    """The first elements of an array; all of them if `most` is negative."""
    flat = array.ravel()
    chosen = flat if most < 0 else flat[:most]
    texts = [each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in chosen]
    return " ".join([*texts, "..."] if len(texts) < flat.size else texts)


def _print_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [grad, *[None] * (len(op.inputs) - 1)]


register(
    OpSpec(
        "Print",
        _print_infer,
        inputs=("input", "data*"),
        attrs=("message", "first_n", "summarize"),
        host_kernel=_print,
        gradient=of_one_output(_print_gradient),
        group=None,
        is_stateful=True,
        why_host="it prints",
    )
)


def _print_text(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    stream = sys.stdout if op.get_attr("output_stream") == "stdout" else sys.stderr
    parts = [str(shown) for shown in map(_readable, inputs)]
    print(op.get_attr("sep").join(parts), end=op.get_attr("end"), file=stream)
    return []


def _readable(value: HostValue) -> object:
    array = np.asarray(value)
    if array.dtype == object and array.ndim == 0:
        return bytes(array.item()).decode("utf-8", "replace")
    return array


register(
    OpSpec(
        "PrintV2",
        no_outputs,
        inputs=("input*",),
        attrs=("output_stream", "sep", "end"),
        host_kernel=_print_text,
        gradient=None,
        group=None,
        is_stateful=True,
        why_host="it prints",
    )
)


# _PureCallback(input...): what a custom-call target that Python registered gives.


def _callback_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    attrs = OPS["custom-call"].attrs(custom_call_target=op.get_attr("target"))
    shapes = [Shape.array(dtype.hlo, dims) for dtype, dims in op.get_attr("kinds")]
    found = ctx.builder.op("custom-call", inputs, attrs, shape=shapes[0] if len(shapes) == 1 else Shape.tuple(shapes))
    return [found] if len(shapes) == 1 else [found[i] for i in range(len(shapes))]


def _callback_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    raise LookupError(f"{op.name!r} calls Python and has no gradient; custom_gradient gives it one")


declare_outputs(
    "_PureCallback",
    ("input*",),
    lambda op: [(dtype, TensorShape(dims)) for dtype, dims in op.get_attr("kinds")],
    _callback_lower,
    _callback_gradient,
    None,
    attrs=("target", "kinds"),
)
