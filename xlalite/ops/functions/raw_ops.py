"""`xlalite.raw_ops`: every declared operation as a function of its inputs and attributes by name.

The functions are made of the declarations when they are asked for: `raw_ops.MatMul(a=x, b=y, transpose_a=True)`.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Final

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType, as_dtype
from xlalite.framework.graph.errors import ElementTypeError, GraphError
from xlalite.framework.graph.function_graph import FunctionGraph, trace_function
from xlalite.framework.graph.op_spec import OP_SPECS, OpSpec, VariableAccess
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, as_shape
from xlalite.hlo.wording import did_you_mean
from xlalite.ops.declarations.xla_operations import function_arguments
from xlalite.ops.functions.calling_operations import CALLING
from xlalite.ops.functions.composed_operations import COMPOSED, by_name
from xlalite.ops.helpers.constant import contains_tensor, convert_to_tensor, weak_kind
from xlalite.ops.helpers.node import operation

# TensorFlow's name of an input or attribute, where the declaration has another.
_OF_X: Final = {"input": "x"}
_OF_A: Final = {"a": "x", "x": "y"}
_DELTA: Final = {"delta": "grad"}
_FEATURES: Final = {"features": "x"}
RENAMED_INPUTS_AND_ATTRS: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("All", "Any", "ArgMax", "ArgMin", "Max", "Mean", "Min", "Prod", "Sum"), _OF_X),
    **dict.fromkeys(("Conj", "Imag", "Real"), _OF_X),
    **dict.fromkeys(("Elu", "Relu", "Relu6", "Selu", "Softplus", "Softsign"), _FEATURES),
    **dict.fromkeys(("Igamma", "Igammac", "IgammaGradA", "Polygamma"), _OF_A),
    **dict.fromkeys(("ResourceApplyGradientDescent", "ResourceApplyProximalGradientDescent"), _DELTA),
    "AvgPool3D": {"input": "value"},
    "Bitcast": {"input": "x", "type": "dtype"},
    "Cast": {"DstT": "dtype"},
    "ExpandDims": {"axis": "dim"},
    "NextAfter": {"x1": "x", "x2": "y"},
    "Split": {"axis": "split_dim"},
    "RandomGammaGrad": {"alpha": "x", "sample": "y"},
    "Select": {"x": "t", "y": "e"},
    "SplitV": {"axis": "split_dim"},
    "Squeeze": {"axis": "squeeze_dims"},
    "Zeta": {"q": "y"},
}

# Attributes that TensorFlow lets programs leave out, where the declaration itself has no default.
_USUAL: Final[Mapping[str, typing.Any]] = {
    **dict.fromkeys(("adj_x", "adj_y", "adjoint", "exclusive", "full_matrices", "keep_dims", "reverse"), False),
    **dict.fromkeys(("multiply_linear_by_lr", "resize_if_index_out_of_bounds", "transpose_a", "transpose_b"), False),
    **dict.fromkeys(("compute_uv", "compute_v", "lower", "sorted", "update_slots"), True),
    **dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0),
    **dict.fromkeys(("axis", "batch_dim", "seed", "seed2"), 0),
    **dict.fromkeys(("out_idx", "out_type"), dtypes.int32),
    "align": "RIGHT_LEFT",
    "message": "",
    "num_elements": -1,
    "output_type": dtypes.int64,
    "squeeze_dims": (),
    "tolerance": 1e-5,
    "use_nesterov": False,
}
_DEFAULTS: Final[Mapping[str, Mapping[str, typing.Any]]] = {
    "HistogramFixedWidth": {"dtype": dtypes.int32},
    "OneHot": {"axis": -1},
    "Placeholder": {"shape": TensorShape(None)},
}
# Inputs that numbers are given for, of the first input's element type.
_OF_THE_FIRST_TYPE: Final = frozenset({"init_value", "padding_value"})
# Inputs that are integers even where a list of none says nothing of its type.
_OF_INTEGERS: Final = (
    *("axes", "axis", "begin", "dims", "element_shape", "end", "indices", "lengths", "multiples", "paddings", "perm"),
    *("segment_ids", "shape", "size", "strides"),
)
_IGNORED: Final = frozenset(
    {
        "Truncate",
        "batch_dims",
        "name",
        "stack_name",
        "swap_memory",
        "use_cudnn_on_gpu",
        "use_locking",
        "validate_indices",
    }
)
# Attributes that TensorFlow writes down though they follow from others: the type of the first output.
_TOLD_BY_OTHERS: Final = ("T", "Tcomplex", "Tout", "Treal", "dtype")
# What has no effect, of attributes that the declaration lacks; any other value is refused.
_WITHOUT_EFFECT: Final[Mapping[str, typing.Any]] = {
    **dict.fromkeys(("bad_indices_policy", "container", "shared_name"), ""),
    **dict.fromkeys(("grad_a", "grad_b", "grad_x", "grad_y", "perturb_singular", "sparse_gradient"), False),
    "incompatible_shape_error": True,
    "index_type": dtypes.int32,
    "timeout_ms": -1,
}


def __getattr__(name: str) -> Callable[..., typing.Any]:
    made = COMPOSED.get(name) or CALLING.get(name)
    if made is not None:
        return by_name(name, made)
    spec = OP_SPECS.get(name)
    if spec is None or name.startswith("_"):
        hint = did_you_mean(name, __dir__(), likeness=0.75)
        raise AttributeError(f"xlalite.raw_ops.{name}: no such operation is declared{hint}", name=name)
    return _function_of(spec)


def __dir__() -> list[str]:
    return sorted({*COMPOSED, *CALLING, *(name for name in OP_SPECS if not name.startswith("_"))})


def _function_of(spec: OpSpec) -> Callable[..., typing.Any]:
    def function(name: str | None = None, **given: typing.Any) -> typing.Any:
        renamed = RENAMED_INPUTS_AND_ATTRS.get(spec.name, {})
        values = {renamed.get(key, key): value for key, value in given.items() if key in renamed or key not in _IGNORED}
        values = {key: value for key, value in values.items() if value is not None}
        attrs = {attr: _attribute(spec, attr, values) for attr in spec.attrs if attr != "N"}
        inputs = _inputs(spec, values)
        if "N" in spec.attrs:
            attrs["N"] = len(inputs) // 2
        for attr, value in attrs.items():
            if callable(value):
                attrs[attr] = _traced(spec.name, attr, value, inputs)
        told = {key: as_dtype(values.pop(key)) for key in _TOLD_BY_OTHERS if key in values}
        unknown = [key for key, value in values.items() if key not in _WITHOUT_EFFECT or value != _WITHOUT_EFFECT[key]]
        if unknown:
            raise GraphError(f"raw_ops.{spec.name} has no input or attribute {', '.join(unknown)}; {_signature(spec)}")
        made = operation(spec.name, inputs, attrs, name)
        outputs = made.outputs
        for key, dtype in told.items():
            if not outputs or outputs[0].dtype != dtype:
                found = outputs[0].dtype.name if outputs else "nothing"
                raise ElementTypeError(f"raw_ops.{spec.name} gives {found}; {key} says {dtype.name}")
        return made if not outputs else outputs[0] if len(outputs) == 1 else list(outputs)

    function.__name__ = function.__qualname__ = spec.name
    function.__doc__ = f"The operation `{spec.name}`: {_signature(spec)}."
    return function


def _traced(
    op_type: str, attr: str, given: Callable[..., typing.Any], inputs: typing.Sequence[Tensor]
) -> FunctionGraph:
    """The graph of a function of scalars."""

    def body(arguments: typing.Sequence[Tensor]) -> list[Tensor]:
        results = given(*arguments)
        listed = results if isinstance(results, list | tuple) else [results]
        return [convert_to_tensor(each) for each in listed]

    return trace_function(attr, get_default_graph(), function_arguments(op_type, attr, inputs), body)


def _signature(spec: OpSpec) -> str:
    inputs = ", ".join(name.rstrip("*") for name in spec.inputs) or "none"
    return f"inputs: {inputs}; attributes: {', '.join(spec.attrs) or 'none'}"


def _attribute(spec: OpSpec, name: str, values: dict[str, typing.Any]) -> typing.Any:
    """What is given, or the default; takes it out of the values."""
    if name not in values:
        return usual_value(spec, name)
    value = values.pop(name)
    if "type" in name.lower() or name.startswith("T") or name in ("dtype", "out_idx"):
        return tuple(map(as_dtype, value)) if isinstance(value, list | tuple) else as_dtype(value)
    if name == "shape":
        return as_shape(value)
    return tuple(value) if isinstance(value, list) else value


def usual_value(spec: OpSpec, name: str) -> typing.Any:
    """What an attribute is when it is left out.

    Raises:
        GraphError: it must be given.
    """
    for known in (spec.defaults, _DEFAULTS.get(spec.name, {}), _USUAL):
        if name in known:
            return known[name]
    raise GraphError(f"raw_ops.{spec.name} needs the attribute {name}; {_signature(spec)}")


def _inputs(spec: OpSpec, values: dict[str, typing.Any]) -> list[Tensor]:
    """The inputs in order; takes them out of the values. Lists of one variadic input may come under several names."""
    found: list[typing.Any] = []
    for declared in spec.inputs:
        name = declared.rstrip("*")
        if name in values:
            value = values.pop(name)
            if declared in _OF_INTEGERS and isinstance(value, list | tuple) and not value:
                value = convert_to_tensor(value, preferred_dtype=dtypes.int32)
            if name in _OF_THE_FIRST_TYPE:
                value = convert_to_tensor(value, preferred_dtype=convert_to_tensor(found[0]).dtype)
            found += list(value) if declared.endswith("*") else [value]
        elif declared.endswith("*"):
            for key in list(values):
                found += list(values.pop(key))
        else:
            raise GraphError(f"raw_ops.{spec.name} needs the input {name}; {_signature(spec)}")
    typed = (each.dtype for each in found if hasattr(each, "dtype") and not isinstance(each, type))
    common = next(map(as_dtype, typed), None)
    return [_input(spec, value, common) for value in found]


def _input(spec: OpSpec, value: typing.Any, common: DType | None) -> Tensor:
    handle = getattr(value, "handle", None)
    if spec.variable_access is not VariableAccess.NONE and isinstance(handle, Tensor):
        return handle
    is_fraction = not contains_tensor(value) and weak_kind(value) in (float, complex)
    fits = is_fraction and common is not None and (common.is_floating or common.is_complex)
    return convert_to_tensor(value, preferred_dtype=common if fits else None)
