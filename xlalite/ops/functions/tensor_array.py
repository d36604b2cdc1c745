"""`TensorArray`: tensors of one shape by number, written and read in loops."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType, as_dtype, int32
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import ShapeLike, TensorShape, as_shape
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.ops.declarations.tensor_lists import GROWS
from xlalite.ops.functions.array import concat, gather, reshape, shape
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to


class _WithGradients:
    """What has gradient arrays; they are no part of it in nested structures."""

    __slots__ = ("_gradients",)
    _gradients: dict[tuple[str, Graph], TensorArray]


@dataclass(frozen=True, eq=False, slots=True, init=False, repr=False)
class TensorArray(_WithGradients):
    """Tensors by number. Writing gives a new array, which takes the place of the old one.

    It may be a loop variable, and gradients flow through it.

    Attributes:
        flow: The tensors, stacked.
        grows: Whether writing behind the end makes it longer.
    """

    flow: Tensor
    grows: ClassVar[bool] = False

    def __new__(cls, dtype: Any = None, size: Any = None, dynamic_size: bool | None = None, **options: Any) -> Self:
        """Arrays that grow are of a class of their own."""
        made: Any = object.__new__(_GrowingTensorArray if dynamic_size else cls)
        return made  # type: ignore[no-any-return]  # it is of the class or one below it

    def __init__(
        self,
        dtype: Any = None,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: ShapeLike = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        """An array of zeros.

        Args:
            dtype: Element type.
            size: How many tensors it holds.
            dynamic_size: Writing behind the end makes it longer; such an array is not compiled.
            clear_after_read: Accepted for compatibility.
            tensor_array_name: Accepted for compatibility.
            handle: The `handle` of another array, whose tensors this one has.
            flow: The same.
            infer_shape: Accepted for compatibility: all tensors have one shape.
            element_shape: Shape of the tensors; that of the first one written, where it is not fully known.
            colocate_with_first_write_call: Accepted for compatibility.
            name: Name of the operation.

        Raises:
            ShapeError: there is no size.
        """
        given = flow if flow is not None else handle
        if given is None:
            given = _reserved(as_dtype(dtype), size, element_shape, name)
            if self.grows:
                given.op.set_attr(GROWS, True)
        object.__setattr__(self, "flow", given)
        object.__setattr__(self, "_gradients", {})

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.flow.dtype

    @property
    def handle(self) -> Tensor:
        """What stands for the array in the graph."""
        return self.flow

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the shape of the tensors."""
        return TensorShape(None) if self.flow.shape.dims is None else TensorShape(self.flow.shape.dims[1:])

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def size(self, name: str | None = None) -> Tensor:
        """How many tensors it holds."""
        if self.flow.shape.dims and self.flow.shape.dims[0] is not None:
            return constant(self.flow.shape.dims[0], int32)
        return node("TensorListLength", [self.flow], None, name)

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """One tensor."""
        return gather(self.flow, index, name=name)

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with another tensor at a number."""
        item = convert_to_tensor(value, self.dtype)
        attrs = {"resize_if_index_out_of_bounds": self.grows}
        return self._with(node("TensorListSetItem", [self.flow, convert_to_tensor(index), item], attrs, name))

    def stack(self, name: str | None = None) -> Tensor:
        """All tensors side by side along a new first dimension."""
        return node(
            "TensorListStack", [self.flow, _open_shape()], {"element_dtype": self.dtype, "num_elements": -1}, name
        )

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Some of the tensors side by side along a new first dimension."""
        return gather(self.flow, indices, name=name)

    def concat(self, name: str | None = None) -> Tensor:
        """All tensors one after another along their first dimension."""
        return reshape(self.flow, concat([constant([-1]), shape(self.flow)[2:]], 0), name)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """An array of the parts of a tensor along its first dimension."""
        tensor = cast_to(convert_to_tensor(value, preferred_dtype=self.dtype), self.dtype)
        return self._with(node("TensorListFromTensor", [tensor, _open_shape()], None, name))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the parts of a tensor at the given numbers; others are zeros."""
        parts = cast_to(convert_to_tensor(value, preferred_dtype=self.dtype), self.dtype)
        count = node("Pack", [self.size()], {"axis": 0})
        sizes = concat([count, shape(parts)[1:]], 0)
        rows = node("ExpandDims", [convert_to_tensor(indices), constant(-1)])
        blank = node("Fill", [sizes, constant(0, parts.dtype)])
        return self._with(node("TensorScatterUpdate", [blank, rows, parts], None, name))

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """An array of consecutive parts of a tensor, all of one length.

        Raises:
            ShapeError: the lengths differ, or are not known.
        """
        known = constant_value(convert_to_tensor(lengths))
        if known is None or known.ndim != 1 or not known.size or (known != known[0]).any():
            raise ShapeError("TensorArray.split needs known lengths, all the same")
        whole = convert_to_tensor(value)
        sizes = constant([known.size, int(known[0])])
        return self.unstack(reshape(whole, concat([sizes, shape(whole)[1:]], 0), name))

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> TensorArray:
        """The gradient array of a source: as many zeros, in which writing adds to what is there.

        All who ask one array for it, and those made from it by writing, get the same in a graph.

        Raises:
            ShapeError: nothing is known of the shape of the tensors.
        """
        if self.element_shape.rank is None:
            raise ShapeError("TensorArray.grad: give the array an element_shape, or write to it first")
        key = source, get_default_graph()
        shared = self._shared_gradients()
        if key not in shared:
            zeros = node("ZerosLike", [self.flow if flow is None else flow], None, name)
            shared[key] = _made(_AddingTensorArray, zeros, {})
        return shared[key]

    def close(self, name: str | None = None) -> Any:
        """Does nothing: an array is a value."""
        return node("TensorListLength", [self.flow], None, name).op

    def _with(self, flow: Tensor) -> TensorArray:
        return _made(type(self), flow, self._shared_gradients())

    def _shared_gradients(self) -> dict[tuple[str, Graph], TensorArray]:
        """Those of this array; one that came out of a nested structure begins with none."""
        if not hasattr(self, "_gradients"):
            object.__setattr__(self, "_gradients", {})
        return self._gradients

    def __repr__(self) -> str:
        return f"<xlalite.TensorArray {self.flow!r}>"


class _GrowingTensorArray(TensorArray):
    """An array that becomes longer when something is written behind its end."""

    __slots__ = ()
    grows = True


class _AddingTensorArray(TensorArray):
    """An array in which writing adds, as what arrives at a tensor that is read several times.

    Several hold it, so what is written changes it in place; in a loop or a branch it changes a copy.
    """

    __slots__ = ()

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        place, item = convert_to_tensor(index), convert_to_tensor(value, self.dtype)
        return super().write(place, gather(self.flow, place) + item, name)

    def _with(self, flow: Tensor) -> TensorArray:
        if flow.graph is not self.flow.graph:
            return super()._with(flow)
        object.__setattr__(self, "flow", flow)
        return self


def _made(kind: type[TensorArray], flow: Tensor, gradients: Any) -> TensorArray:
    array: TensorArray = object.__new__(kind)
    object.__setattr__(array, "flow", flow)
    object.__setattr__(array, "_gradients", gradients)
    return array


def _open_shape() -> Tensor:
    """A shape of which nothing is known."""
    return constant(-1)


def _reserved(dtype: DType, size: Any, element_shape: ShapeLike, name: str | None) -> Tensor:
    if size is None:
        raise ShapeError("TensorArray: say how many tensors it holds with size=")
    known = as_shape(element_shape)
    element = constant(np.array(known.known_dims(), np.int32)) if known.is_fully_defined() else _open_shape()
    count = cast_to(convert_to_tensor(size), int32)
    return node("TensorListReserve", [element, count], {"element_dtype": dtype}, name or "TensorArray")
