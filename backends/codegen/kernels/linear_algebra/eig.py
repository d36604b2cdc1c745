"""The kernel of LAPACK's geev: eigenvalues of any square matrices, and their vectors of length one.

Eigenvectors of the triangular form are multiplied with Z. The largest number of a complex vector is real, as LAPACK
makes it. The matrices of a batch are split over threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, sum_of
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.registers import Registers
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.numbers import (
    chosen,
    conjugate,
    near_inverse,
    negative,
    product,
    real_part,
    scaled,
    size_of,
)
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm, in_blocks
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes
from xlalite.backends.codegen.kernels.linear_algebra.schur import (
    TriangularisingKernel,
    imaginary_part,
    known,
    write_eigenvalues,
)
from xlalite.backends.codegen.kernels.linear_algebra.triangular_vectors import TriangularVectors
from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.llvm import I64, Value
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_eig(request: KernelRequest, shape: KernelShape) -> EigKernel:
    """The kernel of a geev."""
    root = request.body.root
    asked = lapack_call(root)
    assert asked is not None, "the kind is for such calls only"
    size, dtype = asked.sizes[0][0], root.operand(0).shape.dtype
    of_vectors = root.shape.elements[-2].dtype
    forms = [PanelForm.of(request.target, each, rows, rows) for each, rows in
             ((dtype, size), (dtype, max(size - 1, 1)), (of_vectors, size))]  # fmt: skip
    left, right = (asked.letter(name) == "V" for name in ("compute_left", "compute_right"))
    return EigKernel(
        request, asked.batch, forms[0], forms[1], has_vectors=left or right, of_vectors=forms[2], asked=(left, right)
    )


@dataclass(frozen=True, slots=True)
class EigKernel(TriangularisingKernel):
    """An eigenvalue decomposition.

    Attributes:
        of_vectors: How vectors lie in scratch memory.
        asked: Whether left and right vectors are asked for; else their place is filled with zeros.
    """

    of_vectors: PanelForm
    asked: tuple[bool, bool]

    @property
    def is_scaled(self) -> bool:
        """As geev is."""
        return True

    @property
    def parts(self) -> tuple[int, ...]:
        """Besides those of a Schur form: two matrices of vectors, and the parts of eigenvalues."""
        vectors = matrix_bytes(self.of_vectors, self._size)
        line = aligned(self._padded * representation(self.form.dtype).register.size_bytes)
        # Each class has slots, which makes a new class and leaves `super()` without its cell.
        return (*TriangularisingKernel.parts.fget(self), vectors, vectors, line, line)  # type: ignore[attr-defined]

    @property
    def _padded(self) -> int:
        return -(-self._size // self.of_vectors.width) * self.of_vectors.width

    def _write(
        self,
        entry: KernelEntry,
        matrix: PanelMatrix,
        vectors: PanelMatrix,
        parts: Sequence[Value],
        batch: Index,
        factor: Value,
        is_found: Value,
    ) -> None:
        fb, size, scalars = entry.fb, self._size, IndexMath(entry.fb, 1)
        *values, left, right, _ = entry.outputs
        write_eigenvalues(matrix, values, batch, fb.fdiv(fb.constant(factor.type, 1.0), factor), is_found)
        solved, turned = (PanelMatrix(fb, self.of_vectors, size, part) for part in parts[-4:-2])
        lines = [ArrayView.row_major(part, self.form.dtype.component, (self._padded,)) for part in parts[-2:]]
        with fb.loop(0, self._padded) as row:
            own = fb.smin(row, size - 1)
            number = matrix.number(own, own)
            imaginary = number[1] if isinstance(number, tuple) else imaginary_part(matrix, own)
            for view, part in zip(lines, (real_part(number), imaginary), strict=True):
                view.write(scalars, (Affine(row),), part)
        for output, is_asked, is_left in zip((left, right), self.asked, (True, False), strict=True):
            if is_asked:
                with fb.if_(is_found):
                    solver = TriangularVectors(fb, matrix, (lines[0], lines[1]), solved, is_left=is_left)
                    solver.run()
                    self._turn(vectors, solver, turned, parts)
                    self._normalise(turned, lines[1])
            self._write_vectors(entry, turned, output, parts, batch, is_found, is_asked=is_asked)

    def _turn(
        self, vectors: PanelMatrix, solver: TriangularVectors, turned: PanelMatrix, parts: Sequence[Value]
    ) -> None:
        """Multiplies vectors with Z, and undoes the scales of the balance."""
        fb, scalars, scales = vectors.fb, IndexMath(vectors.fb, 1), self.balance_lines(parts)[1]
        with fb.loop(0, turned.panels) as number:
            source, target = solver.vectors.panel(number), turned.panel(number)
            begin, end = solver.rows_of(fb.mul(number, self.of_vectors.width))

            def block(row: Value, rows: int, carried: Registers, source: Panel = source, target: Panel = target,
                      begin: Value = begin, end: Value = end) -> Registers:  # fmt: skip
                def coefficient(which: int, k: Value) -> Element:
                    return negative(fb, vectors.number(k, fb.add(row, which)))

                found = source.take_from([target.zeros()] * rows, coefficient, begin, end)
                for which, one in enumerate(found):
                    scale = real_part(scales.read(scalars, (Affine(fb.add(row, which)),)))
                    scale = fb.fdiv(fb.constant(scale.type, 1.0), scale) if solver.is_left else scale
                    spread = fb.splat(scale, target.form.lanes)
                    target.set_row(fb.add(row, which), tuple(scaled(fb, part, spread) for part in one))
                return carried

            in_blocks(fb, self.of_vectors, (), block)

    def _normalise(self, turned: PanelMatrix, imaginary: ArrayView) -> None:
        """Divides vectors by their lengths; those of complex eigenvalues turn so that the largest number is real."""
        fb, form = turned.fb, self.of_vectors
        math_ = IndexMath(fb, form.lanes)
        with fb.loop(0, turned.panels) as number:
            panel = turned.panel(number)
            for place in panel.columns():
                at = (Affine(sum_of(fb.mul(number, form.width), place.base), 1),)
                zero = real_part(panel.zeros()[0])
                with fb.carried_loop(0, form.rows, 1, (zero,)) as loop:
                    part = panel.read(math_, (Affine(loop.index), place))
                    loop.yield_(fb.maxnum(loop.values[0], size_of(fb, part)))
                scale = near_inverse(fb, loop.results[0])
                with fb.carried_loop(0, form.rows, 1, (zero,) * 4) as squares:
                    sums, most, *best = squares.values
                    part = scaled(fb, panel.read(math_, (Affine(squares.index), place)), scale)
                    own = real_part(product(fb, conjugate(fb, part), part))
                    found = chosen(fb, fb.fcmp("ogt", own, most), part, (best[0], best[1]))
                    assert isinstance(found, tuple), "vectors are complex"
                    squares.yield_(fb.fadd(sums, own), fb.maxnum(most, own), *found)
                sums, most, *best = squares.results
                is_turned = fb.fcmp("one", real_part(imaginary.read(math_, at)), 0.0)
                if self.form.dtype.is_complex:
                    is_turned = fb.fcmp("oeq", zero, zero)
                length = fb.sqrt(sums)
                inverse = fb.fdiv(scale, fb.fmul(length, fb.select(is_turned, fb.sqrt(most), 1.0)))
                turn = chosen(fb, is_turned, (best[0], fb.fneg(best[1])), (fb.fadd(zero, 1.0), zero))
                with fb.loop(0, form.rows) as row:
                    held = panel.read(math_, (Affine(row), place))
                    new = scaled(fb, product(fb, held, turn), inverse)
                    assert isinstance(new, tuple), "vectors are complex"
                    assert isinstance(held, tuple), "vectors are complex"
                    is_best = [fb.fcmp("oeq", fb.fmul(a, scale), b) for a, b in zip(held, best, strict=True)]
                    is_real = fb.and_(is_turned, fb.and_(is_best[0], is_best[1]))
                    panel.write(math_, (Affine(row), place), (new[0], fb.select(is_real, 0.0, new[1])))
            if not self.form.dtype.is_complex:
                self._join_pair(turned, number, imaginary)

    def _join_pair(self, turned: PanelMatrix, number: Value, imaginary: ArrayView) -> None:
        """Makes the first vector of a panel the conjugate of the one before it, if these are a pair's.

        Other pairs are conjugates already: the same is done to both.
        """
        fb, scalars, width = turned.fb, IndexMath(turned.fb, 1), self.of_vectors.width
        first = real_part(imaginary.read(scalars, (Affine(fb.mul(number, width)),)))
        with fb.if_(fb.fcmp("olt", first, 0.0)), fb.loop(0, self._size) as row:
            other = turned.panel(fb.sub(number, 1)).number(row, fb.constant(I64, width - 1))
            turned.panel(number).write(scalars, (Affine(row), Affine(0)), conjugate(fb, other))

    def _write_vectors(
        self,
        entry: KernelEntry,
        turned: PanelMatrix,
        output: ArrayView,
        parts: Sequence[Value],
        batch: Index,
        is_found: Value,
        *,
        is_asked: bool,
    ) -> None:
        """Writes vectors, their rows in the order of the given matrix."""
        fb, order = entry.fb, self.balance_lines(parts)[0]

        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            math_, element = IndexMath(fb, self.of_vectors.lanes), panel.zeros()[0]
            if is_asked:
                element = known(fb, panel.read(math_, (Affine(row), place)), is_found)
            own = real_part(order.read(IndexMath(fb, 1), (Affine(row),)))
            output.write(math_, (*batch, Affine(own), at), element, mask)

        turned.for_vectors(visit)
