"""Types of TensorFlow's operations that are made of others here, for `raw_ops` and for nodes of graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from xlalite.framework.graph.dtypes import as_dtype, float32, int32, int64
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import as_shape
from xlalite.ops.functions.array import concat, gather, shape as shape_of, transpose, zeros
from xlalite.ops.functions.distributions import multinomial, parameterized_truncated_normal, stateless_multinomial
from xlalite.ops.functions.linalg import eigh, svd
from xlalite.ops.functions.math import matmul
from xlalite.ops.functions.products import cross, einsum
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to

Composed = Callable[..., Any]
"""Takes the inputs, as keywords the attributes, and a name; an input `*values` stands for a list of them."""


def _batch_matmul(x: Any, y: Any, *, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Tensor:
    return node("BatchMatMulV2", [*map(convert_to_tensor, (x, y))], {"adj_x": adj_x, "adj_y": adj_y}, name)


def _batch_matmul_to(
    x: Any, y: Any, *, Tout: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None
) -> Tensor:
    wanted = as_dtype(Tout)
    x, y = (cast_to(convert_to_tensor(each), wanted) for each in (x, y))
    return _batch_matmul(x, y, adj_x=adj_x, adj_y=adj_y, name=name)


def _concat(concat_dim: Any, *values: Any, name: str = "concat") -> Tensor:
    return concat(values, concat_dim, name)


def _dot(
    a: Any, b: Any, *, transpose_a: bool = False, transpose_b: bool = False, name: str | None = None, **sparse: bool
) -> Tensor:
    return matmul(a, b, transpose_a, transpose_b, name=name)


def _index_of_processor(*, device_names: Sequence[str], name: str | None = None) -> Tensor:
    """Where the processor stands in a list of kinds of devices, behind it if it does not."""
    kinds = [str(each).upper() for each in device_names]
    return constant(kinds.index("CPU") if "CPU" in kinds else len(kinds), int32)


def _zeros(shape: Any, *, dtype: Any, init: bool = False, name: str | None = None) -> Tensor:
    return zeros(shape, as_dtype(dtype), name or "zeros")


def _stand_in(*, dtype: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros, of any size where none is said; nobody looks at them."""
    return zeros([size or 0 for size in as_shape(shape).dims or ()], as_dtype(dtype), name or "zeros")


def _multinomial(
    logits: Any,
    num_samples: Any,
    *,
    seed: int = 0,
    seed2: int = 0,
    output_dtype: Any = int64,
    name: str | None = None,
) -> Tensor:
    return multinomial(logits, num_samples, seed2 or seed or None, name, output_dtype)


