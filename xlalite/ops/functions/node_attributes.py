"""Attributes of the nodes of a `GraphDef` as those of the operations here, which say less where inputs say it too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.errors import InvalidArgumentError, UnimplementedError
from xlalite.framework.graph.op_spec import OpSpec
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.messages.data_types import dtype_of_number, read_shape, read_tensor
from xlalite.ops.functions.raw_ops import RENAMED_INPUTS_AND_ATTRS, usual_value

_RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    **RENAMED_INPUTS_AND_ATTRS,
    "RandomGamma": {"T": "dtype"},
    "RandomUniformInt": {"Tout": "dtype"},
}
"""TensorFlow's names of attributes, where ours are others and are needed."""

FUNCTIONS: Final = frozenset({"then_branch", "else_branch", "cond", "body"})
"""The attributes that name functions."""

_FOLLOWING: Final = (
    "T T1 T2 T_shape TI TR Taxis Tblock_shape Tcomplex Tcond Tcrops Tdim Tdims Tgrad Tidx Tin Tindex Tindices Tinput "
    "Tk Tlabels Tlen Tmultiples Tnumsegments Tout Toutput Tpaddings Tparams Tperm Treal Tsegmentids Tseed Tshape "
    "Tshift Tsize Tsplits Tstate Index N R S SrcT U dtype dtypes element_dtype num num_split out_type shape_type "
    "allowed_devices bad_color container output_shapes parallel_iterations shared_name summarize use_cudnn_on_gpu "
    "use_locking validate_indices validate_shape swap_memory lower_using_switch_merge index_type T_threshold TInput "
    "K LhsT OUT_TYPE RhsT Tcomponents V "
    "density_unit x_density y_density xmp_metadata grad_a grad_b grad_x grad_y stack_name debug_name"
)
_FOLLOWS: Final = frozenset(_FOLLOWING.split())
"""Attributes that follow from the inputs or change no result."""

_NEUTRAL: Final[Mapping[str, object]] = {
    "Truncate": False,
    "allow_missing_files": False,
    "bad_indices_policy": "",
    "batch_dims": 0,
    "blank_index": -1,
    "data_format": "NHWC",
    "dilations": (1, 1, 1, 1),
    "explicit_paddings": (),
    "exponential_avg_factor": 1.0,
    "half_pixel_centers": False,
    "incompatible_shape_error": True,
    "perturb_singular": False,
    "sparse_gradient": False,
}
"""Attributes that may be there although the operation has no such attribute, with the value that they must have."""

_OF_PROGRAM: Final = (
    "comparator computation dataset dimension_numbers features iterator kinds reducer scatter select "
    "sequence_features spec target token update_computation"
)
_PROCESS: Final = frozenset(_OF_PROGRAM.split())

ANNOTATIONS: Final[Mapping[str, type]] = {
    "_XlaCompile": bool,
    "_XlaMustCompile": bool,
    "_XlaScope": str,
    "_XlaSeparateCompiledGradients": bool,
    "_gradient_op_type": str,
}
"""Annotations that mean something here; others are dropped."""

_KINDS: Final[Mapping[type, str]] = {
    bool: (
        "adj_x adj_y adjoint compute_uv compute_v exclusive full_matrices indices_are_sorted keep_dims largest "
        "little_endian lower "
        "multiply_linear_by_lr partial_pivoting resize_if_index_out_of_bounds reverse sorted transpose_a transpose_b "
        "unique update_slots use_nesterov"
    ),
    int: (
        "N axis batch_dim beam_width begin_mask block_size ellipsis_mask end_mask first_n k limit max_images "
        "max_outputs hash_key num num_buckets num_elements num_partitions num_sampled num_split num_true range_max "
        "record_bytes seed sparse_count "
        "new_axis_mask seed2 seq_dim shrink_axis_mask summarize top_paths"
    ),
    float: "tolerance",
    str: "align end equation message mode output_stream padding pattern rewrite sep",
    tuple: "boundaries component_types dimensions_to_reduce dtypes ksize ksizes rates squeeze_dims strides",
    DType: (
        "T Targmax Tkeys Tout Tvalues dtype elem_type element_dtype out_idx out_type output_type "
        "preferred_element_type shape_type"
    ),
    TensorShape: "shape",
}
_ELEMENTS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("area_range", "aspect_ratio_range", "boundaries", "unigrams"), float),
    **dict.fromkeys(("component_types", "dtypes"), DType),
    "shapes": TensorShape,
}
_KIND_OF: Final = {name: kind for kind, names in _KINDS.items() for name in names.split()}


