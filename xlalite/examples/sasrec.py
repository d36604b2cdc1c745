"""Recommendations from sessions by self-attention (after Kang and McAuley 2018), on shoppers who do not exist.

python -m xlalite.examples.sasrec
"""

import numpy as np

import xlalite as tf
from xlalite.examples.attention import block
from xlalite.examples.synthetic_sessions import ITEMS, LENGTH, Shoppers, loss_and_recall
from xlalite.examples.training import fit, parser, session

BATCH = 64
WIDTH = 64
HEADS = 2
BLOCKS = 2


def main() -> None:
    """Trains, and prints how often the next item is among the five first recommendations."""
    flags = parser("Trains SASRec on synthetic sessions.", 400).parse_args()
    shoppers = Shoppers()
    tf.set_random_seed(1)

    items = tf.placeholder(tf.int32, [None, LENGTH], name="items")
    rate = tf.placeholder_with_default(0.0, [], name="dropout")
    embeddings = tf.get_variable("embeddings", [ITEMS, WIDTH], initializer=tf.random_normal_initializer(stddev=0.1))
    places = tf.get_variable("places", [LENGTH - 1, WIDTH], initializer=tf.random_normal_initializer(stddev=0.1))
    x = tf.nn.embedding_lookup(embeddings, items[:, :-1]) + places
    # Nobody may look at what comes later.
    mask = tf.constant(np.tril(np.ones((LENGTH - 1, LENGTH - 1), np.float32)))
    for number in range(BLOCKS):
        x = block(x, mask, HEADS, rate, f"block{number}")
    logits = tf.tensordot(x, embeddings, [[2], [1]])

    wanted = items[:, 1:]
    counts = tf.cast(tf.not_equal(wanted, 0), tf.float32)
    loss, recall = loss_and_recall(logits, wanted, counts)
    train_step = tf.train.AdamOptimizer(0.003).minimize(loss)

    with session(flags.xla) as sess:
        fit(sess, train_step, loss, lambda: {items: shoppers.sessions(BATCH)[0], rate: 0.1}, flags.steps)
        print(f"recall at 5 {sess.run(recall, {items: shoppers.sessions(BATCH)[0]}):.4f}")


if __name__ == "__main__":
    main()
