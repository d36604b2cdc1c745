"""Images and volumes: which dimensions are spatial, and where windows lie on them."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import Dims, TensorShape
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.window import WindowDimension

FORMATS = {4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}


@dataclass(frozen=True, slots=True)
class SpatialLayout:
    """The order of dimensions.

    Attributes:
        rank: Number of dimensions, batch and channels included.
        channel: The dimension of channels; the batch is dimension 0.
    """

    rank: int
    channel: int

    @property
    def spatial(self) -> tuple[int, ...]:
        """The other dimensions in order."""
        return tuple(i for i in range(1, self.rank) if i != self.channel)

    def labels(self) -> str:
        """The order as the labels of HLO's convolution."""
        return "".join("b" if i == 0 else "f" if i == self.channel else self._digit(i) for i in range(self.rank))

    def dims(self, batch: int | None, spatial: Sequence[int | None], channels: int | None) -> list[int | None]:
        """Sizes in order."""
        found = [batch, *spatial]
        found.insert(self.channel, channels)
        return found

    def _digit(self, dimension: int) -> str:
        return str(self.spatial.index(dimension))


def spatial_layout(data_format: str, rank: int) -> SpatialLayout:
    """The order that a data format means.

    Raises:
        ShapeError: there is no such format for the rank.
    """
    if data_format not in FORMATS[rank]:
        raise ShapeError(f"data_format {data_format!r} is not one of {', '.join(FORMATS[rank])}")
    return SpatialLayout(rank, 1 if data_format.startswith("NC") else rank - 1)


@dataclass(frozen=True, slots=True)
class Steps:
    """How a window moves along one dimension.

    Attributes:
        stride: Distance of neighbouring positions.
        dilation: Distance of neighbouring elements of the window.
        padding: `SAME`, `VALID` or `EXPLICIT`.
        explicit: Elements added before and behind with `EXPLICIT`.
    """

    stride: int = 1
    dilation: int = 1
    padding: str = "VALID"
    explicit: tuple[int, int] = (0, 0)

    def positions(self, size: int | None, window: int | None) -> int | None:
        """Number of positions of the window; None when it depends on what is not known.

        Raises:
            ShapeError: the window is larger than the padded dimension.
        """
        if size is None or (window is None and self.padding != "SAME"):
            return None
        if self.padding == "SAME":
            return -(-size // self.stride)
        room = size + sum(self.explicit) - self._span(window or 0)
        if room < -self.stride:
            padded = f", {size + sum(self.explicit)} with padding" if any(self.explicit) else ""
            raise ShapeError(f"a window of {self._span(window or 0)} is larger than the dimension of {size}{padded}")
        return room // self.stride + 1

    def window(self, size: int, window: int) -> WindowDimension:
        """The window over a dimension of known size."""
        low, high = self.explicit
        if self.padding == "SAME":
            count = -(-size // self.stride)
            total = max(0, (count - 1) * self.stride + self._span(window) - size) if count else 0
            low, high = total // 2, total - total // 2
        return WindowDimension(window, self.stride, low, high, rhs_dilate=self.dilation)

    def _span(self, window: int) -> int:
        return (window - 1) * self.dilation + 1


def steps_of(op: Operation, layout: SpatialLayout) -> tuple[Steps, ...]:
    """How the window of an operation moves along each dimension: its strides, dilations and padding.

    Raises:
        ShapeError: an attribute has the wrong length or a value that makes no sense.
    """
    return steps_along(op, layout.rank, op.get_attr("strides"))


def steps_along(op: Operation, rank: int, strides: Sequence[int]) -> tuple[Steps, ...]:
    """As `steps_of`, for an operation whose strides are no attribute."""
    checked = one_of_each(strides, "strides", rank)
    dilations = one_of_each(op.get_attr("dilations"), "dilations", rank) if "dilations" in op.attrs else (1,) * rank
    padding = op.get_attr("padding")
    if padding not in ("SAME", "VALID", "EXPLICIT"):
        raise ShapeError(f"padding {padding!r} is not one of SAME, VALID, EXPLICIT")
    explicit = tuple(op.attrs.get("explicit_paddings", ()))
    if len(explicit) != (2 * rank if padding == "EXPLICIT" else 0) or any(each < 0 for each in explicit):
        wanted = f"{2 * rank} sizes that are not negative" if padding == "EXPLICIT" else f"none with {padding}"
        raise ShapeError(f"explicit_paddings are {list(explicit)}; expected {wanted}")
    pairs = [explicit[2 * i : 2 * i + 2] or (0, 0) for i in range(rank)]
    return tuple(
        Steps(stride, dilation, padding, (int(low), int(high)))
        for stride, dilation, (low, high) in zip(checked, dilations, pairs, strict=True)
    )


def one_of_each(given: Sequence[int], name: str, rank: int) -> tuple[int, ...]:
    """Positive numbers, one for each dimension.

    Raises:
        ShapeError: there are more or fewer, or one is not positive.
    """
    values = tuple(int(each) for each in given)
    if len(values) != rank or any(value < 1 for value in values):
        raise ShapeError(f"{name} are {list(values)}; expected {rank} positive numbers")
    return values


def sizes_or_unknown(shape: TensorShape, rank: int) -> Dims:
    """The sizes of a shape that must have a rank, None for each that is not known."""
    return shape.with_rank(rank).dims or (None,) * rank
