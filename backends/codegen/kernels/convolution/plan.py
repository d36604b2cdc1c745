"""How a convolution in groups is walked: what lanes run along, and what is summed together."""

from __future__ import annotations

import math
from collections.abc import Mapping

from xlalite.backends.codegen.arrays.index import Affine
from xlalite.backends.codegen.elements.dot import accumulator_dtype
from xlalite.backends.codegen.llvm import TargetInfo, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.window import WindowDimension

SPELT_OUT = 8
"""Elements along the last dimension of a window, and neighbours at a border, beyond which there is a loop."""

_FEW_INPUTS = 4
"""Input features of a group up to which those of a vector of groups are read at once."""

_TOGETHER = 10
"""Results of a long window that are summed together at most."""

_CHAINS, _SHORT_LINE = 8, 2
"""Vectors of sums that are enough to be summed together where lanes run along space, and those of a line up to which
several lines are: depthwise, 384 features of [4,14,14] by 7x7 take 600 us of one core so, line by line 790; 96 of
[57,57] take 5 % longer. With strides, their loads take longer than they would wait.
"""

_MOST_LINES = 64
"""Lines of a plane that are summed one after the other at most, where each line of the input is read once: 384 features
of [8,14,14] by 7x7 take 555 us of one core so, 1,180 where each result reads what it sees; 96 of [57,57] 270 and 465.
"""

_MOST_IN_ORDER = 50
"""How many vectors are multiplied for a line of the input: 100 are 15 % quicker, and take much longer to compile."""

_LEAST_LINES, _TASKS = 8, 8
"""Heights of the window that parts of a plane have at least, and parts that are enough."""

_MUCH_WORK = 16
"""Elements of a window from which on parts of lines come from memory before they are needed: 3x3 of [8,64,112,112]
takes 15 % longer in two parts.
"""

_FEW_VECTORS = 4
"""Vectors of a line that are spelt out if each line of the input is read once."""

_OUTPUTS = 4
"""Output features of a group that are summed together where lanes run along space."""


@dataclass(frozen=True, slots=True)
class ConvolutionPlan:
    """How a convolution is walked.

    Attributes:
        lanes: Lanes of a vector, along the minor dimension of the result.
        step: Results of a vector: all lanes, or as many as whole groups fill.
        inputs: Input features of a group.
        outputs: Output features of a group.
        per_vector: How many groups a vector of features has; 0 if lanes run along space.
        along: Number of the last spatial dimension, along which neighbours are summed together.
        is_long: Whether the window is long along it, and so walked through by a loop.
        across: Number of a spatial dimension along which results are summed together, too; -1 if there is none.
        lines: How many of them.
        in_order: How many vectors of a line are summed together where lines follow one another, so that one of the
            input is read once for all that see it; 0 if they do not.
        folds: Whether lanes run along the window instead, and are added together in the end.
        features_first: Whether input features lie further apart than the elements of a window.
        masks: Whether reading a vector under a mask costs nothing, whatever its type.
    """

    lanes: int
    step: int
    inputs: int
    outputs: int
    per_vector: int
    along: int
    is_long: bool
    across: int
    lines: int
    in_order: int
    folds: bool
    features_first: bool
    masks: bool

    @property
    def together(self) -> int:
        """Output features that are summed together where lanes run along space."""
        return 1 if self.per_vector else _together(self.outputs)

    @property
    def has_few_inputs(self) -> bool:
        """Whether a group has several input features for its output feature, but few."""
        return self.outputs == 1 < self.inputs <= _FEW_INPUTS


@dataclass(frozen=True, slots=True)
class WindowLine:
    """A line along a long window.

    Attributes:
        middle: The offsets of the line along other dimensions, where no neighbour sees padding along these.
        anywhere: The same where neighbours may.
        inside: Whether the line is such; None if all are.
        feature: The input feature; None for all of a group.
    """

    middle: Mapping[int, Affine]
    anywhere: Mapping[int, Affine]
    inside: Value | None
    feature: Affine | None


