"""Texts as numbers: words of a vocabulary, distances of sequences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from xlalite.files.gfile import translated_errors
from xlalite.files.replacing import write_whole
from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.errors import DataError
from xlalite.ops.functions.host_functions import py_func
from xlalite.ops.functions.sparse import as_sparse

_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Tensor:
    """How many elements to insert, remove or replace in each sequence along the last dimension of sparse tensors.

    Args:
        hypothesis: Sequences.
        truth: Those that they should be.
        normalize: Whether to divide by the length of the true one; without any, the distance is infinite, or 0.
        name: Name of the operation.
    """
    given = [as_sparse(each) for each in (hypothesis, truth)]

    def distances(*parts: Any) -> Any:
        batch = tuple(np.maximum(parts[2], parts[5])[:-1])
        one, other = _sequences(*parts[:2]), _sequences(*parts[3:5])
        result = np.zeros(batch, np.float32)
        for at in np.ndindex(*batch):
            wanted = other.get(at, [])
            result[at] = steps = _distance(one.get(at, []), wanted)
            if normalize:
                result[at] = steps / len(wanted) if wanted else np.inf if steps else 0
        return result

    inputs = [part for each in given for part in (each.indices, each.values, each.dense_shape)]
    result: Tensor = py_func(distances, inputs, float32, stateful=False, name=name)
    rank = given[0].dense_shape.shape.dims
    if rank and rank[0] is not None:
        result.set_shape(TensorShape([None] * (rank[0] - 1)))
    return result


def _sequences(indices: Any, values: Any) -> dict[tuple[int, ...], list[Any]]:
    found: dict[tuple[int, ...], list[Any]] = {}
    for place, value in zip(indices.tolist(), values.tolist(), strict=True):
        found.setdefault(tuple(place[:-1]), []).append(value)
    return found


def _distance(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Levenshtein's distance, a row of the table at a time."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


class Vocabulary:
    """Words by number, in the order in which they came; 0 stands for all others."""

    def __init__(self) -> None:
        self._mapping: dict[str, int] = {"<UNK>": 0}
        self._fixed = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Takes in no more words."""
        self._fixed = freeze

    def get(self, category: str) -> int:
        """The number of a word, a new one unless the vocabulary is fixed."""
        if category not in self._mapping and not self._fixed:
            self._mapping[category] = len(self._mapping)
        return self._mapping.get(category, 0)

    def reverse(self, class_id: int) -> str:
        """The word with a number."""
        return list(self._mapping)[class_id]


class VocabularyProcessor:
    """`tf.contrib.learn.preprocessing.VocabularyProcessor`: documents as rows of word numbers, all of one length."""

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: Vocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[Sequence[str]]] | None = None,
    ) -> None:
        """How long rows are, how often a word must occur more than to count, and what splits documents."""
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = vocabulary or Vocabulary()
        self._tokens = tokenizer_fn or (lambda documents: (_WORD.findall(each) for each in documents))

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Takes in the words of documents, and then no more."""
        counts: dict[str, int] = {}
        for words in self._tokens(raw_documents):
            for word in words:
                counts[word] = counts.get(word, 0) + 1
        for word, count in counts.items():
            if count > self.min_frequency or not self.min_frequency:
                self.vocabulary_.get(word)
        self.vocabulary_.freeze()
        return self

    def transform(self, raw_documents: Iterable[str]) -> Iterator[np.ndarray[Any, Any]]:
        """The rows."""
        for words in self._tokens(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            numbers = [self.vocabulary_.get(word) for word in words][: self.max_document_length]
            row[: len(numbers)] = numbers
            yield row

    def fit_transform(self, raw_documents: Sequence[str], unused_y: Any = None) -> Iterator[np.ndarray[Any, Any]]:
        """The rows of the documents whose words are taken in."""
        return self.fit(raw_documents).transform(raw_documents)

    def save(self, filename: str) -> None:
        """Writes what rows need, without what splits documents, into a file of JSON."""
        words = list(self.vocabulary_._mapping)
        state = {"length": self.max_document_length, "frequency": self.min_frequency, "words": words}
        write_whole(filename, json.dumps(state).encode())

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """The processor that was saved; it takes in no more words.

        Raises:
            DataError: The file is none that `save` wrote.
        """
        with translated_errors(filename), open(filename, "rb") as file:
            text = file.read()
        try:
            state = json.loads(text)
            vocabulary = Vocabulary()
            vocabulary._mapping = {str(word): number for number, word in enumerate(state["words"])}
            processor = cls(int(state["length"]), int(state["frequency"]), vocabulary)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{filename}: not a saved VocabularyProcessor") from error
        vocabulary.freeze()
        return processor

    def reverse(self, documents: Iterable[Sequence[int]]) -> Iterator[str]:
        """The words of rows."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(int(number)) for number in row)
