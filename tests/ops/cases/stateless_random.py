"""Random numbers that follow from a seed: what is known of them whatever the bits are."""

import numpy as np
from ops.cases.case import value

from xlalite.ops.functions import distributions as d, math as m, raw_ops as R
from xlalite.ops.helpers.node import node, operation

SEED = np.int32([1, 2])
KEY, COUNTER = np.uint64([5]), np.uint64([6, 7])

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
    value(
        "StatelessRandomUniformFullInt",
        lambda s: m.cast(d.stateless_random_uniform([9], s, None, None, np.int64), np.float64) < 2.0**63,
        SEED,
        expected=lambda s: np.full(9, True),
    ),
    value(
        "StatelessRandomGetKeyCounter",
        lambda s: node("Equal", list(operation("StatelessRandomGetKeyCounter", [s]).outputs[:1]) * 2),
        SEED,
        expected=lambda s: [True],
    ),
    value(
        "StatelessRandomGetKeyCounterAlg",
        lambda s: operation("StatelessRandomGetKeyCounterAlg", [s]).outputs[2],
        SEED,
        expected=lambda s: 1,
    ),
    value("StatelessRandomGetAlg", lambda: node("StatelessRandomGetAlg", []), expected=lambda: 1),
    value(
        "StatelessRandomUniformV2",
        lambda k, c: m.floor(R.StatelessRandomUniformV2(shape=[2, 3], key=k, counter=c, alg=1)),
        KEY,
        COUNTER,
        expected=lambda k, c: np.zeros((2, 3)),
    ),
    value(
        "StatelessRandomUniformIntV2",
        lambda k, c: R.StatelessRandomUniformIntV2(
            shape=[5], key=k, counter=c, alg=2, minval=np.uint64(7), maxval=np.uint64(8)
        ),
        KEY,
        COUNTER,
        expected=lambda k, c: np.full(5, 7),
    ),
    value(
        "StatelessRandomUniformFullIntV2",
        lambda k, c: R.StatelessRandomUniformFullIntV2(shape=[4], key=k, counter=c, alg=1, dtype=np.uint32),
        np.uint64([0x299F31D0A4093822]),
        np.uint64([0x85A308D3243F6A88, 0x0370734413198A2E]),
        expected=lambda k, c: [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
    value(
        "StatelessRandomNormalV2",
        lambda k, c: m.is_finite(R.StatelessRandomNormalV2(shape=[50], key=k, counter=c, alg=1, dtype=np.float16)),
        KEY,
        COUNTER,
        expected=lambda k, c: np.full(50, True),
    ),
    value(
        "StatelessTruncatedNormalV2",
        lambda k, c: m.abs(R.StatelessTruncatedNormalV2(shape=[50], key=k, counter=c, alg=1)) <= 2,
        KEY,
        COUNTER,
        expected=lambda k, c: np.full(50, True),
    ),
]
