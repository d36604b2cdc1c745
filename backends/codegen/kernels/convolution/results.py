"""Results of a convolution from sums in memory.

What follows from a sum is many instructions where it is rounded; a loop has them once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import product

from xlalite.backends.codegen.arrays.index import Affine, IndexMath, Position, row_major_strides
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.elements import always
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.llvm import I8, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

VECTOR_BYTES = 64
"""Of the largest vectors: how far apart sums lie in memory, and their alignment."""


@dataclass(frozen=True, slots=True)
class ConvolutionResults:
    """What a kernel makes of sums.

    Attributes:
        entry: The kernel's entry.
        results: What is written.
        convolution: The instruction.
        kept: The type of sums.
    """

    entry: KernelEntry
    results: Sequence[HloInstruction]
    convolution: HloInstruction
    kept: DType

    def load(self, memory: Value, like: Sequence[Element]) -> tuple[Element, ...]:
        """Sums of such kinds that lie in memory."""
        fb, kinds = self.entry.fb, enumerate(flatten(like))
        places = [(fb.gep(I8, memory, number * VECTOR_BYTES), one.type) for number, one in kinds]
        return unflatten(tuple(fb.load(kind, place, VECTOR_BYTES) for place, kind in places), like)

    def store(self, memory: Value, sums: Sequence[Element]) -> None:
        """Puts sums there."""
        fb = self.entry.fb
        for number, one in enumerate(flatten(sums)):
            fb.store(one, fb.gep(I8, memory, number * VECTOR_BYTES), VECTOR_BYTES)

    def write_all(
        self,
        memory: Value,
        like: Element,
        sizes: Sequence[int],
        index_of: Callable[..., Mapping[int, Position]],
        mask: Value | None,
        math: IndexMath,
    ) -> None:
        """Writes the results of sums in memory, whose places along dimensions of such sizes say where results lie.

        Those that are stored as they are take a load and a store each, and are spelt out.
        """
        fb, numbers = self.entry.fb, IndexMath(self.entry.fb, 1)

        def write(places: tuple[Affine, ...], total: Element) -> None:
            index, shape = index_of(*places), self.convolution.shape
            place = tuple(index[dim] for dim in range(shape.rank))
            converted = convert_element(fb, total, self.kept, shape.dtype)
            emitter = self.entry.emitter(math.lanes, mask, {self.convolution: always(converted)})
            elements = [emitter.element(result, place) for result in self.results]
            for view, element in zip(self.entry.outputs, elements, strict=True):
                view.write(math, place, element, mask)

        if self.results == (self.convolution,) and self.kept is self.convolution.shape.dtype:
            known = [tuple(map(Affine, place)) for place in product(*map(range, sizes))]
            for here, total in zip(known, self.load(memory, [like] * len(known)), strict=True):
                write(here, total)
            return
        with ExitStack() as loops:
            places = tuple(Affine(loops.enter_context(fb.loop(0, size, nonempty=True))) for size in sizes)
            number = numbers.vector(numbers.linear(places, row_major_strides(sizes)))
            register = fb.mul(number, len(flatten([like])) * VECTOR_BYTES)
            write(places, *self.load(fb.gep(I8, memory, register), [like]))
