"""ONNX models as HLO modules and as functions of NumPy arrays; see docs/onnx.md.

>>> model = xlalite.onnx.load("model.onnx")
>>> (logits,) = model(images)
"""

from __future__ import annotations

from xlalite.interop.onnx.model import OnnxModel, load

__all__ = ["OnnxModel", "load"]
