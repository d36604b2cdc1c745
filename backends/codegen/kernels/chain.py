"""The chain kernel: a product, rows made of its result, and a product of those, block of rows after block of rows.

Attention is one: scores, their softmax, and the product with the values. What lies between the products is never whole
in memory: a task keeps a block of it in scratch memory, which stays in the second cache. Each part is the kernel that
would compute it alone, and gives the same bits: a part writes, and the next one reads, at the places that the block
would have in the whole array, whose address is chosen so that these places are in the scratch memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import row_major_strides
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.dot.kernel import DotKernel, dot_kernel, plan_dot_kernel
from xlalite.backends.codegen.kernels.dot.layout import LONG_TILE
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.dot.transfer import operand_cycles
from xlalite.backends.codegen.kernels.dot.view import Matrix
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.backends.codegen.kernels.estimate import Work, kernel_work
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.number_checks import finite, zeros
from xlalite.backends.codegen.kernels.row import RowKernel, plan_row
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.kernels.scratch import aligned, open_slots, own_slot, parts_of, scratch_area_bytes
from xlalite.backends.codegen.kernels.seen_columns import columns_ahead, columns_kept
from xlalite.backends.codegen.kernels.throughput import MULTIPLY_ADDS_PER_NS, bytes_per_ns
from xlalite.backends.codegen.llvm import I8, I64, PTR, VOID, Function, ModuleBuilder, TargetInfo, Value, constant
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Number
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.domain import Place
from xlalite.passes.fusion.kernel_shape import KernelKind, KernelShape, kernel_shapes

_LEAST_BLOCKS = 8
"""Blocks that the rows of all products are divided into, if there are enough of them."""

_MASKED_COLUMNS = 128
"""Columns that are computed together, or not at all, where a mask hides what lies beyond a row's own position; rows are
computed together in blocks of no more."""

_MOST_DEPTHS = 8
"""How many depths the second product is made for where rows end in zeros."""


def plan_chain(request: KernelRequest, shape: KernelShape) -> ChainKernel | Declined:
    """The kernel that computes two products and the rows between them."""
    if request.in_place:
        return Declined("a result lies in the memory of an operand")
    products = [one for one in request.body.post_order() if one.opcode == "dot"]
    if len(products) != 2:
        return Declined("there are not two products")
    first, second = products
    rows, root = second.operand(0), request.body.root
    last = root.operand(0) if root.opcode == "tuple" else root
    if root.opcode == "tuple" and root.operands != (last, rows):
        return Declined("there are other results than what the second product and its left operand give")
    if first not in reachable((rows,), lambda one: one.operands) or rows is first:
        return Declined("the second product's left operand is not made of the first product's result")
    if (declined := why_not_in_blocks(first, request.target)) is not None:
        return declined
    parts: list[_Part] = []
    for title, root, known, kind in (
        ("the first product", first, (), KernelKind.DOT),
        ("the rows", rows, (first,), KernelKind.ROW),
        ("the second product", last, (rows,), KernelKind.DOT),
    ):
        part = _part(request, root, known, kind)
        if isinstance(part, Declined):
            return Declined(f"{title}: {part.reason}")
        parts.append(part)
    return _in_blocks(request, parts, (first, rows))


def why_not_in_blocks(product: HloInstruction, target: TargetInfo) -> Declined | None:
    """Why the result of a chain's first product may as well be whole in memory, which its size alone says."""
    if product.shape.size_bytes <= target.cache_bytes[1]:
        return Declined("what is handed on stays in the second cache anyway")
    return None


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a chain.

    Attributes:
        kernel: What computes it.
        operands: The instructions of the chain's body that are its parameters.
        work: What it does for all blocks.
    """

    kernel: Kernel
    operands: tuple[HloInstruction, ...]
    work: Work


@dataclass(frozen=True, slots=True)
class ChainKernel(Kernel):
    """Two products with rows between them, which may be a result, too.

    Attributes:
        parts: A product, the rows, which lie in the memory of its result if they can, and the second product.
        handed_on: The result of the first product, and that of the rows.
        batch: Number of products.
        m: Rows of each.
        rows: Rows of a block; the last block of a product may have fewer.
        ahead: How far beyond its own number a row's columns are read; None if all are. The others are not computed.
        kept: How far beyond its own number a row may have other columns than zeros; None if these are looked for.
        depths: What computes the second product with so many of the first columns, if the others may be zeros.
    """

    parts: tuple[_Part, ...]
    handed_on: tuple[HloInstruction, ...]
    batch: int
    m: int
    rows: int
    ahead: int | None
    kept: int | None
    depths: Mapping[int, DotKernel]

    @property
    def extent(self) -> int:
        """Blocks of rows."""
        return self.batch * self._blocks

    @property
    def scratch_bytes(self) -> int:
        """What is handed on in a block, and the scratch memory of the products."""
        return sum(self._sizes)

    @property
    def figures(self) -> dict[str, Number]:
        """What the parts do, the size of a block, and how the products are computed."""
        flops = sum(part.work.flops + part.work.transcendentals for part in self.parts)
        figures: dict[str, Number] = {"flops": round(flops), "rows": self.rows, "scratch_bytes": self.scratch_bytes}
        figures |= {} if self.ahead is None else {"ahead": self.ahead}
        figures |= {"depths": len(self.depths) + 1} if self.depths else {}
        for name, part in zip(("first", "rows", "second"), self.parts, strict=True):
            figures |= {f"{name}_{key}": figure for key, figure in part.kernel.figures.items()}
        return figures

    def estimate_ns(self, work: Work) -> float:
        """What the parts take."""
        return sum(part.kernel.estimate_ns(part.work) for part in self.parts)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over blocks."""
        kernels = (*(part.kernel for part in self.parts), *self.depths.values())
        functions = [kernel.emit(module, module.unique_name(f"{name}.part")) for kernel in kernels]
        entry = open_kernel(module, name, self.request)
        with own_slot(entry, self.scratch_bytes) as slot:
            self._emit_blocks(entry, functions, parts_of(entry.fb, slot, self._sizes))
        entry.close()
        return entry.function

    @property
    def _blocks(self) -> int:
        """Blocks of one product."""
        return -(-self.m // self.rows)

    @property
    def _gives_rows(self) -> bool:
        return self.request.body.root.opcode == "tuple"

    @property
    def _windows(self) -> tuple[int, ...]:
        """Bytes of a block of what each part hands on; 0 if it lies in the memory of a result or of the one before."""
        first, rows = (self.rows * self._line_bytes(one) for one in self.handed_on)
        return first, 0 if self._gives_rows or self.parts[1].kernel.request.in_place else rows

    @property
    def _sizes(self) -> list[int]:
        *others, last = (part.kernel.scratch_bytes for part in self.parts)
        last = max((last, *(kernel.scratch_bytes for kernel in self.depths.values())))
        areas = [scratch_area_bytes(size, 1) for size in (*others, last)]
        return [aligned(size) for size in (*self._windows, *areas)]

    def _line_bytes(self, handed: HloInstruction) -> int:
        return handed.shape.size_bytes // (self.batch * self.m)

    def _emit_blocks(self, entry: KernelEntry, functions: Sequence[Function], memory: Sequence[Value]) -> None:
        fb, numbers = entry.fb, Scalars(entry.fb)
        windows, areas = memory[: len(self.handed_on)], memory[len(self.handed_on) :]
        arguments = [self._arguments(entry, part, area) for part, area in zip(self.parts, areas, strict=True)]
        with fb.loop(entry.begin, entry.end) as unit:
            product, block = numbers.divide(unit, self._blocks), numbers.remainder(unit, self._blocks)
            row = numbers.multiply(block, self.rows)
            begin = numbers.add(numbers.multiply(product, self.m), row)
            end = numbers.add(begin, numbers.piece(row, self.rows, self.m))
            self._hand_on(entry, arguments, windows, begin)
            kept = constant(I64, self._terms)
            if self.kept is not None:
                kept = self._columns_kept(entry, product, row, self.kept)
            for number, part in enumerate(self.parts):
                function: Value = functions[number]
                pointers = arguments[number]
                if not isinstance(part.kernel, DotKernel):
                    fb.store(kept, fb.gep(I64, pointers, len(part.operands) + 2), 8)
                    fb.call_pointer(function, VOID, (pointers, numbers.value(begin), numbers.value(end)))
                    continue
                if number and self.depths:
                    if self.kept is None:
                        kept = self._columns_found(entry, pointers, product, (begin, end))
                    for depth, shorter in zip(self.depths, functions[len(self.parts) :], strict=True):
                        function = fb.select(fb.icmp("eq", kept, depth), shorter, function)
                columns = part.kernel.plan.column_units
                with fb.loop(0, self._columns_read(entry, part.kernel, row)) as column:
                    piece = numbers.add(numbers.multiply(product, columns), column)
                    piece = numbers.value(numbers.add(numbers.multiply(piece, self._blocks), block))
                    fb.call_pointer(function, VOID, (pointers, piece, fb.add(piece, 1)))

    @property
    def _terms(self) -> int:
        """Columns of the rows, which the second product sums."""
        return self.handed_on[1].shape.dims[-1]

    def _columns_kept(self, entry: KernelEntry, product: Scalar, row: Scalar, ahead: int) -> Value:
        """How many columns are enough of the rows from one on, as behind a column so far ahead of it are zeros."""
        fb, step = entry.fb, min(self.depths)
        kept = fb.smax(fb.add(Scalars(fb).value(row), self.rows + ahead), 1)
        kept = fb.smin(fb.mul(fb.udiv(fb.add(kept, step - 1), step), step), self._terms)
        return self._if_finite(entry, product, kept)

    def _columns_found(
        self, entry: KernelEntry, pointers: Value, product: Scalar, block: tuple[Scalar, Scalar]
    ) -> Value:
        """How many columns are enough of a block of rows, where zeros at the end are looked for."""
        fb, step = entry.fb, min(self.depths)
        begin, end = map(Scalars(fb).value, block)
        dtype, number = self.handed_on[1].shape.dtype, self.parts[-1].operands.index(self.handed_on[1])
        rows = fb.load(PTR, fb.gep(PTR, pointers, number), 8)
        line, height = constant(I64, self._terms), fb.sub(end, begin)
        with fb.while_loop([line]) as found:
            (kept,) = found.values
            before = fb.mul(fb.udiv(fb.sub(kept, 1), step), step)
            place = fb.gep(representation(dtype).memory, rows, fb.add(fb.mul(begin, line), before), inbounds=False)
            are_zero = fb.call(zeros(fb.module, dtype), place, height, line, fb.sub(kept, before))
            found.continue_while(fb.and_(are_zero, fb.icmp("ne", before, 0)))
            found.yield_(before)
        return self._if_finite(entry, product, found.results[0])

    def _if_finite(self, entry: KernelEntry, product: Scalar, kept: Value) -> Value:
        """So many columns if the others are times finite values, which gives 0; else all."""
        fb, numbers, second = entry.fb, Scalars(entry.fb), self.parts[-1]
        assert isinstance(second.kernel, DotKernel), "planned as a product"
        number, n = _values(second.kernel), second.kernel.plan.view.n
        assert number is not None, "there are several depths"
        dtype = second.operands[number].shape.dtype
        values = entry.inputs[self.request.body.parameters.index(second.operands[number])].pointer
        behind = numbers.multiply(numbers.add(numbers.multiply(product, self._terms), kept), n)
        place = numbers.address(representation(dtype).memory, values, behind)
        count = fb.mul(fb.sub(constant(I64, self._terms), kept), n)
        return fb.select(fb.call(finite(fb.module, dtype), place, count), kept, constant(I64, self._terms))

    def _columns_read(self, entry: KernelEntry, product: DotKernel, row: Scalar) -> Value:
        """How many pieces of columns of a product are read of the block from a row on."""
        fb, numbers, plan = entry.fb, Scalars(entry.fb), product.plan
        if self.ahead is None or product is not self.parts[0].kernel:
            return numbers.value(plan.column_units)
        read = fb.add(numbers.value(row), self.rows + self.ahead)
        read = fb.smin(fb.smax(read, 0), plan.view.n)
        return fb.udiv(fb.add(read, plan.unit_columns - 1), plan.unit_columns)

    def _arguments(self, entry: KernelEntry, part: _Part, area: Value) -> Value:
        """The addresses that a part is given, but for those of what is handed on."""
        fb, parameters = entry.fb, self.request.body.parameters
        pointers = fb.alloca(PTR, len(part.operands) + 3, align=8)
        for number, operand in enumerate(part.operands):
            if operand not in self.handed_on:
                fb.store(entry.inputs[parameters.index(operand)].pointer, fb.gep(PTR, pointers, number), 8)
        fb.store(entry.outputs[0].pointer, fb.gep(PTR, pointers, len(part.operands)), 8)
        fb.store(area, fb.gep(PTR, pointers, len(part.operands) + 1), 8)
        open_slots(fb, area, 1)
        return pointers

    def _hand_on(self, entry: KernelEntry, arguments: Sequence[Value], windows: Sequence[Value], begin: Scalar) -> None:
        """Tells the parts where arrays would begin of which the block from a row on lies in the scratch memory."""
        fb, numbers = entry.fb, Scalars(entry.fb)
        for number, (handed, size) in enumerate(zip(self.handed_on, self._windows, strict=True)):
            window = windows[number if size else number - 1]
            before = numbers.value(numbers.multiply(begin, self._line_bytes(handed)))
            place = fb.gep(I8, window, fb.sub(constant(I64, 0), before), inbounds=False)
            if number and self._gives_rows:
                place = entry.outputs[1].pointer
            writer, reader = self.parts[number], self.parts[number + 1]
            fb.store(place, fb.gep(PTR, arguments[number], len(writer.operands)), 8)
            fb.store(place, fb.gep(PTR, arguments[number + 1], reader.operands.index(handed)), 8)


def _part(
    request: KernelRequest, root: HloInstruction, known: Sequence[HloInstruction], kind: KernelKind
) -> _Part | Declined:
    """What computes an instruction of the chain's body from its parameters and from what is known."""
    body = HloComputation(root.name)
    inner: dict[HloInstruction, HloInstruction] = {}
    operands: list[HloInstruction] = []
    needed = set(reachable((root,), lambda one: () if one in known else one.operands))
    for instruction in request.body.post_order():
        if instruction not in needed:
            continue
        if instruction in known or instruction.opcode == "parameter":
            attrs = ParameterAttrs(len(operands))
            copy = HloInstruction(OPS["parameter"], instruction.shape, attrs=attrs, name=instruction.name)
            operands.append(instruction)
        else:
            copy = instruction.clone([inner[operand] for operand in instruction.operands])
        inner[instruction] = body.add(copy)
    body.set_root(inner[root])
    own = KernelRequest(collapse(body), target=request.target)
    shape = next((one for one in kernel_shapes(own.body) if one.kind is kind), None)
    if shape is None:
        return Declined(f"not of the shape of the kind {kind.value}")
    kernel = plan_dot_kernel(own, shape) if kind is KernelKind.DOT else plan_row(own, shape)
    if isinstance(kernel, Declined):
        return kernel
    return _Part(kernel, tuple(operands), kernel_work(own.body, shape))


def _in_blocks(
    request: KernelRequest, parts: Sequence[_Part], handed_on: tuple[HloInstruction, HloInstruction]
) -> ChainKernel | Declined:
    """The kernel, if all parts walk over the same rows in the same order."""
    first, between, second = (part.kernel for part in parts)
    assert isinstance(first, DotKernel), "planned as a product"
    assert isinstance(between, RowKernel), "planned as rows"
    assert isinstance(second, DotKernel), "planned as a product"
    plans = (first.plan, second.plan)
    if any(plan.form is not Form.COLUMNS or plan.flipped or plan.view.exchanged for plan in plans):
        return Declined("a product's rows are not those of its left operand")
    view = second.plan.view
    batch, m, k = view.batch_count, view.m, view.k
    if (first.plan.view.batch_count, first.plan.view.m, first.plan.view.n) != (batch, m, k):
        return Declined("the products have other rows")
    strides = row_major_strides((*view.batch, m, k))
    if (*view.lhs.batch, view.lhs.outer.stride, view.lhs.depth.stride) != strides or not view.lhs.is_strided:
        return Declined("the second product goes through its left operand in another order")
    places, scores = between.plan.shape.places, parts[1].operands.index(handed_on[0])
    body = between.request.body
    if places[body.parameters[scores]] is not Place.FULL or body.root not in between.plan.full_results:
        return Declined("the rows are read or written in another order")
    if math.prod(between.plan.shape.domain.row_dims) != batch * m:
        return Declined("what is reduced are not the rows of the products")
    sizes = [handed.shape.dtype.size_bytes for handed in handed_on]
    gives_rows = request.body.root.opcode == "tuple"
    in_place = ((0, scores),) if sizes[0] == sizes[1] and not gives_rows else ()
    cache = request.target.cache_bytes[1]
    step = math.lcm(first.plan.row_step, second.plan.row_step)
    line_bytes = k * (sizes[0] if in_place else sum(sizes))
    most = min(cache // 2 // line_bytes, -(-batch * m // _LEAST_BLOCKS))
    if step * line_bytes > cache:
        return Declined("a few rows fill the second cache")
    ahead = columns_ahead(*handed_on) if handed_on[0].shape.dims[-2:] == (m, k) else None
    if ahead is not None:
        most = min(most, _MASKED_COLUMNS)
        columns = -(-_MASKED_COLUMNS // first.plan.columns) * first.plan.columns
        first = replace(first, plan=replace(first.plan, unit_columns=min(first.plan.unit_columns, columns)))
    rows = _even(m, max(most, step), step)
    kept = columns_kept(handed_on[1]) if ahead is not None and not gives_rows else None
    saved = 2 * sum(handed.shape.size_bytes for handed in handed_on[: 1 if gives_rows else 2])
    again = sum(_packing_again_ns(plan, -(-m // rows)) for plan in plans)
    if again > saved / bytes_per_ns(saved, request.target.cache_bytes):
        return Declined("the products would pack their right operands again for every block")
    last = _with_rows(second, rows)
    depths: Mapping[int, DotKernel] = {}
    if _may_end_in_zeros(handed_on) and _values(last) is not None:
        depths = _depths(last, between.stop_step or 1)
    kept = kept if depths and between.stop_step else None
    own = replace(
        between, request=replace(between.request, in_place=in_place), counts_rows=True, stops=kept is not None
    )
    kernels = (_with_rows(first, rows), own, last)
    blocked = [replace(part, kernel=kernel) for part, kernel in zip(parts, kernels, strict=True)]
    return ChainKernel(request, tuple(blocked), handed_on, batch, m, rows, ahead, kept, depths)


def _may_end_in_zeros(handed_on: tuple[HloInstruction, HloInstruction]) -> bool:
    """Whether something chooses among the scores on the way to the rows, or is added, as masks are."""
    scores, rows = handed_on
    between = reachable((rows,), lambda one: () if one is scores else one.operands)
    return any(one.opcode in ("select", "add") and one.shape.dims == scores.shape.dims for one in between)


def _values(second: DotKernel) -> int | None:
    """The number of the second product's right operand, if its rows follow one another in memory."""
    values, view = second.dot.operand(1), second.plan.view
    strides = (*view.rhs.batch, *(walk.stride for walk in (view.rhs.depth, view.rhs.outer)))
    follow = view.rhs.is_strided and not view.rhs.origin and strides == row_major_strides((*view.batch, view.k, view.n))
    is_float = values.shape.dtype in (DType.F16, DType.BF16, DType.F32, DType.F64)
    return values.attrs.number if follow and is_float and values.opcode == "parameter" else None


def _depths(second: DotKernel, step: int) -> dict[int, DotKernel]:
    """The product with fewer terms, by their number; each is little more than a call of the same loops."""
    plan, view = second.plan, second.plan.view
    if plan.unit_depth < LONG_TILE:
        return {}
    step = math.lcm(step, _MASKED_COLUMNS)
    step *= -(-view.k // (_MOST_DEPTHS * step))

    def cut(matrix: Matrix, depth: int) -> Matrix:
        return replace(matrix, depth=Walk(((depth, matrix.depth.stride),)))

    def shorter(depth: int) -> DotKernel:
        short = replace(view, k=depth, lhs=cut(view.lhs, depth), rhs=cut(view.rhs, depth))
        return dot_kernel(second.request, second.dot, replace(plan, view=short, part_depth=depth))

    return {depth: shorter(depth) for depth in range(step, view.k, step)}


def _packing_again_ns(plan: DotPlan, blocks: int) -> float:
    """Time to pack a right operand for every block of rows, less what it takes anyway."""
    if not plan.packs_rhs:
        return 0.0
    view, is_direct = plan.view, plan.numbers.is_direct(plan.numbers.rhs)
    cycles = operand_cycles(view.rhs, view.n, view.k, plan.lanes, is_direct=is_direct)
    return max(0, blocks - plan.row_units) * view.batch_count * cycles / MULTIPLY_ADDS_PER_NS


def _even(m: int, most: int, step: int) -> int:
    """Rows of blocks of about one size, none above `most`, multiples of a step unless one block has all."""
    blocks = -(-m // (most // step * step))
    return min(m, -(-m // (blocks * step)) * step)


def _with_rows(kernel: DotKernel, rows: int) -> DotKernel:
    """The kernel whose pieces have so many rows, and all terms."""
    plan = replace(kernel.plan, unit_rows=rows, overlaps=False, part_depth=kernel.plan.part_depth * kernel.plan.parts)
    return dot_kernel(kernel.request, kernel.dot, plan)
