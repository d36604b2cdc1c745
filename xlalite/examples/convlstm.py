"""The next image of a film by a convolutional LSTM (Shi et al. 2015): squares that move and bounce.

python -m xlalite.examples.convlstm
"""

from typing import Any

import numpy as np

import xlalite as tf
from xlalite.examples.training import fit, parser, session

BATCH = 16
SIZE = 16
LENGTH = 8
FEATURES = 16
SIDE = 4


class ConvLSTMCell(tf.nn.rnn_cell.RNNCell):
    """An LSTM whose products are convolutions."""

    @property
    def state_size(self) -> Any:
        """Two images with features."""
        shape = tf.TensorShape([SIZE, SIZE, FEATURES])
        return tf.nn.rnn_cell.LSTMStateTuple(shape, shape)

    @property
    def output_size(self) -> tf.TensorShape:
        """An image with features."""
        return tf.TensorShape([SIZE, SIZE, FEATURES])

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        """One image further."""
        gates = tf.layers.conv2d(tf.concat([inputs, state.h], 3), 4 * FEATURES, 3, padding="same", name="gates")
        i, f, o, g = tf.split(gates, 4, axis=3)
        c = tf.sigmoid(f + 1.0) * state.c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, tf.nn.rnn_cell.LSTMStateTuple(c, h)


def films(rng: np.random.Generator) -> np.ndarray:
    """`[BATCH, LENGTH + 1, SIZE, SIZE, 1]`: a square for each film, which turns back at the edges."""
    room = SIZE - SIDE
    starts, speeds = rng.integers(0, room, (2, BATCH)), rng.integers(1, 3, (2, BATCH))
    along = (starts[:, :, None] + speeds[:, :, None] * np.arange(LENGTH + 1)) % (2 * room)
    rows, columns = np.minimum(along, 2 * room - along)
    place = np.arange(SIZE)
    inside = [(place >= first[..., None]) & (place < first[..., None] + SIDE) for first in (rows, columns)]
    return np.asarray(inside[0][..., :, None] & inside[1][..., None, :], np.float32)[..., None]


def main() -> None:
    """Trains, and prints the error of the last image beside that of guessing that nothing moves."""
    flags = parser("Trains a convolutional LSTM to foretell moving squares.", 200).parse_args()
    rng = np.random.default_rng(0)
    tf.set_random_seed(1)

    film = tf.placeholder(tf.float32, [None, LENGTH + 1, SIZE, SIZE, 1], name="film")
    seen, wanted = film[:, :-1], film[:, 1:]
    outputs, _ = tf.nn.dynamic_rnn(ConvLSTMCell(), seen, dtype=tf.float32)
    flat = tf.reshape(outputs, [-1, SIZE, SIZE, FEATURES])
    logits = tf.reshape(tf.layers.conv2d(flat, 1, 3, padding="same", name="image"), tf.shape(wanted))
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits))
    train_step = tf.train.AdamOptimizer(0.01).minimize(loss)
    error = tf.reduce_mean(tf.square(tf.sigmoid(logits[:, -1]) - wanted[:, -1]))
    lazy_error = tf.reduce_mean(tf.square(seen[:, -1] - wanted[:, -1]))

    with session(flags.xla) as sess:
        fit(sess, train_step, loss, lambda: {film: films(rng)}, flags.steps)
        found, lazy = sess.run([error, lazy_error], {film: films(rng)})
        print(f"error {found:.5f}, of no movement {lazy:.5f}")


if __name__ == "__main__":
    main()
