"""A masked language model in BERT's manner (Devlin et al. 2018), on rows of numbers that count on.

python -m xlalite.examples.masked_lm
"""

import numpy as np

import xlalite as tf
from xlalite.examples.attention import block
from xlalite.examples.training import fit, parser, session

BATCH = 64
WIDTH = 64
HEADS = 4
BLOCKS = 2
LENGTH = 16
TOKENS = 32
MASK = 0
MASKED_SHARE = 0.15


def main() -> None:
    """Trains, and prints how many of the masked tokens are found again."""
    flags = parser("Trains a masked language model on rows of numbers.", 500).parse_args()
    rng = np.random.default_rng(0)
    tf.set_random_seed(1)

    tokens = tf.placeholder(tf.int32, [None, LENGTH], name="tokens")
    is_masked = tf.placeholder(tf.bool, [None, LENGTH], name="is_masked")
    rate = tf.placeholder_with_default(0.0, [], name="dropout")
    seen = tf.where(is_masked, tf.fill(tf.shape(tokens), MASK), tokens)
    embeddings = tf.get_variable("embeddings", [TOKENS, WIDTH], initializer=tf.truncated_normal_initializer(stddev=0.1))
    places = tf.get_variable("places", [LENGTH, WIDTH], initializer=tf.truncated_normal_initializer(stddev=0.1))
    x = tf.gather(embeddings, seen) + places
    for number in range(BLOCKS):
        x = block(x, tf.ones([LENGTH, LENGTH]), HEADS, rate, f"block{number}")
    x = tf.layers.dense(x, WIDTH, activation=tf.nn.relu, name="head")
    logits = tf.tensordot(x, embeddings, [[2], [1]]) + tf.get_variable("bias", [TOKENS])

    counts = tf.cast(is_masked, tf.float32)
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tokens, logits=logits)
    loss = tf.reduce_sum(each * counts) / tf.reduce_sum(counts)
    step = tf.train.get_or_create_global_step()
    rate_of_learning = tf.train.polynomial_decay(0.004, step, flags.steps, 0.0)
    train_step = tf.train.AdamOptimizer(rate_of_learning).minimize(loss, global_step=step)
    found = tf.cast(tf.equal(tf.argmax(logits, 2, output_type=tf.int32), tokens), tf.float32)
    accuracy = tf.reduce_sum(found * counts) / tf.reduce_sum(counts)

    def sentences() -> dict[tf.Tensor, np.ndarray]:
        """Each counts on by a step of its own, and begins anew when the tokens end."""
        starts, steps = rng.integers(0, TOKENS - 1, (BATCH, 1)), rng.integers(1, 4, (BATCH, 1))
        masked = rng.random((BATCH, LENGTH)) < MASKED_SHARE
        masked[:, 0] = True
        return {tokens: 1 + (starts + steps * np.arange(LENGTH)) % (TOKENS - 1), is_masked: masked}

    with session(flags.xla) as sess:
        fit(sess, train_step, loss, lambda: {**sentences(), rate: 0.1}, flags.steps)
        print(f"masked accuracy {sess.run(accuracy, sentences()):.4f}")


if __name__ == "__main__":
    main()
