"""Attributes that may be left out, as operations of TensorFlow's own graphs do."""

import numpy as np
import pytest

from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.op_spec import OP_SPECS
from xlalite.ops.helpers.constant import constant

IMAGE, KERNEL = np.zeros((2, 5, 5, 4), np.float32), np.zeros((3, 3, 4, 2), np.float32)


def test_what_is_left_out_has_its_default(graph: Graph) -> None:
    inputs = [constant(IMAGE), constant(KERNEL)]
    operation = graph.create_op("Conv2D", inputs, {"strides": [1, 2, 2, 1], "padding": "SAME"})
    assert operation.get_attr("data_format") == "NHWC"
    assert operation.get_attr("dilations") == (1, 1, 1, 1)
    assert operation.outputs[0].shape == (2, 3, 3, 2)
    other = graph.create_op("LeakyRelu", inputs[:1], {"alpha": 0.5})
    assert other.get_attr("alpha") == 0.5


def test_what_has_no_default_must_be_said(graph: Graph) -> None:
    with pytest.raises(AssertionError, match="Conv2D lacks attributes"):
        graph.create_op("Conv2D", [constant(IMAGE), constant(KERNEL)], {"padding": "SAME"})


def test_formats_follow_the_rank() -> None:
    defaults = {name: spec.defaults["data_format"] for name, spec in OP_SPECS.items() if "data_format" in spec.defaults}
    assert defaults["MaxPool3DGrad"] == defaults["Conv3D"] == "NDHWC"
    assert {defaults[name] for name in defaults if "3D" not in name} == {"NHWC"}
