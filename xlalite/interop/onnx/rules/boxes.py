"""Boxes chosen by score. How many follows from the values, which must be known therefore."""

from __future__ import annotations

import math

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.numerics.box_selection import choose_boxes
from xlalite.interop.onnx.context import NodeContext, rule


@rule("NonMaxSuppression")
def _non_max_suppression(context: NodeContext) -> Handle:
    boxes, scores = context.known(0).astype(np.float32), context.known(1)
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape != (len(scores), scores.shape[2], 4):
        raise context.error(f"boxes of sizes {boxes.shape} do not fit scores of sizes {scores.shape}")
    most = int(context.known_scalar(2)) if context.has(2) else 0
    overlap = float(context.known_scalar(3)) if context.has(3) else 0.0
    least = float(context.known_scalar(4)) if context.has(4) else -math.inf
    if context.integer("center_point_box", 0):  # x, y, width, height
        centre, half = boxes[..., 1::-1], boxes[..., 3:1:-1] / 2
        boxes = np.concatenate([centre - half, centre + half], -1)
    rows = [
        (batch, group, number)
        for batch, group in np.ndindex(scores.shape[:2])
        for number in choose_boxes(boxes[batch], scores[batch, group], most, overlap, least)[0]
    ]
    return context.builder.constant(np.array(rows, np.int64).reshape(-1, 3))
