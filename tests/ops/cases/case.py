"""What a case of an operation is: a graph, its inputs, and for values what NumPy says of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.helpers.node import node


@dataclass(frozen=True)
class ValueCase:
    """Operations applied to fed inputs, and what NumPy says.

    The first word of the name is the type of the operation that the case covers.
    """

    name: str
    build: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    expected: Callable[..., Any]
    tolerance: float = 2e-6


@dataclass(frozen=True)
class GradientCase:
    """A function of f64 inputs, whose gradients are compared with central differences; named as a `ValueCase`."""

    name: str
    build: Callable[..., Tensor]
    inputs: tuple[np.ndarray, ...]


def value(
    name: str, build: Callable[..., Any], *inputs: np.ndarray, expected: Callable[..., Any], tolerance: float = 2e-6
) -> ValueCase:
    """A case of a function that makes operations."""
    return ValueCase(name, build, inputs, expected, tolerance)


def value_of(
    op_type: str, *inputs: np.ndarray, expected: Callable[..., Any], attrs: Any = None, tolerance: float = 2e-6
) -> ValueCase:
    """A case of one operation, made by its type."""
    return ValueCase(op_type, lambda *t: node(op_type, t, attrs), inputs, expected, tolerance)


def gradient(name: str, build: Callable[..., Tensor], *inputs: np.ndarray) -> GradientCase:
    """A gradient case of a function that makes operations."""
    return GradientCase(name, build, inputs)


def gradient_of(op_type: str, *inputs: np.ndarray, attrs: Any = None) -> GradientCase:
    """A gradient case of one operation, made by its type."""
    return GradientCase(op_type, lambda *t: node(op_type, t, attrs), inputs)