def attributes_of(spec: OpSpec, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of an operation, and its annotations; functions are left out.

    Args:
        spec: The operation's declaration.
        given: The node's attributes, as `AttrValue`s.

    Raises:
        XlaliteError: an attribute is unknown, is missing or is not what it should be.
    """
    if spec.name == "Const" and given.get("value") is not None and given["value"].WhichOneof("value") == "tensor":
        value, dtype = read_tensor(given["value"].tensor.to_proto())
        return {"value": value, "dtype": dtype}, {}
    renamed = _RENAMED.get(spec.name, {})
    found: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    for key, message in given.items():
        name = renamed.get(key, key)
        if key.startswith("_"):
            if key in ANNOTATIONS:
                annotations[key] = _checked(key, attribute_value(key, message), ANNOTATIONS[key])
        elif name in spec.attrs and (name == key or name not in found):
            if name not in FUNCTIONS:
                found[name] = _attribute(spec, name, message)
        elif key in _NEUTRAL:
            _check_neutral(key, attribute_value(key, message))
        elif key not in _FOLLOWS:
            raise InvalidArgumentError(None, None, f"attribute {key!r} is unknown; {spec.name} has {[*spec.attrs]}")
    for name in spec.attrs:
        if name not in found and name not in FUNCTIONS:
            found[name] = usual_value(spec, name)
    return found, annotations


def _attribute(spec: OpSpec, name: str, message: Any) -> Any:
    if name in _PROCESS:
        raise UnimplementedError(None, None, f"attribute {name!r} is an object of the program that wrote the graph")
    return _checked(name, attribute_value(name, message), _KIND_OF.get(name) or type(spec.defaults[name]))


def _checked(name: str, value: Any, kind: type) -> Any:
    fits = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if not fits or (kind is tuple and not all(isinstance(each, _ELEMENTS.get(name, int)) for each in value)):
        raise InvalidArgumentError(None, None, f"attribute {name!r} is {value!r:.80}, expected a {kind.__name__}")
    return value


def _check_neutral(name: str, value: Any) -> None:
    neutral = _NEUTRAL[name]
    if value != neutral and not (isinstance(neutral, tuple) and isinstance(value, tuple) and {*value} <= {1}):
        raise UnimplementedError(None, None, f"attribute {name!r} must be {neutral!r} here, found {value!r:.80}")


def attribute_value(name: str, message: Any) -> Any:
    """The value of an attribute; None when it has none."""
    field = message.WhichOneof("value")
    if field is None:
        return None
    if field in ("func", "placeholder"):
        raise InvalidArgumentError(None, None, f"attribute {name!r} is a {field}, which it cannot be")
    if field != "list":
        return _single(name, field, getattr(message, field))
    held = [(each, list(getattr(message.list, each))) for each in ("s", "i", "f", "b", "type", "shape", "tensor")]
    return tuple(_single(name, each, value) for each, values in held for value in values)


def _single(name: str, field: str, value: Any) -> Any:
    match field:
        case "s":
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise InvalidArgumentError(None, None, f"attribute {name!r} is not text") from None
        case "f":
            # The message has 32 bits; programs write decimals.
            return float(str(np.float32(value)))
        case "type":
            return dtype_of_number(value)
        case "shape":
            return read_shape(value.to_proto())
        case "tensor":
            return read_tensor(value.to_proto())[0]
    return value
