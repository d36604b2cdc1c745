"""Models in which values say how much there is run in stages, each compiled once for its sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interop.onnx.onnx_models import graph, model, node

import xlalite
from xlalite.hlo.errors import LoweringError
from xlalite.hlo.types.dtype import DType

F32, S64, PRED = DType.F32, DType.S64, DType.PRED


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the modules that are compiled."""
    names: list[str] = []
    compile_any = xlalite.compile

    def noted(module: Any, *arguments: Any) -> Any:
        names.append(module.name)
        return compile_any(module, *arguments)

    monkeypatch.setattr(xlalite, "compile", noted)
    return names


def test_what_follows_values_is_compiled_for_each_size(compiled: list[str]) -> None:
    nodes = [
        node("Relu", "x", "r"), node("NonZero", "r", "p"), node("Transpose", "p", "q", perm=[1, 0]),
        node("GatherND", "r q", "g"), node("Mul", "g w", "y"), node("Identity", "x", "same"),
    ]  # fmt: skip
    found = xlalite.onnx.load(model(nodes, {"x": (F32, [9, 7])}, "y p r same x", {"w": np.float32(3)}))
    x = np.random.default_rng(0).standard_normal((9, 7)).astype(np.float32)
    x[4, 4] = np.nan
    for factor, count in ((1, 2), (2, 2), (-1, 3), (0, 4), (3, 4)):
        y, places, r, same, given = found(x * factor)
        np.testing.assert_array_equal(places, np.nonzero(r))
        np.testing.assert_array_equal(y, r[np.nonzero(r)] * 3)
        np.testing.assert_array_equal(same, x * factor)
        np.testing.assert_array_equal(given, x * factor)
        assert len(compiled) == count
    with pytest.raises(LoweringError, match="the model runs in stages around NonZero 'p'"):
        found.executable(x)


def test_every_operator_that_is_sized_by_values(compiled: list[str]) -> None:
    nodes = [
        node("Greater", "x zero", "c"), node("Compress", "x c", "a", axis=0), node("Neg", "a", "minus"),
        node("Unique", "minus", "values first inverse counts"), node("Exp", "values", "e"),
        node("Add", "first counts", "sum"),
    ]  # fmt: skip
    found = xlalite.onnx.load(model(nodes, {"x": (F32, [8])}, "e sum inverse", {"zero": np.float32(0)}))
    for x in ([1, 2, -1, 2, 3, -4, 1, 0], [5, 4, -1, 4, 3, -4, 3, 0], [9, 9, 9, 9, 9, 9, 9, 9]):
        e, total, inverse = found(np.array(x, np.float32))
        chosen = -np.array([each for each in x if each > 0], np.float32)
        values, first, places, counts = np.unique(chosen, return_index=True, return_inverse=True, return_counts=True)
        np.testing.assert_allclose(e, np.exp(values), 1e-6)
        np.testing.assert_array_equal(total, first + counts)
        np.testing.assert_array_equal(inverse, places)
    assert len(compiled) == 5  # the comparison, and what follows each operator, for two sizes


def test_chosen_boxes_are_looked_up(compiled: list[str]) -> None:
    nodes = [
        node("Sigmoid", "s", "scores"), node("NonMaxSuppression", "boxes scores most", "chosen"),
        node("Gather", "chosen two", "places", axis=1), node("Squeeze", "boxes zero", "rows"),
        node("Gather", "rows places", "y", axis=0),
    ]  # fmt: skip
    constants = {"most": np.array([5]), "two": np.array(2), "zero": np.array([0])}
    inputs = {"boxes": (F32, [1, 4, 4]), "s": (F32, [1, 1, 4])}
    found = xlalite.onnx.load(model(nodes, inputs, "y", constants))
    boxes = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5], [6, 6, 7, 7]]], np.float32)
    for scores in ([4, 3, 2, 1], [1, 2, 4, 3]):
        (y,) = found(boxes, np.array([[scores]], np.float32))
        np.testing.assert_array_equal(y, boxes[0, np.argsort(scores)[::-1]])
    assert len(compiled) == 2


def test_sizes_that_follow_from_much_are_computed_first(compiled: list[str]) -> None:
    nodes = [
        node("ArgMax", "x", "k", axis=0, keepdims=1), node("Neg", "x", "n"), node("Slice", "n zero k", "s"),
        node("If", "c", "y", then_branch=graph([node("Exp", "s", "t")], {}, "t"),
             else_branch=graph([node("Add", "s s", "e")], {}, "e")),
    ]  # fmt: skip
    inputs = {"x": (F32, [2000]), "c": (PRED, [])}
    found = xlalite.onnx.load(model(nodes, inputs, "y k", {"zero": np.array([0])}))
    for place, c in ((1500, True), (1500, False), (3, True), (1500, True)):
        x = np.linspace(0, 1, 2000, dtype=np.float32)
        x[place] = 2
        y, k = found(x, np.array(c))
        assert k.tolist() == [place]
        np.testing.assert_allclose(y, np.exp(-x[:place]) if c else -2 * x[:place], 1e-6)
    assert len(compiled) == 3


def test_small_sizes_are_values_of_one_program(compiled: list[str]) -> None:
    nodes = [node("Add", "s s", "d"), node("Expand", "x d", "y")]
    found = xlalite.onnx.load(model(nodes, {"x": (F32, []), "s": (S64, [2])}, "y"))
    assert found(np.float32(1), np.array([1, 2]))[0].shape == (2, 4)
    assert len(compiled) == 1
    assert found.executable(np.float32(1), np.array([1, 2])) is not None
