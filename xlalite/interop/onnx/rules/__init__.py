"""How each operator is expressed in HLO: a family a file. Importing the package fills the table of rules."""

from __future__ import annotations

from xlalite.interop.onnx.rules import (
    activations,
    control_flow,
    convolutions,
    elementwise,
    indexing,
    joining,
    losses,
    normalization,
    pooling,
    products,
    quantization,
    reductions,
    sequences,
    shaping,
)

FAMILIES = (
    activations,
    control_flow,
    convolutions,
    elementwise,
    indexing,
    joining,
    losses,
    normalization,
    pooling,
    products,
    quantization,
    reductions,
    sequences,
    shaping,
)
"""The families, for whoever lists them."""
