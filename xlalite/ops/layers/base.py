"""What all layers share: a scope for variables and operations, building at the first use, losses and updates."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.control_flow import cond
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.training.variable import Variable
from xlalite.ops.training.variable_scope import VariableScope, get_variable, variable_scope

T = TypeVar("T")
LayerFunction = Callable[..., Tensor]


class Layer:
    """A layer. Subclasses make variables in `build` and use them in `call`.

    Attributes:
        trainable: Whether optimisers change its variables by default.
        built: Whether the variables are there.
        updates: Operations that keep its statistics.
        losses: Losses of its variables and outputs.
        trainable_weights: The variables that optimisers change.
        non_trainable_weights: The others.
        renamed: Other names for some variables.
        collections_of: The further collections that a variable of some name joins.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        activity_regularizer: Any = None,
        _scope: Any = None,
        _reuse: Any = None,
        **unused: Any,
    ) -> None:
        """A layer without variables yet.

        Args:
            trainable: Whether optimisers change its variables by default.
            name: Name of its scope.
            dtype: Element type of its variables; that of the first input by default.
            activity_regularizer: Gives a loss for its output.
            _scope: The scope to open, instead of one that nothing has.
            _reuse: Whether its variables exist already.
            unused: Accepted for compatibility.
        """
        self.trainable = trainable
        self.built = False
        self.updates: list[Any] = []
        self.losses: list[Tensor] = []
        self.trainable_weights: list[Variable] = []
        self.non_trainable_weights: list[Variable] = []
        self._dtype = dtype
        self._activity_regularizer = activity_regularizer
        self._base_name = name or _snake_case(type(self).__name__)
        self._given_scope = _scope
        self._reuse = _reuse
        self._scope: VariableScope | None = None
        self.renamed: Mapping[str, str] = {}
        self.collections_of: Callable[[str], list[Any]] = lambda name: []

    @property
    def name(self) -> str:
        """The last part of the scope's name."""
        return self._base_name if self._scope is None else self._scope.name.rpartition("/")[2]

    @property
    def scope_name(self) -> str:
        """The prefix of the names of its variables."""
        return "" if self._scope is None else self._scope.name

    @property
    def dtype(self) -> Any:
        """Element type of its variables."""
        return self._dtype

    @property
    def weights(self) -> list[Variable]:
        """All its variables."""
        return [*self.trainable_weights, *self.non_trainable_weights]

    @property
    def variables(self) -> list[Variable]:
        """All its variables."""
        return self.weights

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those that optimisers change by default."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """The others."""
        return self.non_trainable_weights

    def count_params(self) -> int:
        """How many numbers its variables hold."""
        counts = [variable.shape.num_elements() for variable in self.weights]
        return sum(count for count in counts if count is not None)

    def build(self, input_shape: Any) -> None:
        """Makes the variables, once the shape of the input is known."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output; by default the input."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape of the output; not known by default."""
        raise NotImplementedError(f"{type(self).__name__} does not say what shape its output has")

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output for an input; builds the layer first if need be."""
        given = inputs if isinstance(inputs, list | tuple) else convert_to_tensor(inputs)
        first = convert_to_tensor(given[0]) if isinstance(given, list | tuple) else given
        graph = get_default_graph()
        if self._scope is None:
            with self._new_scope() as opened:
                self._scope = opened
        reuse = True if self.built else self._reuse
        opened_again = variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False)
        with opened_again, graph.name_scope(self._scope.original_name_scope):
            if not self.built:
                self._dtype = self._dtype or first.dtype
                self.build(first.shape if first is given else [convert_to_tensor(each).shape for each in given])
                self.built = True
            outputs = self.call(given, *args, **kwargs)
            if self._activity_regularizer is not None:
                with graph.name_scope("ActivityRegularizer"):
                    self.add_loss(self._activity_regularizer(outputs))
        return outputs

    apply = __call__

    def add_variable(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool = True,
        constraint: Any = None,
        **unused: Any,
    ) -> Variable:
        """A variable of the layer, made or found in its scope."""
        changes = trainable and self.trainable
        wanted = as_dtype(dtype or self._dtype)
        kept = len(get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES))
        called = self.renamed.get(name, name)
        further = self.collections_of(called)
        collections = [GraphKeys.GLOBAL_VARIABLES, *further] if further else None
        made = get_variable(
            called, shape, wanted, initializer, regularizer, changes, collections, constraint=constraint
        )
        self.losses += get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES)[kept:]
        (self.trainable_weights if changes else self.non_trainable_weights).append(made)
        return made

    add_weight = add_variable

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Operations that keep the layer's statistics; they join the UPDATE_OPS."""
        listed = list(updates) if isinstance(updates, list | tuple) else [updates]
        self.updates += listed
        get_default_graph().get_collection_ref(GraphKeys.UPDATE_OPS).extend(listed)

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Losses of the layer; they join the REGULARIZATION_LOSSES."""
        listed = list(losses) if isinstance(losses, list | tuple) else [losses]
        self.losses += listed
        get_default_graph().get_collection_ref(GraphKeys.REGULARIZATION_LOSSES).extend(listed)

    def enter(self, scope: VariableScope) -> None:
        """Makes the layer use a scope that is open already."""
        self._scope = scope
        self._reuse = scope.reuse

    def _new_scope(self) -> Any:
        if self._reuse:
            return variable_scope(self._given_scope or self._base_name, reuse=self._reuse)
        return variable_scope(self._given_scope, default_name=self._base_name)


def layer_function(kind: type[Layer], *call_arguments: str) -> LayerFunction:
    """The function `f(inputs, ...)` that makes a layer and applies it at once.

    Args:
        kind: The class; the function takes its arguments behind the input, and `reuse`.
        call_arguments: Names of arguments that go to the call.
    """

    @functools.wraps(kind.__init__)
    def apply(inputs: Any, *args: Any, name: str | None = None, reuse: Any = None, **kwargs: Any) -> Any:
        for_call = {key: kwargs.pop(key) for key in call_arguments if key in kwargs}
        make: Callable[..., Layer] = kind
        return make(*args, name=name, _scope=name, _reuse=reuse, **kwargs)(inputs, **for_call)

    apply.__name__ = apply.__qualname__ = _snake_case(kind.__name__)
    apply.__doc__ = f"Makes a `{kind.__name__}` and applies it to `inputs`."
    return apply


def static_truth(pred: Any) -> bool | None:
    """Whether a predicate holds, where that is known while the graph is built."""
    if isinstance(pred, bool | int):
        return bool(pred)
    known = constant_value(convert_to_tensor(pred))
    return None if known is None else bool(known)


def smart_cond(pred: Any, true_fn: Callable[[], T], false_fn: Callable[[], T], name: str | None = None) -> T:
    """As `cond`, but decided while the graph is built where the predicate is known by then."""
    holds = static_truth(pred)
    if holds is None:
        return cond(pred, true_fn, false_fn, name)  # type: ignore[no-any-return]  # the branches say what it gives
    return true_fn() if holds else false_fn()


def as_sizes(value: Any, count: int, what: str) -> tuple[int, ...]:
    """One integer for each dimension, of one for all or of a sequence.

    Raises:
        ShapeError: there are too few or too many.
    """
    sizes = (int(value),) * count if isinstance(value, int) else tuple(int(size) for size in value)
    if len(sizes) != count:
        raise ShapeError(f"{what} must be an integer or {count} integers, found {value!r}")
    return sizes


def channel_axis(data_format: str, rank: int) -> int:
    """The position of the channels.

    Raises:
        ShapeError: the format is not one of `channels_last` and `channels_first`.
    """
    if data_format not in ("channels_last", "channels_first"):
        raise ShapeError(f"data_format {data_format!r} is not one of channels_last, channels_first")
    return rank - 1 if data_format == "channels_last" else 1


def format_letters(data_format: str, spatial: int) -> str:
    """The same format in letters, such as `NHWC`."""
    space = "DHW"[3 - spatial :]
    return f"NC{space}" if channel_axis(data_format, spatial + 2) == 1 else f"N{space}C"


def known_size(shape: TensorShape, axis: int, what: str) -> int:
    """A size that variables depend on.

    Raises:
        ShapeError: it is not known.
    """
    size = None if shape.dims is None else shape.dims[axis]
    if size is None:
        raise ShapeError(f"{what}: dimension {axis} of the input must be known, its shape is {shape}")
    return size


def activated(outputs: Tensor, activation: Any) -> Tensor:
    """The activation of what a layer computes, if there is one."""
    return outputs if activation is None else convert_to_tensor(activation(outputs))


def _snake_case(name: str) -> str:
    parted = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", parted).lower()
