"""Words as vectors by noise-contrastive estimation (Mikolov et al. 2013, Mnih and Kavukcuoglu 2013), on made-up topics.

python -m xlalite.examples.word2vec
"""

import numpy as np

import xlalite as tf
from xlalite.examples.training import fit, parser, session

WORDS = 1000
TOPICS = 20
WIDTH = 32
BATCH = 256
SAMPLED = 32


def main() -> None:
    """Trains, and prints how often the nearest word belongs to the same topic."""
    flags = parser("Trains word vectors on made-up topics.", 1000).parse_args()
    rng = np.random.default_rng(0)
    topics = rng.permutation(WORDS) % TOPICS
    words_of = [np.flatnonzero(topics == topic) for topic in range(TOPICS)]
    tf.set_random_seed(1)

    centers = tf.placeholder(tf.int32, [BATCH], name="centers")
    contexts = tf.placeholder(tf.int32, [BATCH, 1], name="contexts")
    embeddings = tf.Variable(tf.random_uniform([WORDS, WIDTH], -1.0, 1.0), name="embeddings")
    weights = tf.Variable(tf.truncated_normal([WORDS, WIDTH], stddev=WIDTH**-0.5), name="nce_weights")
    biases = tf.Variable(tf.zeros([WORDS]), name="nce_biases")
    seen = tf.nn.embedding_lookup(embeddings, centers)
    loss = tf.reduce_mean(
        tf.nn.nce_loss(weights, biases, labels=contexts, inputs=seen, num_sampled=SAMPLED, num_classes=WORDS)
    )
    train_step = tf.train.AdagradOptimizer(1.0).minimize(loss)
    unit = tf.nn.l2_normalize(embeddings, 1)
    _, nearest = tf.nn.top_k(tf.matmul(unit, unit, transpose_b=True), 2)

    def pairs() -> dict[tf.Tensor, np.ndarray]:
        """Words and others of their topics."""
        chosen = rng.integers(0, WORDS, BATCH)
        others = [words_of[topics[word]][rng.integers(len(words_of[topics[word]]))] for word in chosen]
        return {centers: chosen, contexts: np.array(others)[:, None]}

    with session(flags.xla) as sess:
        fit(sess, train_step, loss, pairs, flags.steps)
        neighbours = sess.run(nearest)[:, 1]
        print(f"neighbours of the same topic {(topics[neighbours] == topics).mean():.4f}")


if __name__ == "__main__":
    main()
