"""Random numbers that are drawn on the host: NumPy's Philox generator, one for each operation and session."""

from __future__ import annotations

import threading
from dataclasses import field

import numpy as np

from xlalite.framework.graph.operation import Operation
from xlalite.hlo.records import dataclass

WHY_HOST = "it draws from a stream of random numbers that belongs to the session"
_SEED_MASK = 2**64 - 1


@dataclass(slots=True)
class RandomStream:
    """One operation's generator in one session; draws are taken one at a time."""

    generator: np.random.Generator
    lock: threading.Lock = field(default_factory=threading.Lock)


def stream_for(op: Operation) -> RandomStream:
    """A new generator for an operation, as its seeds say."""
    seed, seed2 = op.get_attr("seed"), op.get_attr("seed2")
    if seed == 0 and seed2 == 0:
        return RandomStream(np.random.Generator(np.random.Philox()))
    return RandomStream(np.random.Generator(np.random.Philox(key=(seed & _SEED_MASK) | (seed2 & _SEED_MASK) << 64)))
