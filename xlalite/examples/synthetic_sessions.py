"""Sessions of shoppers who do not exist: what comes next depends on what was looked at last."""

import numpy as np

import xlalite as tf

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


def loss_and_recall(logits: tf.Tensor, wanted: tf.Tensor, counts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean cross entropy, and how often the next item is among the five first, over the places that count."""
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits)
    _, recommended = tf.nn.top_k(logits, 5)
    found = tf.cast(tf.reduce_any(tf.equal(recommended, wanted[:, :, None]), 2), tf.float32)
    return tf.reduce_sum(each * counts) / tf.reduce_sum(counts), tf.reduce_sum(found * counts) / tf.reduce_sum(counts)
