"""`tf.summary`: operations that make summaries of tensors, under tags that follow the name scopes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32, string
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.math import cast
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node


def scalar(name: str, tensor: Any, collections: Sequence[Any] | None = None, family: str | None = None) -> Tensor:
    """A summary of one number."""
    with _tagged(name, family) as (tag, scope):
        made = node("ScalarSummary", [_text(tag, "tags"), convert_to_tensor(tensor)], None, scope)
    return _collected(made, collections)


def histogram(name: str, values: Any, collections: Sequence[Any] | None = None, family: str | None = None) -> Tensor:
    """A summary of how numbers are distributed."""
    with _tagged(name, family) as (tag, scope):
        made = node("HistogramSummary", [_text(tag, "tag"), convert_to_tensor(values)], None, scope)
    return _collected(made, collections)


def image(
    name: str,
    tensor: Any,
    max_outputs: int = 3,
    collections: Sequence[Any] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of the first few images, `[batch, height, width, channels]`."""
    with _tagged(name, family) as (tag, scope):
        inputs = [_text(tag, "tag"), convert_to_tensor(tensor)]
        made = node("ImageSummary", inputs, {"max_images": max_outputs}, scope)
    return _collected(made, collections)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[Any] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of the first few sounds, `[batch, frames]` or `[batch, frames, channels]`, of numbers of -1 to 1."""
    with _tagged(name, family) as (tag, scope):
        inputs = [_text(tag, "tag"), cast(tensor, float32), cast(sample_rate, float32)]
        made = node("AudioSummaryV2", inputs, {"max_outputs": max_outputs}, scope)
    return _collected(made, collections)


def text(name: str, tensor: Any, collections: Sequence[Any] | None = None) -> Tensor:
    """A summary of strings."""
    from xlalite.messages.classes import CLASSES

    with _tagged(name, None) as (tag, scope):
        metadata = CLASSES["SummaryMetadata"](plugin_data={"plugin_name": "text"}).SerializeToString()
        inputs = [_text(tag, "tag"), convert_to_tensor(tensor, string), constant(metadata, string)]
        made = node("TensorSummaryV2", inputs, None, scope)
    return _collected(made, collections)


def merge(inputs: Sequence[Any], collections: Sequence[Any] | None = None, name: str | None = None) -> Tensor:
    """All values of several summaries in one."""
    made = node("MergeSummary", [convert_to_tensor(each) for each in inputs], None, name or "Merge/MergeSummary")
    get_default_graph().add_to_collections(collections, made)
    return made


def merge_all(key: Any = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """All collected summaries in one; None when there are none."""
    collected = get_default_graph().get_collection(key, scope)
    return merge(collected, name=name) if collected else None


def get_summary_description(node_def: Any) -> str:
    """The description that a summary was given: none."""
    return ""


@contextmanager
def _tagged(name: str, family: str | None) -> Iterator[tuple[str, str]]:
    """The tag, and the scope of the operation."""
    cleaned = re.sub(r"[^-/\w.]", "_", name).lstrip("/")
    group = None if family is None else re.sub(r"[^-/\w.]", "_", family)
    with get_default_graph().name_scope(cleaned if group is None else f"{group}/{cleaned}") as scope:
        tag = scope.rstrip("/")
        yield (tag if group is None else f"{group}/{tag}"), scope


def _text(value: str, name: str) -> Tensor:
    return constant(value, string, name=name)


def _collected(made: Tensor, collections: Sequence[Any] | None) -> Tensor:
    get_default_graph().add_to_collections([GraphKeys.SUMMARIES] if collections is None else collections, made)
    return made
