"""Words turned round by an encoder and a decoder with attention (Bahdanau et al. 2015, Luong et al. 2015).

python -m xlalite.examples.seq2seq
"""

from typing import Any

import numpy as np

import xlalite as tf
from xlalite.examples.training import fit, parser, session

BATCH = 64
LETTERS = 12
LENGTH = 8
WIDTH = 64
GO = 0


class AttentionCell(tf.nn.rnn_cell.RNNCell):
    """A GRU that looks at what the encoder gave, at each step where it fits best."""

    def __init__(self, memory: tf.Tensor) -> None:
        """`memory` is `[n, length, width]`."""
        super().__init__()
        self._memory = memory
        self._cell = tf.nn.rnn_cell.GRUCell(WIDTH)

    @property
    def state_size(self) -> int:
        """The GRU's."""
        return WIDTH

    @property
    def output_size(self) -> int:
        """The GRU's."""
        return WIDTH

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, Any]:
        """One letter further."""
        output, state = self._cell(inputs, state)
        query = tf.layers.dense(output, WIDTH, use_bias=False, name="query")
        weights = tf.nn.softmax(tf.reduce_sum(self._memory * query[:, None, :], 2))
        context = tf.reduce_sum(self._memory * weights[:, :, None], 1)
        return tf.layers.dense(tf.concat([output, context], 1), WIDTH, tf.tanh, name="attention"), state


def main() -> None:
    """Trains, and prints how many letters are right."""
    flags = parser("Trains an encoder and a decoder to turn words round.", 500).parse_args()
    rng = np.random.default_rng(0)
    tf.set_random_seed(1)

    word = tf.placeholder(tf.int32, [None, LENGTH], name="word")
    turned = tf.reverse(word, [1])
    embeddings = tf.get_variable("embeddings", [LETTERS, WIDTH])
    memory, state = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(WIDTH), tf.gather(embeddings, word), dtype=tf.float32, scope="encoder"
    )
    go = tf.fill([tf.shape(word)[0], 1], GO)
    given = tf.gather(embeddings, tf.concat([go, turned[:, :-1]], 1))
    outputs, _ = tf.nn.dynamic_rnn(AttentionCell(memory), given, initial_state=state, scope="decoder")
    logits = tf.layers.dense(outputs, LETTERS, name="letters")

    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=turned, logits=logits))
    optimizer = tf.train.AdamOptimizer(0.01)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
    train_step = optimizer.apply_gradients(zip(clipped, variables, strict=True))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 2, output_type=tf.int32), turned), tf.float32))

    def words() -> dict[tf.Tensor, np.ndarray]:
        return {word: rng.integers(1, LETTERS, (BATCH, LENGTH))}

    with session(flags.xla) as sess:
        fit(sess, train_step, loss, words, flags.steps)
        print(f"letter accuracy {sess.run(accuracy, words()):.4f}")


if __name__ == "__main__":
    main()
