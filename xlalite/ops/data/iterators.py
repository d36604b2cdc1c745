"""Iterators: operations that begin with a dataset, and give its next element."""

from __future__ import annotations

import threading
from collections.abc import Iterator as PythonIterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import string
from xlalite.framework.graph.errors import FailedPreconditionError, GraphError, OutOfRangeError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import HostContext, HostValue
from xlalite.hlo.errors import ShapeError
from xlalite.ops.data.elements import Element, ElementSpec, Reading
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import operation
from xlalite.ops.helpers.shape_rules import no_outputs

if TYPE_CHECKING:
    from xlalite.ops.data.dataset import Dataset

_WHY_HOST = "it reads a dataset"


class _Position:
    """Where an iterator stands in one session."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.elements: PythonIterator[Element] | None = None


def _nothing(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return ()


def _begin(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    dataset, position = op.get_attr("dataset"), context.state(op.get_attr("iterator"), _Position)
    with position.lock:
        position.elements = dataset.elements(Reading(dataset.captured, inputs, context))
    return ()


def _next_infer(op: Operation) -> Sequence[OutputType]:
    spec = op.get_attr("spec")
    return list(zip(spec.types, spec.shapes, strict=True))


def _next(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    anchor, dataset = op.get_attr("iterator"), op.get_attr("dataset")
    if anchor is None:
        anchor = op.graph.get_operation_by_name(bytes(np.asarray(inputs[0]).item()).decode())
    position: _Position = context.state(anchor, _Position)
    with position.lock:
        if position.elements is None:
            if dataset is None:
                raise FailedPreconditionError(
                    None,
                    op,
                    "GetNext() failed because the iterator has not been initialized: run its initializer first",
                )
            position.elements = dataset.elements(Reading(dataset.captured, inputs, context))
        element: Element | None = next(position.elements, None)
    if element is None:
        raise OutOfRangeError(None, op, "End of sequence")
    return element


for _name, _inputs, _attrs, _infer, _kernel in (
    ("IteratorV2", (), (), no_outputs, _nothing),
    ("MakeIterator", ("captured*",), ("iterator", "dataset"), no_outputs, _begin),
    ("IteratorGetNext", ("captured*",), ("iterator", "dataset", "spec"), _next_infer, _next),
):
    register(
        OpSpec(
            _name,
            _infer,
            inputs=_inputs,
            attrs=_attrs,
            host_kernel=_kernel,
            gradient=None,
            group=None,
            is_stateful=True,
            why_host=_WHY_HOST,
        )
    )


class Iterator:
    """Gives the next element of a dataset whenever it is asked in a step."""

    def __init__(self, spec: ElementSpec, dataset: Dataset | None = None, handle: Any = None) -> None:
        """An iterator over elements of a kind.

        Args:
            spec: What they have in common.
            dataset: The dataset to go over once, without being initialised.
            handle: A tensor that says which iterator of the graph to ask.
        """
        self._spec = spec
        self._dataset = dataset
        self._handle = None if handle is None else convert_to_tensor(handle)
        self._anchor = operation("IteratorV2", (), None, "Iterator") if handle is None else None
        self._initializer: Operation | None = None

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator over any dataset of elements of a kind; `make_initializer` says which."""
        return Iterator(ElementSpec.declared(output_types, output_shapes))

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """Whichever iterator a fed handle names."""
        return Iterator(ElementSpec.declared(output_types, output_shapes), handle=string_handle)

    @property
    def initializer(self) -> Operation:
        """The operation that begins.

        Raises:
            GraphError: the iterator has none.
        """
        if self._initializer is None:
            raise GraphError("this iterator has no initializer; use make_initializer or make_initializable_iterator")
        return self._initializer

    @property
    def output_types(self) -> Any:
        """Element types, nested as the elements are."""
        return self._spec.packed(self._spec.types)

    @property
    def output_shapes(self) -> Any:
        """What is known of the shapes, nested as the elements are."""
        return self._spec.packed(self._spec.shapes)

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """The operation that begins with a dataset.

        Raises:
            ShapeError: its elements are of another kind.
        """
        if not self._spec.is_compatible_with(dataset.spec):
            raise ShapeError(f"the iterator expects {self.output_types} of {self.output_shapes}, found {dataset!r}")
        attrs = {"iterator": self._anchor, "dataset": dataset}
        self._initializer = operation("MakeIterator", dataset.captured, attrs, name)
        return self._initializer

    def get_next(self, name: str | None = None) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: in a step: there is none left.
            FailedPreconditionError: in a step: the iterator has not begun.
        """
        inputs = [self._handle] if self._handle is not None else () if self._dataset is None else self._dataset.captured
        attrs = {"iterator": self._anchor, "dataset": self._dataset, "spec": self._spec}
        return self._spec.packed(list(operation("IteratorGetNext", inputs, attrs, name).outputs))

    def string_handle(self, name: str | None = None) -> Tensor:
        """What names the iterator: to be run, and fed to `from_string_handle`."""
        assert self._anchor is not None, "an iterator by handle is another one"
        return constant(self._anchor.name, string, name=name or "IteratorToStringHandle")


def one_shot(dataset: Dataset) -> Iterator:
    """An iterator that goes over a dataset once.

    Raises:
        GraphError: the dataset depends on a placeholder, whose value is not there when the iterator begins.
    """
    fed = [tensor.name for tensor in dataset.captured if tensor.op.type == "Placeholder"]
    if fed and get_default_graph() is dataset.captured[0].graph:
        raise GraphError(f"a one-shot iterator cannot depend on {', '.join(fed)}; use make_initializable_iterator")
    return Iterator(dataset.spec, dataset)


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator that goes over a dataset once, without being initialised."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator that begins whenever its initializer runs."""
    return dataset.make_initializable_iterator(shared_name)


def get_output_types(dataset_or_iterator: Dataset | Iterator) -> Any:
    """The element types of a dataset or an iterator, nested as the elements are."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Dataset | Iterator) -> Any:
    """What is known of the shapes of the elements of a dataset or an iterator, nested as the elements are."""
    return dataset_or_iterator.output_shapes