def walk_of(convolution: HloInstruction, target: TargetInfo) -> ConvolutionPlan:
    """The plan for a convolution without holes in its input, whose minor dimension is features or space."""
    attrs: ConvolutionAttrs = convolution.attrs
    labels, dims = attrs.dim_labels, convolution.shape.dims
    lhs, rhs = convolution.operands
    outputs = dims[labels.output_feature] // max(attrs.feature_group_count, attrs.batch_group_count)
    along = max(range(len(labels.output_spatial)), key=lambda number: labels.output_spatial[number])
    is_long = attrs.window.dimensions[along].size > SPELT_OUT
    by_features = labels.output_feature == len(dims) - 1
    kept = accumulator_dtype(lhs.shape.dtype, rhs.shape.dtype, convolution.shape.dtype)
    lanes = target.lanes(max(8, kept.component.bits if kept.is_complex else kept.bits))
    folds = is_long and not by_features and dims[labels.output_spatial[along]] <= SPELT_OUT
    across = _across(attrs, dims, along) if by_features and is_long else -1
    lines = dims[labels.output_spatial[across]] if across >= 0 else 1
    in_order = 0 if by_features or outputs > 1 else _in_order(convolution, along, -(-dims[-1] // lanes), target)
    if in_order:
        across = 1 - along
        lines = _lines_of_task(dims[labels.output_spatial[across]], attrs.window.dimensions[across].size, dims)
    elif not by_features and not is_long and dims[-1] <= _SHORT_LINE * lanes:
        across, lines = _lines(attrs, dims, along, -(-dims[-1] // lanes) * _together(outputs))
    if by_features and is_long and dims[-1] >= 2 * lanes and outputs == 1:
        # Two chains of sums, and pixels in longer pieces, where that leaves vectors for several threads.
        lanes *= 2 if across < 0 or -(-dims[-1] // (2 * lanes)) % 2 == 0 else 1
    lanes = min(lanes, 1 << max((attrs.window.dimensions[along].size if folds else dims[-1]) - 1, 0).bit_length())
    per_vector = max(1, lanes // outputs) if by_features else 0
    has_vectors_of_groups = by_features and outputs > 1 and attrs.batch_group_count == 1
    return ConvolutionPlan(
        lanes,
        min(lanes, per_vector * outputs) if by_features else lanes,
        rhs.shape.dims[labels.kernel_input_feature],
        outputs,
        per_vector,
        along,
        is_long,
        across,
        lines,
        in_order,
        folds,
        (labels.input_feature < max(labels.input_spatial) and not has_vectors_of_groups) or not by_features,
        target.has("avx512bw"),
    )


def _in_order(convolution: HloInstruction, along: int, vectors: int, target: TargetInfo) -> int:
    """How many vectors of a line are summed together where each line of the input is read once; 0 if it is not."""
    window = convolution.attrs.window.dimensions
    has_inputs = convolution.operand(1).shape.dims[convolution.attrs.dim_labels.kernel_input_feature] > 1
    if len(window) != 2 or has_inputs or any(one.stride * one.rhs_dilate * one.lhs_dilate > 1 for one in window):
        return 0
    height, width = window[1 - along].size, window[along].size
    if not 1 < height <= SPELT_OUT >= width > 1:
        return 0
    most = min((target.vector_registers - 3) // height, _MOST_IN_ORDER // (height * width))
    if not target.has("avx512bw"):
        # Tiles at borders are written for themselves.
        return min(most, vectors) if vectors <= min(2 * most, _FEW_VECTORS) else 0
    if vectors > most and height * width < _MUCH_WORK:
        return 0
    least = -(-_CHAINS // height)
    return min(range(1, most + 1), key=lambda size: (-(-vectors // size) * max(size, least), size), default=0)


def _lines_of_task(size: int, height: int, dims: tuple[int, ...]) -> int:
    """Lines of a plane that a task computes: all, or parts where they are many or planes are few.

    The first lines of a part are read for the one before, too.
    """
    planes = math.prod(dims) // (size * dims[-1])
    most = min(_MOST_LINES, max(_LEAST_LINES * height, size * planes // _TASKS))
    return -(-size // -(-size // most))


def _across(attrs: ConvolutionAttrs, dims: tuple[int, ...], along: int) -> int:
    """Where the window is long and results few, as in the gradient of a kernel, the input is read once for all."""
    space = attrs.dim_labels.output_spatial
    others = [number for number in range(len(space)) if number != along]
    if not others or any(one.lhs_dilate > 1 for one in attrs.window.dimensions):
        return -1
    number = max(others, key=lambda number: attrs.dim_labels.input_spatial[number])
    return number if dims[space[along]] <= SPELT_OUT and dims[space[along]] * dims[space[number]] <= _TOGETHER else -1


def _lines(attrs: ConvolutionAttrs, dims: tuple[int, ...], along: int, vectors: int) -> tuple[int, int]:
    """Across what lines of few vectors, which would wait for one another's sums, are summed together, and how many."""
    space = attrs.dim_labels.output_spatial
    others = [number for number in range(len(space)) if number != along]
    most, window = _CHAINS // vectors, attrs.window.dimensions
    if most <= 1 or not others or window[along].stride > 1 or any(one.lhs_dilate > 1 for one in window):
        return -1, 1
    number = max(others, key=lambda number: space[number])
    size = dims[space[number]]
    lines = -(-size // -(-size // most))
    return (number, lines) if lines > 1 else (-1, 1)


def _together(outputs: int) -> int:
    return next(n for n in range(_OUTPUTS, 0, -1) if outputs % n == 0)


def spread_size(one: WindowDimension, size: int) -> int:
    """Size of a dimension of the input with the holes between its elements."""
    return (size - 1) * one.lhs_dilate + 1


def middle_of(one: WindowDimension, size: int, first: int, last: int) -> tuple[int, int]:
    """The part of a window in which no result from the first to the last sees padding of an input of a size."""
    begin = -(-(one.pad_low - first * one.stride) // one.rhs_dilate)
    end = (size - 1 + one.pad_low - last * one.stride) // one.rhs_dilate + 1
    begin = min(max(begin, 0), one.size)
    return begin, min(max(end, begin), one.size)
