"""Whether words of bf16 are right for the numbers of a piece of work, beside those that were summed before.

Whoever packs an operand says how small its numbers are; of one that is read where it lies, a scan does. Sums of earlier
terms that were not exact may be too small for words, too.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.driver_part import DriverPart
from xlalite.backends.codegen.kernels.dot.exponent_scan import exponent_scan
from xlalite.backends.codegen.kernels.dot.layout import DotLayout
from xlalite.backends.codegen.kernels.dot.product import Piece
from xlalite.backends.codegen.kernels.dot.words import is_exact
from xlalite.backends.codegen.kernels.scalars import Scalar
from xlalite.backends.codegen.llvm import I8, I32, Value
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Exactness(DriverPart):
    """Emits the answer into the loops of a kernel.

    Attributes:
        layout: What the product has in scratch memory.
    """

    layout: DotLayout

    def scan(self, piece: Piece, row: Scalar, start: Scalar, depth: Scalar, least: Value) -> None:
        """Finds the least exponent of all that lies between the first and the last element of a left operand's part."""
        fb, plan, math, area = self.fb, self.plan, self.math, piece.area
        matrix, memory = plan.view.lhs, representation(plan.numbers.lhs).memory
        first = math.add(matrix.outer.place(math, row), matrix.depth.place(math, start))
        ends = math.subtract(math.add(row, area.height), 1), math.subtract(math.add(start, depth), 1)
        last = math.add(matrix.outer.place(math, ends[0]), matrix.depth.place(math, ends[1]))
        scan = exponent_scan(self.module, plan.lanes)
        count = math.value(math.add(math.subtract(last, first), 1))
        found = fb.call_pointer(self.callee(scan), I32, (math.address(memory, piece.lhs, first), count))
        fb.store(found, least, 4)

    def of(self, piece: Piece, start: Scalar, least: tuple[Value, Value], known: Value) -> Value:
        """Whether words are right for a piece's terms from one on.

        Args:
            piece: The piece.
            start: The first term.
            least: Where the least exponents of both operands are.
            known: Where the answer is kept for each piece of the result, if there are terms after others.
        """
        fb, math = self.fb, self.math
        answer = is_exact(fb, *(fb.load(I32, place, 4) for place in least))
        if not self.layout.remembers:
            return answer
        place = math.address(I8, known, piece.unit)
        is_first = fb.icmp("eq", math.value(start), math.value(piece.start))
        before = fb.icmp("ne", fb.load(I8, place, 1), 0)
        answer = fb.and_(answer, fb.or_(is_first, before))
        fb.store(fb.zext(answer, I8), place, 1)
        return answer
