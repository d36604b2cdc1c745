"""How each operator is expressed in HLO: a family a file. Importing the package fills the table of rules."""

from __future__ import annotations

from xlalite.interop.onnx.rules import (
    activations,
    attention,
    boxes,
    control_flow,
    convolutions,
    elementwise,
    indexing,
    joining,
    losses,
    normalization,
    ordering,
    pooling,
    products,
    quantization,
    random_numbers,
    recurrent,
    reductions,
    resizing,
    sampling,
    sequences,
    shaping,
    signals,
)

FAMILIES = (
    activations,
    attention,
    boxes,
    control_flow,
    convolutions,
    elementwise,
    indexing,
    joining,
    losses,
    normalization,
    ordering,
    pooling,
    products,
    quantization,
    random_numbers,
    recurrent,
    reductions,
    resizing,
    sampling,
    sequences,
    shaping,
    signals,
)
"""The families, for whoever lists them."""
