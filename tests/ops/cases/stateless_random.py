"""Random numbers that follow from a seed: what is known of them whatever the bits are."""

import numpy as np
from ops.cases.case import value

from xlalite.ops.functions import distributions as d, math as m

SEED = np.int32([1, 2])

VALUES = [
    value(
        "StatelessRandomUniform",
        lambda s: m.floor(d.stateless_random_uniform([2, 3], s)),
        SEED,
        expected=lambda s: np.zeros((2, 3)),
    ),
    value(
        "StatelessRandomNormal",
        lambda s: d.stateless_random_normal([4], s, 5.0, 0.0),
        SEED,
        expected=lambda s: np.full(4, 5.0),
    ),
    value(
        "StatelessTruncatedNormal",
        lambda s: m.abs(d.stateless_truncated_normal([50], s)) <= 2,
        SEED,
        expected=lambda s: np.full(50, True),
    ),
    value(
        "StatelessRandomUniformInt",
        lambda s: d.stateless_random_uniform([5], s, 7, 8, np.int64),
        SEED,
        expected=lambda s: np.full(5, 7),
    ),
]
