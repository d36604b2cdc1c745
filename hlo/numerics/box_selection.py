"""Boxes chosen by score, without those that overlap a better one too much."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def choose_boxes(
    boxes: Array, scores: Array, most: int, overlap: float, least_score: float, sigma: float = 0
) -> tuple[list[int], list[float]]:
    """The boxes in the order in which they are chosen, with their scores (Bodla et al. 2017 for `sigma` above 0)."""
    waiting = [(-float(score), number, 0) for number, score in enumerate(scores) if score > least_score]
    heapq.heapify(waiting)
    chosen: list[int] = []
    final: list[float] = []
    while waiting and len(chosen) < most:
        negative, number, compared = heapq.heappop(waiting)
        similar = _overlaps(boxes, number, chosen[compared:])
        if sigma > 0:
            score = -negative * float(np.exp(-0.5 / sigma * similar * similar).prod())
        elif (similar > overlap).any():
            continue
        else:
            score = -negative
        if score == -negative:
            chosen.append(number)
            final.append(score)
        elif score > least_score:
            heapq.heappush(waiting, (-score, number, len(chosen)))
    return chosen, final


def _overlaps(boxes: Array, one: int, others: Sequence[int]) -> Array:
    """Intersection over union of one box `[y, x, y, x]` with others; 0 where one is empty."""
    chosen = boxes[[one, *others]]
    low, high = np.minimum(chosen[:, :2], chosen[:, 2:]), np.maximum(chosen[:, :2], chosen[:, 2:])
    areas = (high - low).prod(1)
    sides = np.maximum(np.minimum(high[0], high[1:]) - np.maximum(low[0], low[1:]), 0)
    common = sides.prod(1)
    exists = (areas[0] > 0) & (areas[1:] > 0)
    return np.asarray(np.where(exists, common / np.where(exists, areas[0] + areas[1:] - common, 1), 0))
