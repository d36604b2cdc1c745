"""Functions of elements, of the last dimensions and of one dimension: the examples come in front."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.op_spec import OpGroup
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array
from xlalite.ops.functions import array
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node
from xlalite.tracing.batching.batch import Batch, Part, batches, copied, dims_of, known


@batches(OpGroup.ELEMENTWISE.value)
def elementwise(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """Operands of different ranks are aligned behind the examples; equal ones are all repeated."""
    shapes = [tensor.shape.known_dims() for tensor in op.inputs]
    if len({*shapes}) == 1:
        found = copied(op, [batch.front(part) for part in parts])
    else:
        rank = max(map(len, shapes))
        found = copied(op, [_aligned(batch, part, rank) for part in parts])
    return [Part(tensor, 0) for tensor in found]


@batches("Select")
def select(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """A vector of conditions chooses rows."""
    condition, *sides = [batch.front(part) for part in parts]
    dims = condition.shape.known_dims()
    wide = array.reshape(condition, [*dims, *[1] * (sides[0].shape.rank - len(dims))])  # type: ignore[operator]
    return [Part(node("SelectV2", [wide, *sides]), 0)]


@batches("Identity", "StopGradient", "PreventGradient", "Cast", "ZerosLike", "OnesLike", "IdentityN", "EnsureShape")
def each_by_itself(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    if op.type in ("IdentityN", "EnsureShape"):
        return parts
    return [Part(copied(op, [parts[0].tensor])[0], parts[0].axis)]


@batches(
    *("ComplexAbs", "Real", "Imag", "Cholesky", "MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant", "Qr"),
    *("SelfAdjointEigV2", "Svd", "FFT", "IFFT", "RFFT", "IRFFT", "FFT2D", "IFFT2D", "RFFT2D", "IRFFT2D", "FFT3D"),
    *("IFFT3D", "RFFT3D", "IRFFT3D", "Softmax", "LogSoftmax", "MatrixBandPart", "MatrixDiag", "MatrixDiagPart"),
    *("MatrixDiagV2", "MatrixDiagV3", "MatrixDiagPartV2", "MatrixDiagPartV3", "TopKV2", "TopK", "_SortRows"),
    *("NthElement", "Bucketize"),
)
def of_last_dimensions(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """What comes before the last dimensions are examples already."""
    return [Part(tensor, 0) for tensor in copied(op, [batch.front(parts[0]), *_same(parts[1:])])]


@batches("MatrixSolve", "MatrixTriangularSolve", "TridiagonalSolve", "MatrixSetDiag")
def of_equal_batches(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    return [Part(tensor, 0) for tensor in copied(op, [batch.front(part) for part in parts])]


@batches("Sum", "Prod", "Max", "Min", "All", "Any", "Mean", "ArgMax", "ArgMin", "Cumsum", "Cumprod", "ReverseV2")
@batches("CumulativeLogsumexp", "_Cummax", "_Cummin")
def along_dimensions(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """The dimensions are one further."""
    name = "dimension" if op.type in ("ArgMax", "ArgMin") else "axis"
    axes = _counted(known(op, name), len(op.inputs[0].shape.known_dims())) + 1
    found = copied(op, [batch.front(parts[0]), constant(axes.astype(np.int32))])
    return [Part(tensor, 0) for tensor in found]


@batches("Roll")
def roll(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    if parts[1].axis is not None:
        return batch.one_by_one(op, parts)
    axes = _counted(known(op, "axis"), len(dims_of(op))) + 1
    return [Part(copied(op, [batch.front(parts[0]), parts[1].tensor, constant(axes.astype(np.int32))])[0], 0)]


@batches("MatMul")
def matrix_product(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """With one matrix for all examples, the rows of all of them are multiplied at once."""
    turns = [bool(op.get_attr(name)) for name in ("transpose_a", "transpose_b")]
    left, right = parts
    if right.axis is None and not turns[0]:
        rows, columns = dims_of(op)
        flat = array.reshape(batch.front(left), [batch.size * rows, op.inputs[0].shape.known_dims()[1]])
        return [Part(array.reshape(copied(op, [flat, right.tensor])[0], [batch.size, rows, columns]), 0)]
    sides = []
    for part, turned in zip(parts, turns, strict=True):
        rank = 2 if part.axis is None else 3
        tensor = part.tensor if part.axis is None else batch.front(part)
        sides.append(array.transpose(tensor, [*range(rank - 2), rank - 1, rank - 2]) if turned else tensor)
    return [Part(node("BatchMatMulV2", sides, {"adj_x": False, "adj_y": False}), 0)]


@batches("BatchMatMulV2")
def batch_matrix_product(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    rank = max(len(tensor.shape.known_dims()) for tensor in op.inputs)
    return [Part(tensor, 0) for tensor in copied(op, [_aligned(batch, part, rank) for part in parts])]


@batches("Einsum")
def einsum(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """One more letter for the examples."""
    equation = str(op.get_attr("equation")).replace(" ", "")
    terms, arrow, result = equation.partition("->")
    if not arrow:
        letters = terms.replace(",", "").replace("...", "")
        result = "..." * ("..." in terms) + "".join(sorted(each for each in letters if letters.count(each) == 1))
    letter = next(each for each in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if each not in equation)
    named = [term if part.axis is None else letter + term for term, part in zip(terms.split(","), parts, strict=True)]
    given = [part.tensor if part.axis is None else batch.front(part) for part in parts]
    return [Part(copied(op, given, equation=f"{','.join(named)}->{letter}{result}")[0], 0)]


def _aligned(batch: Batch, part: Part, rank: int) -> Tensor:
    if part.axis is None:
        return part.tensor
    first, *rest = batch.front(part).shape.known_dims()
    return array.reshape(batch.front(part), [first, *[1] * (rank - len(rest)), *rest])


def _same(parts: Sequence[Part]) -> list[Tensor]:
    assert all(part.axis is None for part in parts), "sizes are the same for all examples"
    return [part.tensor for part in parts]


def _counted(axes: Array, rank: int) -> Array:
    """Dimensions counted from the front."""
    return np.where(axes < 0, axes + rank, axes)
