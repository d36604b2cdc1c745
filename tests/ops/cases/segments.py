"""Rows combined by segment."""

import numpy as np
from ops.cases.case import gradient, value

from xlalite.ops.functions import segments as s

F = np.float32
X = F([[1, -2], [3, 4], [-5, 6], [7, 0.5]])
IDS = np.int32([1, 0, 1, -1])


def by_segment(combine: np.ufunc, start: float) -> object:
    def expected(x: np.ndarray, ids: np.ndarray) -> np.ndarray:
        result = np.full((3, *x.shape[ids.ndim :]), start, x.dtype)
        kept = ids >= 0
        combine.at(result, ids[kept], x[kept])
        return result

    return expected


LOWEST = float(np.finfo(F).min)

VALUES = [
    value(
        "UnsortedSegmentProd",
        lambda x, i: s.unsorted_segment_prod(x, i, 3),
        X,
        IDS,
        expected=by_segment(np.multiply, 1),
    ),
    value(
        "UnsortedSegmentMax",
        lambda x, i: s.unsorted_segment_max(x, i, 3),
        X,
        IDS,
        expected=by_segment(np.maximum, LOWEST),
    ),
    value(
        "UnsortedSegmentMin",
        lambda x, i: s.unsorted_segment_min(x, i, 3),
        X,
        IDS,
        expected=by_segment(np.minimum, -LOWEST),
    ),
    value(
        "UnsortedSegmentSum mean",
        lambda x, i: s.unsorted_segment_mean(x, i, 3),
        X,
        IDS,
        expected=lambda x, i: F([[3, 4], [-2, 2], [0, 0]]),
    ),
    value(
        "UnsortedSegmentSum sqrt_n",
        lambda x, i: s.unsorted_segment_sqrt_n(x, i, 2),
        X,
        IDS,
        expected=lambda x, i: F([[3, 4], [-4 / 2**0.5, 4 / 2**0.5]]),
    ),
    value(
        "HistogramFixedWidth",
        lambda x: s.histogram_fixed_width(x, [0.0, 5.0], 5),
        F([-1, 0, 1.5, 2, 5, 15]),
        expected=lambda x: np.int32([2, 1, 1, 0, 2]),
    ),
    value(
        "Floor histogram_fixed_width_bins",
        lambda x: s.histogram_fixed_width_bins(x, [0.0, 5.0], 5),
        F([-1, 0, 1.5, 2, 5, 15]),
        expected=lambda x: np.int32([0, 0, 1, 2, 4, 4]),
    ),
]

Y = np.array([[0.5, -2.0], [3.0, 0.8], [-1.5, 0.6], [0.7, 0.5]])
WEIGHTS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
ZEROS = np.array([[0.0, 0.0], [3.0, 0.0], [-1.5, 0.0], [0.7, 0.5]])

GRADIENTS = [
    gradient("UnsortedSegmentProd", lambda x: s.unsorted_segment_prod(x, IDS, 3) * WEIGHTS, Y),
    gradient("UnsortedSegmentProd with zeros", lambda x: s.unsorted_segment_prod(x, IDS, 3) * WEIGHTS, ZEROS),
    gradient("UnsortedSegmentMax", lambda x: s.unsorted_segment_max(x, IDS, 2) * WEIGHTS[:2], Y),
    gradient("UnsortedSegmentMin", lambda x: s.unsorted_segment_min(x, IDS, 2) * WEIGHTS[:2], Y),
    gradient("UnsortedSegmentSum mean", lambda x: s.unsorted_segment_mean(x, IDS, 3) * WEIGHTS, Y),
]
