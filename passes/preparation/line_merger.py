"""Makes a line of few elements and what is around it one dimension where windows are cut out at places known late."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.gathering import GatherAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.expander import OpExpander

_LONG = 32
"""Elements of two vectors, about: lines of so many fill vectors by themselves."""

_LEAST_ELEMENTS = 1 << 10
"""Of the window: where it begins is computed anew."""


@dataclass(frozen=True, slots=True)
class LineMerger(OpExpander):
    """dynamic-slice(x[h,w,3], i, j, 0) -> reshape(dynamic-slice(reshape(x)[h,w*3], i, 3 * clamp(0, j, most))).

    Neighbouring elements then lie in vectors, however few of them a line has. The same is done for updates and for
    gathers of windows. Declines for windows of few elements, and where no window has several whole lines.
    """

    name: ClassVar[str] = "line-merger"
    opcodes: ClassVar[frozenset[str]] = frozenset({"dynamic-slice", "dynamic-update-slice", "gather"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether lines are merged."""
        operand = instruction.operand(0).shape
        window, places = _window(instruction), instruction.operands[-1].shape.dtype
        if operand.is_dynamic or instruction.shape.is_dynamic or math.prod(window) < _LEAST_ELEMENTS:
            return False
        dim = _dimension(operand.dims, window)
        if dim is None or places not in (DType.S32, DType.S64) or math.prod(operand.dims[dim:]) >= 1 << 31:
            return False
        if instruction.opcode != "gather":
            return True
        attrs: GatherAttrs = instruction.attrs
        offsets = attrs.offset_dims[dim - len(operand.dims) :]
        are_apart = any(d in attrs.dropped_dims for d in range(dim, len(operand.dims)))
        return not are_apart and offsets == (*range(offsets[0], offsets[0] + len(offsets)),)

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the same of fewer dimensions."""
        array, *others = operands
        window = _window(instruction)
        dim = _dimension(array.dims, window)
        assert dim is not None, "may_expand asked"
        lines = _Lines(builder, dim, array.dims[dim] - window[dim], math.prod(array.dims[dim + 1 :]))
        if instruction.opcode == "gather":
            result = lines.gathered(instruction.attrs, array, others[0])
        elif instruction.opcode == "dynamic-slice":
            result = builder.dynamic_slice(lines.merged(array), lines.starts(others), lines.sizes(window))
        else:
            update, *starts = others
            merged = lines.merged(array), lines.merged(update), *lines.starts(starts)
            result = builder.op("dynamic-update-slice", merged)
        return builder.reshape(result, instruction.shape.dims)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines of arrays with dimensions from one on merged.

    Attributes:
        builder: Builds all.
        dim: The dimension that windows cut, in front of those of a line.
        most: Where a window may begin along it at most.
        length: Elements of a line.
    """

    builder: Builder
    dim: int
    most: int
    length: int

    def sizes(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Some sizes with those from the dimension on as one."""
        return (*dims[: self.dim], math.prod(dims[self.dim :]))

    def merged(self, array: Handle) -> Handle:
        return self.builder.reshape(array, self.sizes(array.dims))

    def starts(self, starts: Sequence[Handle]) -> tuple[Handle, ...]:
        return (*starts[: self.dim], self._scaled(starts[self.dim]))

    def _scaled(self, start: Handle) -> Handle:
        low, high = (self.builder.constant(number, start.dtype) for number in (0, self.most))
        return self.builder.op("clamp", (low, start, high)) * self.length

    def gathered(self, attrs: GatherAttrs, array: Handle, indices: Handle) -> Handle:
        """Of the index vectors, components for whole dimensions are left out: they begin at 0."""
        vector = attrs.index_vector_dim
        components = []
        for number, dim in enumerate(attrs.start_index_map):
            if dim <= self.dim:
                one = indices if vector == len(indices.dims) else self._component(indices, vector, number)
                components.append(self._scaled(one) if dim == self.dim else one)
        count = len(array.dims) - self.dim
        merged = replace(
            attrs,
            offset_dims=attrs.offset_dims[: 1 - count],
            start_index_map=tuple(dim for dim in attrs.start_index_map if dim <= self.dim),
            slice_sizes=self.sizes(attrs.slice_sizes),
        )
        places = components[0] if len(components) == 1 else self.builder.concatenate(components, vector)
        return self.builder.op("gather", (self.merged(array), places), merged)

    def _component(self, indices: Handle, vector: int, number: int) -> Handle:
        starts, limits = [0] * len(indices.dims), list(indices.dims)
        starts[vector], limits[vector] = number, number + 1
        return self.builder.slice(indices, starts, limits)


def _window(instruction: HloInstruction) -> tuple[int, ...]:
    """The sizes of what is cut out, or put in, along each dimension of the array."""
    if instruction.opcode == "gather":
        return tuple(instruction.attrs.slice_sizes)
    return instruction.operand(1).shape.dims if instruction.opcode == "dynamic-update-slice" else instruction.shape.dims


def _dimension(dims: Sequence[int], window: Sequence[int]) -> int | None:
    """The last dimension that a window cuts, if whole lines of few elements are inside of it."""
    found = max((dim for dim, size in enumerate(dims) if window[dim] != size), default=None)
    if found is None or window[found] < 2 or not 1 < math.prod(dims[found + 1 :]) < _LONG:
        return None
    return found
