"""Texts as numbers, and normal distributions."""

import numpy as np
import pytest
from scipy import stats

import xlalite as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


def test_distances_of_sequences():
    one = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, 5], [3, 2])
    true = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0]], [1, 3, 2, 4], [3, 3])
    np.testing.assert_array_equal(_run(tf.edit_distance(one, true, normalize=False)), [1, 1, 1])
    np.testing.assert_allclose(_run(tf.edit_distance(one, true)), [1 / 3, 1, np.inf])


def test_documents_become_rows_of_word_numbers():
    processor = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
    rows = np.array(list(processor.fit_transform(["the cat sat", "the dog"])))
    np.testing.assert_array_equal(rows, [[1, 2, 3, 0], [1, 4, 0, 0]])
    np.testing.assert_array_equal(list(processor.transform(["a dog sat on the mat"])), [[0, 4, 3, 0]])
    assert len(processor.vocabulary_) == 5
    assert list(processor.reverse(rows[1:])) == ["the dog <UNK> <UNK>"]


def test_normal_distributions_agree_with_scipy():
    loc, scale, x = np.float32([0, 1]), np.float32([1, 2.5]), np.float32([0.3, -2])
    mine, theirs = tf.distributions.Normal(loc, scale), stats.norm(loc, scale)
    result = _run([mine.prob(x), mine.log_prob(x), mine.cdf(x), mine.entropy(), mine.quantile([0.2, 0.7])])
    expected = [theirs.pdf(x), theirs.logpdf(x), theirs.cdf(x), theirs.entropy(), theirs.ppf([0.2, 0.7])]
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    drawn = _run(mine.sample(20000, seed=1))
    assert drawn.shape == (20000, 2)
    np.testing.assert_allclose(drawn.mean(0), loc, atol=0.06)
    other = tf.distributions.Normal(0.5, 2.0)
    numbers = _run(tf.distributions.kl_divergence(mine, other))
    np.testing.assert_allclose(numbers, np.log(2 / scale) + (scale**2 + (loc - 0.5) ** 2) / 8 - 0.5, rtol=1e-5)


def test_texts_and_bytes():
    assert tf.compat.as_bytes("ä") == "ä".encode()
    assert tf.compat.as_str(b"a") == tf.compat.as_text("a") == "a"
    assert tf.compat.as_str_any(3) == "3"


def test_vocabularies_are_saved_and_read_again(tmp_path):
    made = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
    documents = ["the cat sat", "the döner sat on it all"]
    rows = np.array(list(made.fit_transform(documents)))
    made.save(str(tmp_path / "vocab"))
    read = tf.contrib.learn.preprocessing.VocabularyProcessor.restore(str(tmp_path / "vocab"))
    np.testing.assert_array_equal(np.array(list(read.transform(documents))), rows)
    assert len(read.vocabulary_) == 8
    assert list(read.reverse([rows[0]])) == ["the cat sat <UNK>"]
    assert next(iter(read.transform(["dogs sat"]))).tolist() == [0, 3, 0, 0]


def test_what_is_no_saved_vocabulary_is_refused(tmp_path):
    restore = tf.contrib.learn.preprocessing.VocabularyProcessor.restore
    for number, text in enumerate(["", "[]", "{}", '{"length": "x", "frequency": 0, "words": []}', "\xff"]):
        path = tmp_path / str(number)
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(tf.hlo.errors.DataError, match="not a saved VocabularyProcessor"):
            restore(str(path))
    with pytest.raises(tf.errors.NotFoundError):
        restore(str(tmp_path / "missing"))
