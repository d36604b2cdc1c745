"""Lines of images with zeros around them, copied for one piece of work at a time.

A line is what lies at one position of the first spatial dimension: pixels of all features, or, with features first, one
in the plane of each feature. Tiles read the copy in the second cache, where an image that had been padded as a whole
would come from memory again.
"""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.kernels.zero_pad import zero_padding
from xlalite.backends.codegen.llvm import I8, VOID, Function, FunctionBuilder, ModuleBuilder, Value
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class PaddedLine:
    """A line, in bytes: rows of pixels with zeros around them; in two dimensions there is one row.

    Attributes:
        first: Zeros before the first row's pixels.
        rows: Rows that hold pixels.
        width: Bytes of a row's pixels.
        row: From one row to the next.
        size: All of it.
    """

    first: int
    rows: int
    width: int
    row: int
    size: int


@dataclass(frozen=True, slots=True)
class Staging:
    """Which lines a piece of work sees, and how they are copied.

    Attributes:
        image_rows: Rows of a product that come from one image.
        line_rows: Those that come from one line of results.
        first: The first line that a window sees, zeros included.
        stride: Lines from one result to the next.
        reach: Lines from the first to the last that a window sees.
        low: Lines of zeros before the image.
        height: Lines of the image.
        planes: Planes of lines that an image has.
        lines: Lines of a plane of the copy.
        line: A line.
    """

    image_rows: int
    line_rows: int
    first: int
    stride: int
    reach: int
    low: int
    height: int
    planes: int
    lines: int
    line: PaddedLine

    @property
    def size_bytes(self) -> int:
        """Room for the copy."""
        return self.planes * self.lines * self.line.size

    def emit(
        self,
        module: ModuleBuilder,
        fb: FunctionBuilder,
        math: Scalars,
        callee: Callable[[Function], Value],
        image: Scalar,
        rows: tuple[Scalar, Scalar],
        places: tuple[Value, Value],
    ) -> None:
        """Copies what some rows of a product see, from the array of images to the place of the copy.

        Args:
            module: Where the function that copies is declared.
            fb: Where the calls go.
            math: How that function knows sizes.
            callee: Where it finds a function.
            image: The first image of the product.
            rows: The first row, and how many.
            places: The array and the copy.
        """
        line, (first, height), (images, copy) = self.line, rows, places
        image = math.add(image, math.divide(first, self.image_rows))
        row = math.divide(math.remainder(first, self.image_rows), self.line_rows)
        begin = math.add(math.multiply(row, self.stride), self.first)
        results = math.divide(height, self.line_rows)
        count = math.add(math.multiply(math.subtract(results, 1), self.stride), self.reach)
        plane_bytes = self.height * line.rows * line.width
        source = math.address(I8, images, math.multiply(image, self.planes * plane_bytes))
        low: Scalar = math.subtract(self.low, begin)
        numbers = low, self.height, 1, 0, 1, line.size, line.first, line.rows, line.width, line.row
        pad = callee(zero_padding(module, line.width))
        with math.steps(self.planes, 1) as plane:
            before = math.address(I8, source, math.multiply(plane, plane_bytes))
            after = math.address(I8, copy, math.multiply(plane, self.lines * line.size))
            fb.call_pointer(pad, VOID, (before, after, *map(math.value, (0, count, *numbers))))
