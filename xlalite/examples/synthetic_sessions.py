"""Sessions of shoppers who do not exist: what comes next depends on what was looked at last."""

import numpy as np

ITEMS = 200
LENGTH = 20


class Shoppers:
    """Draws sessions: each item has few likely successors, so that some of the next items can be foretold."""

    def __init__(self, seed: int = 0) -> None:
        """The likely successors of each item are drawn once; item 0 stands for nothing."""
        self._rng = np.random.default_rng(seed)
        self._successors = self._rng.integers(1, ITEMS, (ITEMS, 3))

    def sessions(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Items `[count, LENGTH]` with zeros behind their ends, and lengths `[count]`."""
        lengths = self._rng.integers(5, LENGTH + 1, count)
        items = np.zeros((count, LENGTH), np.int32)
        items[:, 0] = self._rng.integers(1, ITEMS, count)
        for place in range(1, LENGTH):
            chosen = self._rng.choice(3, count, p=(0.8, 0.15, 0.05))
            items[:, place] = self._successors[items[:, place - 1], chosen]
        items[np.arange(LENGTH) >= lengths[:, None]] = 0
        return items, lengths.astype(np.int32)
