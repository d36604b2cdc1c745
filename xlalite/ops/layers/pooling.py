"""Pooling layers over one to three dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.pooling import pool
from xlalite.ops.layers.base import Layer, as_sizes, format_letters, layer_function


class Pooling(Layer):
    """Pooling: one number for each window of each channel."""

    rank: ClassVar[int]
    kind: ClassVar[str]

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Sizes are one integer for all dimensions, or one for each."""
        super().__init__(name=name, **kwargs)
        self.pool_size = as_sizes(pool_size, self.rank, "pool_size")
        self.strides = as_sizes(pool_size if strides is None else strides, self.rank, "strides")
        self.padding = padding.upper()
        self.data_format = data_format

    def call(self, inputs: Tensor) -> Tensor:
        """The output."""
        letters = format_letters(self.data_format, self.rank)
        return pool(inputs, self.pool_size, self.kind, self.padding, strides=self.strides, data_format=letters)


class MaxPooling1D(Pooling):
    """The largest of each window."""

    rank, kind = 1, "MAX"


class MaxPooling2D(Pooling):
    """The largest of each window."""

    rank, kind = 2, "MAX"


class MaxPooling3D(Pooling):
    """The largest of each window."""

    rank, kind = 3, "MAX"


class AveragePooling1D(Pooling):
    """The mean of each window."""

    rank, kind = 1, "AVG"


class AveragePooling2D(Pooling):
    """The mean of each window."""

    rank, kind = 2, "AVG"


class AveragePooling3D(Pooling):
    """The mean of each window."""

    rank, kind = 3, "AVG"


max_pooling1d = layer_function(MaxPooling1D)
max_pooling2d = layer_function(MaxPooling2D)
max_pooling3d = layer_function(MaxPooling3D)
average_pooling1d = layer_function(AveragePooling1D)
average_pooling2d = layer_function(AveragePooling2D)
average_pooling3d = layer_function(AveragePooling3D)
