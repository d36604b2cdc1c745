"""Boxes chosen by score, without those that overlap a better one too much.

How many are chosen follows from the values, so that only the form that fills up to the maximum can be compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, int32
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import max_axes
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.numerics.box_selection import choose_boxes
from xlalite.ops.helpers.shape_rules import require_scalar, require_type

_WHY_HOST = "how many boxes it chooses depends on their values"


def _infer(op: Operation) -> Sequence[OutputType]:
    boxes, scores, count, *limits = op.inputs
    for tensor, what in ((boxes, "boxes"), (scores, "scores")):
        require_type(tensor, FLOATING_TYPES, what)
    require_type(count, {int32}, "max_output_size")
    for tensor in (count, *limits):
        require_scalar(tensor, "a limit")
    TensorShape([None, 4]).assert_is_compatible_with(boxes.shape)
    scores.shape.with_rank(1).assert_is_compatible_with(boxes.shape.with_rank(2).as_list()[:1])
    known = constant_value(count) if _is_padded(op) else None
    chosen = TensorShape([None if known is None else max(0, int(known))])
    types = {"selected_indices": (int32, chosen), "selected_scores": (scores.dtype, chosen)}
    return [types.get(name, (int32, TensorShape(()))) for name in _OUTPUTS[op.type]]


def _is_padded(op: Operation) -> bool:
    return bool(op.attrs.get("pad_to_max_output_size", False))


def _limits(op: Operation, inputs: Sequence[HostValue]) -> tuple[float, float, float]:
    """The thresholds of overlap and score, and the width of soft suppression."""
    given = dict(zip(op.spec.inputs, inputs, strict=True))
    overlap = op.attrs.get("iou_threshold", given.get("iou_threshold"))
    score = given.get("score_threshold", -math.inf)
    found = [float(np.asarray(each)) for each in (overlap, score, given.get("soft_nms_sigma", 0))]
    if not 0 <= found[0] <= 1:
        raise InvalidArgumentError(None, op, f"iou_threshold must be from 0 to 1, found {found[0]}")
    return found[0], found[1], found[2]


def _on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    boxes, scores, count = (np.asarray(value) for value in inputs[:3])
    overlap, least_score, sigma = _limits(op, inputs)
    if boxes.shape != (len(scores), 4):
        raise InvalidArgumentError(None, op, f"boxes of shape {boxes.shape} do not fit {len(scores)} scores")
    most = max(0, int(count))
    wide = boxes.astype(np.float32) if boxes.dtype.itemsize < 4 else boxes
    chosen, final = choose_boxes(wide, scores, most, overlap, least_score, sigma)
    filling = most - len(chosen) if _is_padded(op) else 0
    found = {
        "selected_indices": np.array([*chosen, *[0] * filling], np.int32),
        "selected_scores": np.array([*final, *[0.0] * filling]).astype(scores.dtype),
        "valid_outputs": np.array(len(chosen), np.int32),
    }
    return [found[name] for name in _OUTPUTS[op.type]]


def _lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    """Takes the best box that is left until there is none, and strikes out what overlaps it."""
    b, (boxes, scores, overlap, least_score) = ctx.builder, inputs
    most, number = max(0, int(ctx.constant(op, "max_output_size"))), scores.dims[0]
    if boxes.dims != (number, 4):
        raise ShapeError(f"boxes of shape {boxes.dims} do not fit {number} scores")
    if 0 in (most, number):
        return [b.full(0, int32.hlo, [most]), b.constant(0, int32.hlo)]
    struck_out = b.full(-math.inf, scores.dtype, [number])
    left = b.select(b.compare(scores, b.broadcast(least_score, [number]), "GT"), scores, struck_out)
    start = b.tuple([b.constant(0, int32.hlo), b.full(0, int32.hlo, [most]), left, boxes, overlap])

    def condition(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        count, _, left, *_ = (parameters[0][i] for i in range(5))
        is_left = inner.compare(max_axes(inner, left, [0]), -math.inf, "GT")
        return inner.compare(count, most, "LT") & is_left

    def body(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        count, chosen, left, boxes, overlap = (parameters[0][i] for i in range(5))
        positions = inner.iota(int32.hlo, [number], 0)
        is_best = inner.compare(left, inner.broadcast(max_axes(inner, left, [0]), [number]), "EQ")
        best = inner.reduce(inner.select(is_best, positions, number), number, [0], "minimum")
        zero = inner.constant(0, int32.hlo)
        row = inner.reshape(inner.dynamic_slice(boxes, [best, zero], [1, 4]), [4])
        similar = _overlaps_in_hlo(inner, boxes, inner.broadcast(row, [number, 4], [1]))
        gone = inner.compare(similar, inner.broadcast(inner.convert(overlap, similar.dtype), [number]), "GT")
        gone = gone | inner.compare(positions, inner.broadcast(best, [number]), "EQ")
        left = inner.select(gone, inner.full(-math.inf, left.dtype, [number]), left)
        chosen = inner.op("dynamic-update-slice", (chosen, inner.reshape(best, [1]), count))
        return inner.tuple([count + 1, chosen, left, boxes, overlap])

    called = (
        b.subcomputation("boxes_left", (start.shape,), condition),
        b.subcomputation("choose_box", (start.shape,), body),
    )
    result = b.op("while", (start,), None, called)
    return [result[1], result[0]]


def _overlaps_in_hlo(b: Builder, boxes: Handle, others: Handle) -> Handle:
    """Row by row, as `box_selection` has it."""
    number = boxes.dims[0]

    def corners(rows: Handle) -> tuple[Handle, Handle]:
        first, second = (b.slice(rows, [0, i], [number, i + 2]) for i in (0, 2))
        return b.op("minimum", (first, second)), b.op("maximum", (first, second))

    def area(sides: Handle) -> Handle:
        return b.reduce(sides, 1, [1], "multiply")

    (low, high), (other_low, other_high) = corners(boxes), corners(others)
    own, other = area(high - low), area(other_high - other_low)
    sides = b.op("minimum", (high, other_high)) - b.op("maximum", (low, other_low))
    common = area(b.op("maximum", (sides, b.full(0, sides.dtype, sides.dims))))
    exists = b.compare(own, 0, "GT") & b.compare(other, 0, "GT")
    union = b.select(exists, own + other - common, b.full(1, own.dtype, own.dims))
    return b.select(exists, common / union, b.full(0, own.dtype, own.dims))


def _why_not_compilable(op: Operation) -> str | None:
    return None if _is_padded(op) else _WHY_HOST


_OUTPUTS = {
    "NonMaxSuppression": ("selected_indices",),
    "NonMaxSuppressionV2": ("selected_indices",),
    "NonMaxSuppressionV3": ("selected_indices",),
    "NonMaxSuppressionV4": ("selected_indices", "valid_outputs"),
    "NonMaxSuppressionV5": ("selected_indices", "selected_scores", "valid_outputs"),
}
_BOXES = ("boxes", "scores", "max_output_size")
_INPUTS = {
    "NonMaxSuppression": _BOXES,
    "NonMaxSuppressionV2": (*_BOXES, "iou_threshold"),
    "NonMaxSuppressionV3": (*_BOXES, "iou_threshold", "score_threshold"),
    "NonMaxSuppressionV4": (*_BOXES, "iou_threshold", "score_threshold"),
    "NonMaxSuppressionV5": (*_BOXES, "iou_threshold", "score_threshold", "soft_nms_sigma"),
}
_DEFAULTS: dict[str, dict[str, object]] = {
    "NonMaxSuppression": {"iou_threshold": 0.5},
    "NonMaxSuppressionV4": {"pad_to_max_output_size": False},
    "NonMaxSuppressionV5": {"pad_to_max_output_size": False},
}
for _name in _OUTPUTS:
    _compiles = _name == "NonMaxSuppressionV4"
    _lowering: Callable[..., Sequence[Handle]] | None = _lower if _compiles else None
    register(
        OpSpec(
            _name,
            _infer,
            inputs=_INPUTS[_name],
            attrs=tuple(_DEFAULTS.get(_name, {})),
            defaults=_DEFAULTS.get(_name, {}),
            lower=_lowering,
            host_kernel=_on_host,
            gradient=None,
            group=None,
            constant_inputs=("max_output_size",) if _compiles else (),
            why_host="" if _compiles else _WHY_HOST,
            why_not_compilable=_why_not_compilable if _compiles else None,
        )
    )
