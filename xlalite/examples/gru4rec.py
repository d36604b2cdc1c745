"""Recommendations from sessions by a recurrent network (after Hidasi et al. 2016), on shoppers who do not exist.

python -m xlalite.examples.gru4rec
"""

import numpy as np

import xlalite as tf
from xlalite.examples.synthetic_sessions import ITEMS, LENGTH, Shoppers, loss_and_recall
from xlalite.examples.training import fit, parser, session

BATCH = 64
WIDTH = 64


def main() -> None:
    """Trains, and prints how often the next item is among the five first recommendations."""
    flags = parser("Trains GRU4Rec on synthetic sessions.", 400).parse_args()
    shoppers = Shoppers()
    tf.set_random_seed(1)

    items = tf.placeholder(tf.int32, [None, LENGTH], name="items")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    embeddings = tf.get_variable("embeddings", [ITEMS, WIDTH])
    seen = tf.nn.embedding_lookup(embeddings, items[:, :-1])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(WIDTH), seen, sequence_length=lengths - 1, dtype=tf.float32)
    logits = tf.layers.dense(outputs, ITEMS, name="scores")

    wanted = items[:, 1:]
    counts = tf.cast(tf.sequence_mask(lengths - 1, LENGTH - 1), tf.float32)
    loss, recall = loss_and_recall(logits, wanted, counts)
    train_step = tf.train.AdamOptimizer(0.01).minimize(loss)

    def next_feeds() -> dict[tf.Tensor, np.ndarray]:
        return dict(zip((items, lengths), shoppers.sessions(BATCH), strict=True))

    with session(flags.xla) as sess:
        fit(sess, train_step, loss, next_feeds, flags.steps)
        print(f"recall at 5 {sess.run(recall, next_feeds()):.4f}")


if __name__ == "__main__":
    main()
