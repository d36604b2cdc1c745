"""A part of the onnx package's own cases: every tenth of the operators', and those of models that PyTorch made."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="the onnx package has the cases")

from interop.onnx_suite import cases, expected_reason, failure_of

_STEP = 10


def test_cases_of_the_onnx_package() -> None:
    found = cases([])
    assert len(found["NodeModel"]) > 1000
    chosen = [*found["NodeModel"][::_STEP], *found["SimpleModel"], *found["PyTorchOperatorModel"]]
    names = [case.id().rsplit(".", 1)[-1] for case in chosen]
    problems = {
        name: problem
        for name, case in zip(names, chosen, strict=True)
        if expected_reason(name) is None and (problem := failure_of(case)) is not None
    }
    assert not problems


def test_a_node_runs_by_itself() -> None:
    import numpy as np
    from onnx import helper

    from xlalite.interop.onnx.backend import is_compatible, run_node, supports_device

    assert supports_device("CPU")
    assert not supports_device("CUDA")
    x = np.arange(3, dtype=np.float32)
    found = run_node(helper.make_node("Neg", ["x"], ["y"]), [x])
    np.testing.assert_array_equal(found.y, -x)
    assert is_compatible(helper.make_model(helper.make_graph([], "empty", [], [])))
