"""The kernel of LAPACK's orgqr and ormqr: the product of stored reflections, or a matrix multiplied with it.

A product from the right is the adjoint of one from the left. The matrices of a batch are split over threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, sum_of
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.kernels.fork import fork_of
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.linear_algebra.batched import BatchedKernel
from xlalite.backends.codegen.kernels.linear_algebra.block_reflection import (
    BlockReflection,
    block_bytes,
    product_bytes,
)
from xlalite.backends.codegen.kernels.linear_algebra.numbers import conjugate
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix, matrix_bytes, set_unit
from xlalite.backends.codegen.llvm import Value
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_reflections(request: KernelRequest, shape: KernelShape) -> ReflectionsKernel:
    """The kernel of an orgqr or an ormqr."""
    root = request.body.root
    asked = lapack_call(root)
    assert asked is not None, "the kind is for such calls only"
    (rows, _), (count,), *others = asked.sizes
    columns = asked.sizes[0][1]
    is_left, is_adjoint = True, False
    if others:
        is_left, is_adjoint = bool(asked.options.get("left", 1)), bool(asked.options.get("transpose", 0))
        columns = others[0][1 if is_left else 0]
    dtype = root.operand(0).shape.dtype
    return ReflectionsKernel(
        request,
        asked.batch,
        count,
        columns,
        PanelForm.of(request.target, dtype, rows, max(count, 1)),
        PanelForm.of(request.target, dtype, rows, columns),
        is_left=is_left,
        is_adjoint=is_adjoint == is_left,
    )


@dataclass(frozen=True, slots=True)
class ReflectionsKernel(BatchedKernel):
    """A product with reflections.

    Attributes:
        count: Reflections.
        columns: Columns of what is multiplied from the left, the rows of the third operand if it stands on the left.
        form: Panels of the reflections.
        others: Panels of what is multiplied.
        is_left: Whether the reflections stand on the left.
        is_adjoint: Whether what is multiplied from the left is multiplied with the adjoint of their product.
    """

    count: int
    columns: int
    form: PanelForm
    others: PanelForm
    is_left: bool
    is_adjoint: bool

    @property
    def parts(self) -> tuple[int, int]:
        """A matrix and a block of reflections."""
        return matrix_bytes(self.others, self.columns), block_bytes(self.form, self.others)

    @property
    def task_bytes(self) -> int:
        """What one panel is multiplied with."""
        return product_bytes(self.form, self.others)

    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Multiplies it."""
        fb, width, is_product = entry.fb, self.form.width, len(entry.inputs) > 2
        blocks = -(-self.count // width)
        matrix = PanelMatrix(fb, self.others, self.columns, parts[0])
        block = BlockReflection(fb, self.form, self.others, parts[1])
        if is_product:
            self._read(entry, matrix, batch)
        else:
            set_unit(matrix)
        with fb.loop(0, blocks) as turn:
            at = turn if self.is_adjoint else fb.sub(fb.constant(turn.type, blocks - 1), turn)
            first = fb.mul(at, width)
            count = fb.smin(fb.sub(fb.constant(first.type, self.count), first), width)
            self._take(entry, block, batch, first, count)
            # In what is still the unit matrix, the columns before a block have nothing in its rows.
            behind = 0 if is_product else fb.udiv(first, self.others.width)
            block.apply_to(matrix, behind, first, count, fork_of(entry, self), adjoint=self.is_adjoint)
        self._write(entry, matrix, batch)

    def _take(self, entry: KernelEntry, block: BlockReflection, batch: Index, first: Value, count: Value) -> None:
        fb, lanes, packed, taus = entry.fb, self.form.lanes, *entry.inputs[:2]

        def stored(row: Value, place: Affine) -> Element:
            at = IndexMath(fb, lanes).scalar(sum_of(first, place.base))
            mask = None if self.count % self.form.width == 0 else lanes_below(fb, at, self.count, lanes)
            return packed.read(IndexMath(fb, lanes), (*batch, Affine(row), Affine(at, 1)), mask)

        block.take(
            first,
            count,
            stored,
            lambda number: taus.read(IndexMath(fb, 1), (*batch, Affine(fb.add(first, number)))),
        )

    def _read(self, entry: KernelEntry, matrix: PanelMatrix, batch: Index) -> None:
        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            math = IndexMath(entry.fb, self.others.lanes)
            element = entry.inputs[2].read(math, self._index(batch, row, at), mask)
            panel.write(math, (Affine(row), place), element if self.is_left else conjugate(entry.fb, element))

        matrix.for_vectors(visit)

    def _write(self, entry: KernelEntry, matrix: PanelMatrix, batch: Index) -> None:
        def visit(panel: Panel, row: Value, at: Affine, place: Affine, mask: Value | None) -> None:
            math = IndexMath(entry.fb, self.others.lanes)
            element = panel.read(math, (Affine(row), place))
            element = element if self.is_left else conjugate(entry.fb, element)
            entry.outputs[0].write(math, self._index(batch, row, at), element, mask)

        matrix.for_vectors(visit)

    def _index(self, batch: Index, row: Value, at: Affine) -> Index:
        return (*batch, Affine(row), at) if self.is_left else (*batch, at, Affine(row))
