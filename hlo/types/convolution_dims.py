"""Which dimension of a convolution's operands and result is batch, feature or space."""

from __future__ import annotations

from functools import cache

from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class ConvolutionDims:
    """Dimension labels, one letter a dimension.

    Attributes:
        input: Labels of the left operand: `b` batch, `f` feature, digits for spatial dimensions.
        kernel: Labels of the right operand: `i` input feature, `o` output feature, digits.
        output: Labels of the result, like those of the input.
    """

    input: str
    kernel: str
    output: str

    @property
    def spatial_rank(self) -> int:
        """Number of spatial dimensions."""
        return sum(label.isdigit() for label in self.input)

    @property
    def input_batch(self) -> int:
        """Batch dimension of the input."""
        return self.input.index("b")

    @property
    def input_feature(self) -> int:
        """Feature dimension of the input."""
        return self.input.index("f")

    @property
    def input_spatial(self) -> tuple[int, ...]:
        """Spatial dimensions of the input, by label."""
        return _spatial(self.input)

    @property
    def kernel_input_feature(self) -> int:
        """Input feature dimension of the kernel."""
        return self.kernel.index("i")

    @property
    def kernel_output_feature(self) -> int:
        """Output feature dimension of the kernel."""
        return self.kernel.index("o")

    @property
    def kernel_spatial(self) -> tuple[int, ...]:
        """Spatial dimensions of the kernel, by label."""
        return _spatial(self.kernel)

    @property
    def output_batch(self) -> int:
        """Batch dimension of the output."""
        return self.output.index("b")

    @property
    def output_feature(self) -> int:
        """Feature dimension of the output."""
        return self.output.index("f")

    @property
    def output_spatial(self) -> tuple[int, ...]:
        """Spatial dimensions of the output, by label."""
        return _spatial(self.output)

    @property
    def problem(self) -> str | None:
        """What is wrong with the labels, or None."""
        digits = "".join(str(i) for i in range(self.spatial_rank))
        for what, labels, letters in (
            ("input", self.input, "bf"),
            ("kernel", self.kernel, "io"),
            ("output", self.output, "bf"),
        ):
            known = labels.replace("?", "")
            if sorted(known) != sorted(letters + digits):
                return f"{what} labels {labels!r} must hold each of {', '.join(letters + digits)} once"
        return None

    def __str__(self) -> str:
        """XLA's text."""
        return f"{self.input}_{self.kernel}->{self.output}"


@cache
def _spatial(labels: str) -> tuple[int, ...]:
    return tuple(labels.index(str(i)) for i in range(sum(label.isdigit() for label in labels)))
