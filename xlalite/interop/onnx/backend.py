"""xlalite as a backend of the onnx package: what its test suite and programs written for `onnx.backend` call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from xlalite.hlo.errors import XlaliteError
from xlalite.interop.onnx.model import Input, OnnxModel, load


class XlaliteRep(BackendRep):  # type: ignore[misc]
    """A model that was prepared."""

    def __init__(self, model: OnnxModel) -> None:
        self.model = model

    def run(self, inputs: Sequence[Input], **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for inputs by position, as a tuple with names; a mapping gives inputs by name."""
        outputs = self.model.run(inputs) if isinstance(inputs, dict) else _by_position(self.model, inputs)
        found: tuple[Any, ...] = namedtupledict("Outputs", list(outputs))(*outputs.values())
        return found


class XlaliteBackend(Backend):  # type: ignore[misc]
    """The entry points of `onnx.backend`; the only device is the processor."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether a model can be read."""
        try:
            cls.prepare(model, device)
        except XlaliteError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> XlaliteRep:
        """A model that can be run; it is compiled when the shapes of its inputs are known."""
        if not cls.supports_device(device):
            raise ValueError(f"there is no device {device!r}, only CPU")
        return XlaliteRep(load(model.SerializeToString()))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Sequence[Input], device: str = "CPU", **kwargs: Any) -> Any:
        """The outputs of a model."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Sequence[Input], device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> Any:
        """The outputs of a node by itself, with operators of the version `opset_version`, by default the newest."""
        arrays = [np.asarray(value) for value in inputs]
        names = [name for name in node.input if name]
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", infos, results)
        versions = [helper.make_opsetid(node.domain, kwargs["opset_version"])] if "opset_version" in kwargs else None
        return cls.run_model(helper.make_model(graph, opset_imports=versions), arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether programs can run there."""
        return device.split(":")[0] == "CPU"


def _by_position(model: OnnxModel, inputs: Sequence[Input]) -> dict[str, Any]:
    return model.run(dict(zip((info.name for info in model.inputs), inputs, strict=False)))


is_compatible = XlaliteBackend.is_compatible
prepare = XlaliteBackend.prepare
run_model = XlaliteBackend.run_model
run_node = XlaliteBackend.run_node
supports_device = XlaliteBackend.supports_device
