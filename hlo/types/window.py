"""Windows: how a window moves over the dimensions of an array, for convolution and window reductions."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """The window along one dimension.

    Attributes:
        size: Number of window elements.
        stride: Distance of neighbouring window positions.
        pad_low: Elements added before the first one; negative removes.
        pad_high: Elements added after the last one; negative removes.
        lhs_dilate: Base dilation: distance of neighbouring array elements; holes lie between them.
        rhs_dilate: Window dilation: distance of neighbouring window elements.
        reversal: Whether the window is read backwards.
    """

    size: int
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    lhs_dilate: int = 1
    rhs_dilate: int = 1
    reversal: bool = False

    @property
    def dilated_size(self) -> int:
        """Array elements that the window spans, holes included; 0 for an empty window."""
        return (self.size - 1) * self.rhs_dilate + 1 if self.size else 0

    def padded_size(self, array_size: int) -> int:
        """Size of the array with holes and padding; may be negative when the padding crops more than there is."""
        dilated = (array_size - 1) * self.lhs_dilate + 1 if array_size else 0
        return self.pad_low + dilated + self.pad_high

    def output_size(self, array_size: int) -> int:
        """Number of window positions, floor((padded - dilated window) / stride) + 1, or 0 if it does not fit."""
        room = self.padded_size(array_size) - self.dilated_size
        return room // self.stride + 1 if room >= 0 and self.padded_size(array_size) > 0 else 0


@dataclass(frozen=True, slots=True)
class Window:
    """A window over several dimensions; `Window()` has none."""

    dimensions: tuple[WindowDimension, ...] = ()

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dimensions)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Window elements of each dimension."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def strides(self) -> tuple[int, ...]:
        """Stride of each dimension."""
        return tuple(dimension.stride for dimension in self.dimensions)

    def output_sizes(self, array_sizes: Sequence[int]) -> tuple[int, ...]:
        """Window positions of each dimension of an array with the same number of dimensions."""
        return tuple(dimension.output_size(size) for dimension, size in zip(self.dimensions, array_sizes, strict=True))

    @property
    def problem(self) -> str | None:
        """What is wrong with the window by itself, or None: sizes below 0, strides or dilations below 1."""
        for position, dimension in enumerate(self.dimensions):
            if dimension.size < 0:
                return f"window size of dimension {position} is {dimension.size}, expected at least 0"
            for what, value in (
                ("stride", dimension.stride),
                ("lhs_dilate", dimension.lhs_dilate),
                ("rhs_dilate", dimension.rhs_dilate),
            ):
                if value < 1:
                    return f"window {what} of dimension {position} is {value}, expected at least 1"
        return None

    def __str__(self) -> str:
        """XLA's text without braces; what has its default value in every dimension is left out."""
        if not self.dimensions:
            return ""
        parts = ["size=" + "x".join(str(d.size) for d in self.dimensions)]
        if any(d.stride != 1 for d in self.dimensions):
            parts.append("stride=" + "x".join(str(d.stride) for d in self.dimensions))
        if any(d.pad_low or d.pad_high for d in self.dimensions):
            parts.append("pad=" + "x".join(f"{d.pad_low}_{d.pad_high}" for d in self.dimensions))
        if any(d.lhs_dilate != 1 for d in self.dimensions):
            parts.append("lhs_dilate=" + "x".join(str(d.lhs_dilate) for d in self.dimensions))
        if any(d.rhs_dilate != 1 for d in self.dimensions):
            parts.append("rhs_dilate=" + "x".join(str(d.rhs_dilate) for d in self.dimensions))
        if any(d.reversal for d in self.dimensions):
            parts.append("rhs_reversal=" + "x".join(str(int(d.reversal)) for d in self.dimensions))
        return " ".join(parts)
