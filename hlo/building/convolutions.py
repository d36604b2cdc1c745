"""Convolutions of images with filters, and their derivatives: each is one HLO convolution, with its own window."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops import OPS
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.window import Window, WindowDimension


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution at known sizes. Image and output have the same order of dimensions.

    Attributes:
        labels: The order of the image's dimensions, as in HLO: `b01f`.
        filter_labels: That of the filter's: `01io`.
        window: The window over the spatial dimensions.
        image: Sizes.
        filters: Sizes; the input channels are those of a group.
        output: Sizes.
        groups: Number of groups of features.
    """

    labels: str
    filter_labels: str
    window: tuple[WindowDimension, ...]
    image: tuple[int, ...]
    filters: tuple[int, ...]
    output: tuple[int, ...]
    groups: int = 1

    def forward(self, image: Handle, filters: Handle, **precision: object) -> Handle:
        """The output; `precision` are further attributes of HLO's convolution, here and below."""
        if 0 in (*self.image, *self.filters, *self.output):
            return image.builder.full(0, image.dtype, self.output)
        labels = (self.labels, self.filter_labels, self.labels)
        return _convolution(image, filters, self.window, labels, feature_group_count=self.groups, **precision)

    def to_image(self, filters: Handle, grad: Handle, **precision: object) -> Handle:
        """What a derivative by the output is by the image.

        Each gradient goes back to where its window took elements from: the filter turned round over spread gradients.
        """
        if 0 in (*self.output, *self.filters, *self.image):
            return grad.builder.full(0, grad.dtype, self.image)
        window = []
        for dim, size, count in self._along_space():
            low = dim.dilated_size - 1 - dim.pad_low
            high = size + dim.dilated_size - 1 - low - ((count - 1) * dim.stride + 1)
            # A single gradient has neighbours at no distance: at this one each result sees one element of the filter.
            is_alone = count == 1 and dim.rhs_dilate == 1 and dim.stride < dim.size <= size
            spread = dim.size if is_alone else dim.stride
            window.append(WindowDimension(dim.size, 1, low, high, spread, dim.rhs_dilate, reversal=True))
        labels = (self.labels, self.filter_labels.translate(_INPUT_FOR_OUTPUT), self.labels)
        return _convolution(grad, self._turned(filters), window, labels, feature_group_count=self.groups, **precision)

    def to_filters(self, image: Handle, grad: Handle, **precision: object) -> Handle:
        """What a derivative by the output is by the filters.

        The gradients are a filter that moves over the image, with examples in the place of channels.
        """
        if 0 in (*self.image, *self.output, *self.filters):
            return grad.builder.full(0, grad.dtype, self.filters)
        window = []
        for dim, size, count in self._along_space():
            high = dim.dilated_size + (count - 1) * dim.stride - size - dim.pad_low
            window.append(WindowDimension(count, dim.rhs_dilate, dim.pad_low, high, rhs_dilate=dim.stride))
        labels = (
            self.labels.translate(str.maketrans("bf", "fb")),
            self.labels.translate(str.maketrans("bf", "io")),
            self.filter_labels.translate(str.maketrans("io", "bf")),
        )
        return _convolution(image, grad, window, labels, batch_group_count=self.groups, **precision)

    def _along_space(self) -> list[tuple[WindowDimension, int, int]]:
        """Of each spatial dimension its window, the image's size and the output's."""
        places = [self.labels.index(str(i)) for i in range(len(self.window))]
        return [(dim, self.image[i], self.output[i]) for dim, i in zip(self.window, places, strict=True)]

    def _turned(self, filters: Handle) -> Handle:
        """Filters whose input channels are those of all groups and whose output channels those of one."""
        if self.groups == 1:
            return filters
        b, sizes = filters.builder, list(self.filters)
        inputs, outputs = self.filter_labels.index("i"), self.filter_labels.index("o")
        split = [*sizes[:outputs], self.groups, sizes[outputs] // self.groups, *sizes[outputs + 1 :]]
        order = [i if i <= outputs else i + 1 for i in range(len(sizes))]
        order[outputs] = outputs + 1
        order.insert(inputs, outputs)
        sizes[outputs] //= self.groups
        sizes[inputs] *= self.groups
        return b.reshape(b.transpose(b.reshape(filters, split), order), sizes)


def channels_last(x: Handle) -> Handle:
    """`[batch, channels, space...]` as `[batch, space..., channels]`, in which kernels are at their best."""
    return x.builder.transpose(x, [0, *range(2, len(x.dims)), 1])


def channels_second(x: Handle) -> Handle:
    """The reverse."""
    return x.builder.transpose(x, [0, len(x.dims) - 1, *range(1, len(x.dims) - 1)])


_INPUT_FOR_OUTPUT = str.maketrans("io", "oi")


def _convolution(
    lhs: Handle, rhs: Handle, window: Sequence[WindowDimension], labels: tuple[str, str, str], **attrs: object
) -> Handle:
    found = OPS["convolution"].attrs(window=Window(tuple(window)), dim_labels=ConvolutionDims(*labels), **attrs)
    return lhs.builder.op("convolution", (lhs, rhs), found)