def _truncated_normal(
    shape: Any,
    means: Any,
    stdevs: Any,
    minvals: Any,
    maxvals: Any,
    *,
    seed: int = 0,
    seed2: int = 0,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    return parameterized_truncated_normal(
        shape, means, stdevs, minvals, maxvals, dtype=dtype, seed=seed2 or seed or None, name=name
    )


def _reversed(tensor: Any, dims: Any, *, name: str | None = None) -> Tensor:
    """Along the dimensions that `dims`, one bool for each, marks."""
    value = convert_to_tensor(tensor)
    places = node("Cast", [node("Where", [convert_to_tensor(dims)])], {"dtype": int32})
    return node("ReverseV2", [value, node("Reshape", [places, constant([-1])])], None, name)


def _list_concat(
    input_handle: Tensor,
    element_shape: Any,
    leading_dims: Any,
    *,
    element_dtype: Any = None,
    shape_type: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The elements of a list one after another, and how many rows each has."""
    sizes = shape_of(input_handle)
    rows = node("ConcatV2", [constant([-1]), sizes[2:], constant(0)])
    lengths = node("Fill", [sizes[:1], node("Cast", [sizes[1]], {"dtype": int64})])
    return node("Reshape", [input_handle, rows], None, name), lengths


def _list_split(
    tensor: Any,
    element_shape: Any,
    lengths: Any,
    *,
    element_dtype: Any = None,
    shape_type: Any = None,
    name: str | None = None,
) -> Tensor:
    """Pieces of a tensor as a list; all have one length."""
    value = convert_to_tensor(tensor)
    count = shape_of(convert_to_tensor(lengths))
    sizes = node("ConcatV2", [count, constant([-1]), shape_of(value)[1:], constant(0)])
    return node("Reshape", [value, sizes], None, name)


def _svd(
    a: Any, *, max_iter: int = 100, epsilon: float = 1e-6, precision_config: Any = "", name: str | None = None
) -> Any:
    return svd(a, full_matrices=False, name=name)


def _eigenvectors(
    a: Any, *, lower: bool = True, max_iter: int = 100, epsilon: float = 1e-6, name: str | None = None
) -> Sequence[Tensor]:
    given = convert_to_tensor(a)
    made = given if lower else transpose(given, [*range((given.shape.rank or 2) - 2), -1, -2], conjugate=True)
    return eigh(made, name)


def _same(input: Any, *, name: str | None = None, **ignored: Any) -> Tensor:
    """On one device a part is the whole."""
    return node("Identity", [convert_to_tensor(input)], None, name)


COMPOSED: Final[Mapping[str, Composed]] = {
    "BatchMatMul": _batch_matmul,
    "BatchMatMulV3": _batch_matmul_to,
    "Concat": _concat,
    "ConjugateTranspose": lambda x, perm, *, name="transpose": transpose(x, perm, name, conjugate=True),
    "Cross": lambda a, b, *, name=None: cross(a, b, name),
    "DeviceIndex": _index_of_processor,
    "DisableCopyOnRead": lambda resource, *, name=None: (),
    "Empty": _zeros,
    "FakeParam": _stand_in,
    "Gather": lambda params, indices, *, validate_indices=True, name=None: gather(params, indices, name=name),
    "Multinomial": _multinomial,
    "ParameterizedTruncatedNormal": _truncated_normal,
    "Reverse": _reversed,
    "RiscAdd": lambda x, y, *, name=None: node("AddV2", [*map(convert_to_tensor, (x, y))], None, name),
    "RiscDot": _dot,
    "Snapshot": _same,
    "SparseMatMul": _dot,
    "StatelessMultinomial": lambda logits, num_samples, seed, *, output_dtype=int64, name=None: stateless_multinomial(
        logits, num_samples, seed, output_dtype, name
    ),
    "TensorListConcatV2": _list_concat,
    "TensorListSplit": _list_split,
    "XlaEinsum": lambda a, b, *, equation, name=None: einsum(equation, a, b),
    "XlaReplicaId": lambda *, name=None: constant(0, int32),
    "XlaSelfAdjointEig": _eigenvectors,
    "XlaSetBound": lambda input, bound, *, name=None: _same(input, name=name),
    "XlaSharding": _same,
    "XlaSpmdFullToShardShape": _same,
    "XlaSpmdShardToFullShape": _same,
    "XlaSvd": _svd,
}
"""What makes each type of its inputs and attributes."""


def by_name(op_type: str, made: Composed) -> Callable[..., Any]:
    """The function of a type as `raw_ops` has it: everything by name, a list for an input that stands for several."""
    parameters = inspect.signature(made).parameters.values()
    inputs = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.VAR_POSITIONAL)]

    def function(**given: Any) -> Any:
        missing = [each.name for each in inputs if each.name not in given]
        if missing:
            raise TypeError(f"raw_ops.{op_type} needs the input {missing[0]}")
        taken = [(each, given.pop(each.name)) for each in inputs]
        values = [part for each, value in taken for part in (value if each.kind == each.VAR_POSITIONAL else [value])]
        return made(*values, **given)

    function.__name__ = function.__qualname__ = op_type
    function.__doc__ = f"The operation `{op_type}`: inputs: {', '.join(each.name for each in inputs) or 'none'}."
    return function


def of_node(op_type: str, inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str) -> Sequence[Tensor]:
    """The outputs of what stands for a node of a graph; attributes that it does not know change nothing here."""
    known = inspect.signature(COMPOSED[op_type]).parameters
    found = COMPOSED[op_type](*inputs, **{key: value for key, value in attrs.items() if key in known}, name=name)
    return [found] if isinstance(found, Tensor) else [*found]
